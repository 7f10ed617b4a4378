//! An event source mapping: which batch a function gets next.

use std::collections::VecDeque;
use std::ops::Range;

use fastrand::Rng;
use futures::future::join;

use super::shards::{Record, Shard, event};
use super::{Invoke, Stream, Verdict};

/// How the mapping is configured, and how unkind the world is.
#[derive(Debug, Clone)]
pub struct Options {
    /// The largest batch.
    pub batch_size: usize,
    /// How often a batch is retried without progress; `None` is `-1`, without end.
    pub maximum_retry_attempts: Option<u32>,
    /// Records older than this, in seconds, are given up.
    pub maximum_record_age: i64,
    /// Whether a failed invocation's batch is halved.
    pub bisect: bool,
    /// Whether partial batch responses are understood.
    pub report_batch_item_failures: bool,
    /// The filter: kinds of changes, and what a key must start with.
    pub filter: fn(kind: &str, pk: &str, sk: &str) -> bool,
    /// How often a shard goes back to an earlier place after a success (a lost checkpoint), in percent.
    pub rewinds: u8,
    /// How often a batch is delivered to two invocations at once, in percent.
    pub overlaps: u8,
    /// How often the mapping is made anew and reads everything from the start, in all.
    pub replays: u32,
    /// How long an invocation moves the clock on, in seconds.
    pub pace: i64,
}

impl Options {
    /// As the stack configures the aggregator.
    pub fn aggregator() -> Self {
        Self {
            batch_size: 1_000,
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

/// How far a shard is.
#[derive(Debug, Default, Clone)]
struct Poller {
    /// The next record that no batch has.
    next: usize,
    /// Batches that are not done with, in order.
    pending: VecDeque<Range<usize>>,
    attempts: u32,
}

impl<'s> Mapping<'s> {
    /// A mapping that starts at the trim horizon.
    pub fn new(stream: &'s Stream, options: Options, seed: u64) -> Self {
        Self {
            stream,
            options,
            pollers: vec![Poller::default(); stream.shards.len()],
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
            let ready: Vec<_> = (0..self.pollers.len()).filter(|at| self.is_ready(*at)).collect();
            let Some(shard) = self.random.choice(ready) else {
                return;
            };
            self.step(shard, function).await;
            assert!(
                self.invocations < 1_000 + 10 * total,
                "the function makes no progress"
            );
            let done: usize = self.pollers.iter().map(|poller| poller.next).sum();
            if self.options.replays > 0 && done > total / 2 {
                // The mapping is made anew: TRIM_HORIZON again, whatever was done with.
                self.options.replays -= 1;
                self.pollers.fill(Poller::default());
            }
        }
    }

    fn is_done(&self, shard: usize) -> bool {
        let poller = &self.pollers[shard];
        poller.pending.is_empty() && poller.next == self.stream.shards[shard].records.len()
    }

    /// A shard is read only when its parents are done with.
    fn is_ready(&self, shard: usize) -> bool {
        let parent = self.stream.shards[shard].parent;
        !self.is_done(shard) && parent.is_none_or(|parent| self.is_done(parent))
    }

    async fn step(&mut self, at: usize, function: &impl Invoke) {
        let shard = &self.stream.shards[at];
        self.fetch(at, shard);
        let Some(range) = self.pollers[at].pending.front().cloned() else {
            return;
        };
        // Time goes on with the records and with every invocation.
        self.clock = self.clock.max(shard.records[range.end - 1].at) + self.options.pace;
        if self.clock - shard.records[range.start].at > self.options.maximum_record_age {
            self.discard(at, &range, "RecordAgeExceeded");
            return;
        }
        let filter = self.options.filter;
        let wanted = |record: &&Record| filter(record.kind, &record.pk, &record.sk);
        let (places, records): (Vec<_>, Vec<_>) = range
            .clone()
            .map(|place| (place, &shard.records[place]))
            .filter(|(_, record)| wanted(record))
            .unzip();
        if records.is_empty() {
            self.pollers[at].pending.pop_front();
            return;
        }
        let numbers: Vec<_> = records.iter().map(|record| record.number.as_str()).collect();
        let answer = self.invoke(function, &records).await;
        match Verdict::of(&answer, &numbers) {
            Verdict::Done => self.succeed(at),
            Verdict::From(failed) if self.options.report_batch_item_failures => {
                self.retry_from(at, &range, places[failed]);
            }
            _ => self.retry_all(at, &range),
        }
    }

    /// Takes the next records, as many as came together.
    fn fetch(&mut self, at: usize, shard: &Shard) {
        let poller = &mut self.pollers[at];
        if poller.pending.is_empty() && poller.next < shard.records.len() {
            let most = self.options.batch_size.min(shard.records.len() - poller.next);
            // Most batches are full when there is a backlog, some are cut short by the payload or the window.
            let size = if self.random.u8(..10) < 6 {
                most
            } else {
                self.random.usize(1..=most)
            };
            poller.pending.push_back(poller.next..poller.next + size);
            poller.next += size;
            poller.attempts = 0;
        }
    }

    async fn invoke(&mut self, function: &impl Invoke, records: &[&Record]) -> Result<String, super::Failed> {
        let event = event(records.iter().copied());
        self.invocations += 1;
        self.deliveries += records.len();
        if self.random.u8(..100) < self.options.overlaps {
            // Two invocations of one batch at once; Lambda listens to either.
            let (first, second) = join(function.invoke(&event), function.invoke(&event)).await;
            return if self.random.bool() { first } else { second };
        }
        function.invoke(&event).await
    }

    fn succeed(&mut self, at: usize) {
        let rewinds = self.random.u8(..100) < self.options.rewinds;
        let back = self.random.usize(..2 * self.options.batch_size);
        let poller = &mut self.pollers[at];
        poller.attempts = 0;
        let done = poller.pending.pop_front().map_or(0, |range| range.end);
        if rewinds {
            poller.pending.clear();
            poller.next = done.saturating_sub(back);
        }
    }

    /// The batch is split at the reported record, and only the rest is retried.
    fn retry_from(&mut self, at: usize, range: &Range<usize>, failed: usize) {
        self.pollers[at].pending[0] = failed..range.end;
        if failed == range.start {
            self.use_up_attempt(at, range);
        }
    }

    /// A failed invocation is halved, which uses up no attempt; a batch of one cannot be.
    fn retry_all(&mut self, at: usize, range: &Range<usize>) {
        let half = range.start + range.len() / 2;
        if self.options.bisect && range.len() > 1 {
            let poller = &mut self.pollers[at];
            poller.pending[0] = half..range.end;
            poller.pending.push_front(range.start..half);
        } else {
            self.use_up_attempt(at, range);
        }
    }

    fn use_up_attempt(&mut self, at: usize, range: &Range<usize>) {
        self.pollers[at].attempts += 1;
        let most = self.options.maximum_retry_attempts;
        if most.is_some_and(|most| self.pollers[at].attempts > most) {
            self.discard(at, range, "RetryAttemptsExhausted");
        }
    }

    fn discard(&mut self, at: usize, range: &Range<usize>, condition: &'static str) {
        let shard = &self.stream.shards[at];
        self.discarded.push(Discarded {
            shard: shard.id.clone(),
            start: shard.records[range.start].number.clone(),
            end: shard.records[range.end - 1].number.clone(),
            records: range.len(),
            condition,
        });
        self.pollers[at].pending.pop_front();
        self.pollers[at].attempts = 0;
    }
}
