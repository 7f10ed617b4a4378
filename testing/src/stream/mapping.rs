//! An event source mapping: which batch a function gets next.

use std::collections::VecDeque;
use std::ops::Range;

use fastrand::Rng;
use futures::future::{join, join_all};

use super::shards::{Record, event, hash};
use super::{Invoke, Stream, Verdict};

/// How the mapping is configured, and how unkind the world is.
#[derive(Debug, Clone)]
pub struct Options {
    /// The largest batch.
    pub batch_size: usize,
    /// How many batches of one shard are processed at the same time. Records of one item are never in two of them.
    pub parallelization_factor: usize,
    /// How often a batch is retried without progress; `None` is `-1`, without limit.
    pub maximum_retry_attempts: Option<u32>,
    /// Records older than this, in seconds, are given up.
    pub maximum_record_age: i64,
    /// True if the batch of a failed invocation is halved.
    pub bisect: bool,
    /// True if partial batch responses are understood.
    pub report_batch_item_failures: bool,
    /// The filter: kinds of changes, and what a key must start with.
    pub filter: fn(kind: &str, pk: &str, sk: &str) -> bool,
    /// How often a shard goes back to an earlier place after a success (a lost checkpoint), in percent.
    pub rewinds: u8,
    /// How often a batch is delivered to two invocations at once, in percent.
    pub overlaps: u8,
    /// How often the mapping is created again and reads everything from the start, in all.
    pub replays: u32,
    /// How long an invocation moves the clock on, in seconds.
    pub pace: i64,
}

impl Options {
    /// As the stack configures the aggregator.
    pub fn aggregator() -> Self {
        Self {
            batch_size: 1_000,
            parallelization_factor: 1,
            maximum_retry_attempts: None,
            maximum_record_age: 79_200,
            bisect: true,
            report_batch_item_failures: true,
            filter: |kind, _, sk| kind != "REMOVE" && sk.starts_with("#BUCKET#"),
            rewinds: 0,
            overlaps: 0,
            replays: 0,
            pace: 1,
        }
    }

    /// As the stack configures the archiver.
    pub fn archiver() -> Self {
        Self {
            batch_size: 100,
            filter: |kind, pk, _| kind == "INSERT" && pk.starts_with("AUDIT#"),
            ..Self::aggregator()
        }
    }
}

/// What went to the on-failure destination: a pointer, not the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discarded {
    /// The shard.
    pub shard: String,
    /// The first record's number.
    pub start: String,
    /// The last record's number.
    pub end: String,
    /// How many records it were.
    pub records: usize,
    /// `RetryAttemptsExhausted` or `RecordAgeExceeded`.
    pub condition: &'static str,
}

/// A mapping from a stream to a function.
#[derive(Debug)]
pub struct Mapping<'s> {
    stream: &'s Stream,
    options: Options,
    pollers: Vec<Poller>,
    random: Rng,
    clock: i64,
    /// How often the function was invoked.
    pub invocations: usize,
    /// How many records were delivered, again or for the first time.
    pub deliveries: usize,
    /// What was given up.
    pub discarded: Vec<Discarded>,
}

/// Reads a shard, or with a parallelization factor a part of its items.
#[derive(Debug, Clone)]
struct Poller {
    shard: usize,
    /// The records of its items, as places in the shard.
    records: Vec<usize>,
    progress: Progress,
}

#[derive(Debug, Default, Clone)]
struct Progress {
    /// The next record that no batch has.
    next: usize,
    /// Batches that are not done with, in order.
    pending: VecDeque<Range<usize>>,
    attempts: u32,
}

impl Poller {
    fn is_done(&self) -> bool {
        self.progress.pending.is_empty() && self.progress.next == self.records.len()
    }
}

/// One poller per shard, or as many as the parallelization factor says: each item belongs to one of them.
fn pollers(stream: &Stream, parallelization_factor: usize) -> Vec<Poller> {
    let factor = parallelization_factor.max(1);
    let shards = stream.shards.iter().enumerate();
    let pollers = shards.flat_map(|(shard, content)| {
        (0..factor).map(move |part| {
            let records = content.records.iter().enumerate();
            let own =
                records.filter(|(_, record)| hash(&record.pk, &record.sk) % factor as u64 == part as u64);
            Poller {
                shard,
                records: own.map(|(place, _)| place).collect(),
                progress: Progress::default(),
            }
        })
    });
    pollers.collect()
}

/// What one invocation gets.
struct Batch<'s> {
    poller: usize,
    range: Range<usize>,
    /// The places of the records that pass the filter, in the poller's records.
    places: Vec<usize>,
    numbers: Vec<&'s str>,
    event: String,
    /// Two invocations get the batch at once, and Lambda listens to the first or to the second.
    twice: Option<bool>,
}

impl Batch<'_> {
    async fn invoke(&self, function: &impl Invoke) -> Result<String, super::Failed> {
        let Some(listen_to_first) = self.twice else {
            return function.invoke(&self.event).await;
        };
        let (first, second) = join(function.invoke(&self.event), function.invoke(&self.event)).await;
        if listen_to_first { first } else { second }
    }
}

impl<'s> Mapping<'s> {
    /// A mapping that starts at the trim horizon.
    pub fn new(stream: &'s Stream, options: Options, seed: u64) -> Self {
        Self {
            stream,
            pollers: pollers(stream, options.parallelization_factor),
            options,
            random: Rng::with_seed(seed),
            clock: i64::MIN,
            invocations: 0,
            deliveries: 0,
            discarded: Vec::new(),
        }
    }

    /// Delivers until every record is done with or given up.
    pub async fn run(&mut self, function: &impl Invoke) {
        let total = self.stream.len();
        loop {
            let mut ready: Vec<_> = (0..self.pollers.len()).filter(|at| self.is_ready(*at)).collect();
            if self.options.parallelization_factor > 1 {
                self.random.shuffle(&mut ready);
                ready.truncate(self.random.usize(1..=self.options.parallelization_factor));
            } else {
                ready = self.random.choice(ready).into_iter().collect();
            }
            if ready.is_empty() {
                return;
            }
            self.step(ready, function).await;
            assert!(
                self.invocations < 1_000 + 10 * total,
                "the function makes no progress"
            );
            let done: usize = self.pollers.iter().map(|poller| poller.progress.next).sum();
            if self.options.replays > 0 && done > total / 2 {
                // The mapping is created again: it starts at TRIM_HORIZON, whatever was done with.
                self.options.replays -= 1;
                self.pollers = pollers(self.stream, self.options.parallelization_factor);
            }
        }
    }

    fn is_done(&self, shard: usize) -> bool {
        let mut pollers = self.pollers.iter().filter(|poller| poller.shard == shard);
        pollers.all(Poller::is_done)
    }

    /// A shard is read only when its parent is done with.
    fn is_ready(&self, at: usize) -> bool {
        let parent = self.stream.shards[self.pollers[at].shard].parent;
        !self.pollers[at].is_done() && parent.is_none_or(|parent| self.is_done(parent))
    }

    /// Invokes the function with the next batch of each of these pollers, all at the same time.
    async fn step(&mut self, pollers: Vec<usize>, function: &impl Invoke) {
        let batches: Vec<_> = pollers.into_iter().filter_map(|at| self.next_batch(at)).collect();
        let responses = join_all(batches.iter().map(|batch| batch.invoke(function))).await;
        for (batch, response) in batches.iter().zip(responses) {
            match Verdict::of(&response, &batch.numbers) {
                Verdict::Done => self.succeed(batch.poller),
                Verdict::From(failed) if self.options.report_batch_item_failures => {
                    self.retry_from(batch.poller, &batch.range, batch.places[failed]);
                }
                _ => self.retry_all(batch.poller, &batch.range),
            }
        }
    }

    /// The batch to deliver next; none if there is nothing in it for the function.
    fn next_batch(&mut self, at: usize) -> Option<Batch<'s>> {
        self.fetch(at);
        let range = self.pollers[at].progress.pending.front()?.clone();
        let stream = self.stream;
        let shard = &stream.shards[self.pollers[at].shard];
        let record = |place: usize| &shard.records[self.pollers[at].records[place]];
        // Time passes with the records and with every invocation.
        self.clock = self.clock.max(record(range.end - 1).at) + self.options.pace;
        if self.clock - record(range.start).at > self.options.maximum_record_age {
            self.discard(at, &range, "RecordAgeExceeded");
            return None;
        }
        let filter = self.options.filter;
        let wanted = |record: &Record| filter(record.kind, &record.pk, &record.sk);
        let places: Vec<_> = range.clone().filter(|place| wanted(record(*place))).collect();
        let records: Vec<_> = places.iter().map(|place| record(*place)).collect();
        if records.is_empty() {
            self.pollers[at].progress.pending.pop_front();
            return None;
        }
        self.invocations += 1;
        self.deliveries += records.len();
        let twice = self.random.u8(..100) < self.options.overlaps;
        Some(Batch {
            poller: at,
            range,
            places,
            numbers: records.iter().map(|record| record.number.as_str()).collect(),
            event: event(records),
            twice: twice.then(|| self.random.bool()),
        })
    }

    /// Takes the next records, as many as came together.
    fn fetch(&mut self, at: usize) {
        let left = self.pollers[at].records.len() - self.pollers[at].progress.next;
        let progress = &mut self.pollers[at].progress;
        if progress.pending.is_empty() && left > 0 {
            let most = self.options.batch_size.min(left);
            // Most batches are full when there is a backlog; some are cut short by the payload or the window.
            let size = if self.random.u8(..10) < 6 {
                most
            } else {
                self.random.usize(1..=most)
            };
            progress.pending.push_back(progress.next..progress.next + size);
            progress.next += size;
            progress.attempts = 0;
        }
    }

    fn succeed(&mut self, at: usize) {
        let rewinds = self.random.u8(..100) < self.options.rewinds;
        let back = self.random.usize(..2 * self.options.batch_size);
        let poller = &mut self.pollers[at].progress;
        poller.attempts = 0;
        let done = poller.pending.pop_front().map_or(0, |range| range.end);
        if rewinds {
            poller.pending.clear();
            poller.next = done.saturating_sub(back);
        }
    }

    /// The batch is split at the reported record, and only the rest is retried.
    fn retry_from(&mut self, at: usize, range: &Range<usize>, failed: usize) {
        self.pollers[at].progress.pending[0] = failed..range.end;
        if failed == range.start {
            self.use_up_attempt(at, range);
        }
    }

    /// A failed invocation is halved, which uses up no attempt; a batch of one cannot be.
    fn retry_all(&mut self, at: usize, range: &Range<usize>) {
        let half = range.start + range.len() / 2;
        if self.options.bisect && range.len() > 1 {
            let poller = &mut self.pollers[at].progress;
            poller.pending[0] = half..range.end;
            poller.pending.push_front(range.start..half);
        } else {
            self.use_up_attempt(at, range);
        }
    }

    fn use_up_attempt(&mut self, at: usize, range: &Range<usize>) {
        self.pollers[at].progress.attempts += 1;
        let most = self.options.maximum_retry_attempts;
        if most.is_some_and(|most| self.pollers[at].progress.attempts > most) {
            self.discard(at, range, "RetryAttemptsExhausted");
        }
    }

    fn discard(&mut self, at: usize, range: &Range<usize>, condition: &'static str) {
        let poller = &self.pollers[at];
        let shard = &self.stream.shards[poller.shard];
        let number = |place: usize| shard.records[poller.records[place]].number.clone();
        self.discarded.push(Discarded {
            shard: shard.id.clone(),
            start: number(range.start),
            end: number(range.end - 1),
            records: range.len(),
            condition,
        });
        self.pollers[at].progress.pending.pop_front();
        self.pollers[at].progress.attempts = 0;
    }
}
