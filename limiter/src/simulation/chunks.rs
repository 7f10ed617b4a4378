//! Processes that take tokens in chunks, on one item that is throttled at 1,000 write units a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zae_limiter_schema::bucket::{Attr, Attributes, Decoded};
use zae_limiter_schema::{Limit, LimitName, LimitSet};

use super::Mutation;
use super::clock::SimClock;
use super::faults::Scenario;
use super::run::connect;
use super::throttling::Throttling;
use super::traffic::RESOURCE;
use super::world::{Port, Shared, World, lock};
use crate::Error;
use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::{ChunkScope, Settings};

const ENTITY: &str = "shared";
/// An answer arrives at most this long after its write, so that an admission shows that much later than it happened.
const LATEST_ANSWER_MILLIS: u64 = 7;

/// Processes that ask for one token at a time, at the same rate each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flood {
    pub(super) processes: u64,
    /// Calls a second of each process, and for how many milliseconds; one phase after the other.
    pub(super) phases: &'static [(u64, u64)],
    /// Burst and refill a second.
    pub(super) limit: (u64, u64),
    pub(super) chunks: bool,
    /// One process crashes at the end of the first phase.
    pub(super) crash: bool,
    pub(super) mutation: Option<Mutation>,
}

/// What a flood came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) asked: u64,
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) unavailable: u64,
    /// Writes that the item took, and those that were throttled.
    pub(super) writes: u64,
    pub(super) throttled: u64,
    /// The longest time that a call took.
    pub(super) slowest: Duration,
    /// What the worst interval had beyond burst and refill, in tokens.
    pub(super) excess: u64,
    /// What all limiters report as the bound of that.
    pub(super) bound: u64,
    /// What is booked in the table, in tokens, and how many acquires are counted there.
    pub(super) booked: u64,
    pub(super) counted: u64,
    /// What the crashed process had in hand at most.
    pub(super) stranded: u64,
    pub(super) violations: Vec<String>,
}

impl Outcome {
    /// Every promise that was not kept.
    pub(super) fn broken(&self) -> Vec<String> {
        let mut broken = self.violations.clone();
        if !(self.admitted..=self.admitted + self.stranded).contains(&self.booked) {
            broken.push(format!("{} booked, {} used", self.booked, self.admitted));
        }
        if self.counted > self.admitted || self.counted + self.stranded < self.admitted {
            broken.push(format!("{} acquires counted of {}", self.counted, self.admitted));
        }
        if self.excess > self.bound {
            broken.push(format!(
                "{} tokens beyond burst and refill, {} reported",
                self.excess, self.bound
            ));
        }
        broken
    }
}

/// What was admitted, against a bucket that fills at the same rate. How far that would be in debt beyond its burst is what
/// the worst interval had too much.
#[derive(Debug)]
struct Admissions {
    /// In thousandths of a token.
    taken: u64,
    worst: u64,
    at: Instant,
    per_second: u64,
}

impl Admissions {
    fn admit(&mut self) {
        let now = Instant::now();
        let elapsed = u64::try_from((now - self.at).as_millis()).unwrap_or(u64::MAX);
        self.taken = self.taken.saturating_sub(elapsed * self.per_second) + 1000;
        self.at = now;
        self.worst = self.worst.max(self.taken);
    }
}

struct Results {
    outcome: Outcome,
    admissions: Admissions,
}

type SharedResults = Arc<Mutex<Results>>;

fn empty_results(per_second: u64) -> SharedResults {
    Arc::new(Mutex::new(Results {
        outcome: Outcome::default(),
        admissions: Admissions {
            taken: 0,
            worst: 0,
            at: Instant::now(),
            per_second,
        },
    }))
}

fn results(results: &SharedResults) -> std::sync::MutexGuard<'_, Results> {
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Process {
    port: Arc<Port>,
    buckets: Arc<Buckets>,
    results: SharedResults,
}

impl Process {
    fn new(world: &Shared, clock: SimClock, settings: Settings, seed: u64, results: SharedResults) -> Self {
        let port = Arc::new(Port {
            world: world.clone(),
            alive: AtomicBool::new(true),
        });
        let buckets = connect(&port, clock, settings, seed);
        Self {
            port,
            buckets,
            results,
        }
    }

    /// Calls at the same rate for the given milliseconds, each on its own.
    async fn run(&self, calls_per_second: u64, millis: u64) {
        let mut calls = JoinSet::new();
        let mut due = 0;
        for _ in 0..millis {
            sleep(Duration::from_millis(1)).await;
            due += calls_per_second;
            while due >= 1000 {
                due -= 1000;
                calls.spawn(call(self.buckets.clone(), self.results.clone()));
            }
            while calls.try_join_next().is_some() {}
        }
        calls.join_all().await;
    }
}

async fn call(buckets: Arc<Buckets>, shared: SharedResults) {
    let started = Instant::now();
    results(&shared).outcome.asked += 1;
    let acquire = Acquire::new(buckets, ENTITY.to_owned(), RESOURCE.to_owned());
    let result = match acquire.consume("rpm", 1).await {
        Ok(lease) => {
            results(&shared).admissions.admit();
            lease.commit().await
        }
        Err(error) => Err(error),
    };
    let mut results = results(&shared);
    let outcome = &mut results.outcome;
    outcome.slowest = outcome.slowest.max(started.elapsed());
    match result {
        Ok(()) => outcome.admitted += 1,
        Err(Error::RateLimitExceeded(_)) => outcome.refused += 1,
        Err(_) => outcome.unavailable += 1,
    }
}

pub(super) fn simulate(flood: Flood) -> Outcome {
    paused(run(flood))
}

fn paused<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => panic!("no runtime: {error}"),
    }
}

fn limits(burst: u64, per_second: u64) -> LimitSet {
    let limit = Limit::custom("rpm", burst, burst, per_second, 1);
    LimitSet::new(limit).unwrap_or_default()
}

fn throttled_world(clock: SimClock, limits: LimitSet) -> Shared {
    let mut world = World::new(Scenario::calm(1), clock, limits);
    world.throttling = Some(Throttling::default());
    Arc::new(Mutex::new(world))
}

fn settings(chunks: bool, mutation: Option<Mutation>) -> Settings {
    Settings {
        chunks: if chunks {
            ChunkScope::Everywhere
        } else {
            ChunkScope::default()
        },
        mutation,
        ..Settings::default()
    }
}

async fn run(flood: Flood) -> Outcome {
    let clock = SimClock {
        start: Instant::now(),
        skew: 0,
    };
    let (burst, per_second) = flood.limit;
    let world = throttled_world(clock, limits(burst, per_second));
    let shared = empty_results(per_second);
    let process = |seed| {
        let settings = settings(flood.chunks, flood.mutation);
        Arc::new(Process::new(&world, clock, settings, seed, shared.clone()))
    };
    let mut processes: Vec<_> = (0..flood.processes).map(process).collect();
    let (mut bound, mut stranded) = (0, 0);
    for (index, (calls_per_second, millis)) in flood.phases.iter().copied().enumerate() {
        if index == 1 && flood.crash {
            let dead = processes.remove(0);
            dead.port.alive.store(false, Ordering::Relaxed);
            stranded = dead.buckets.stats().chunk_tokens_peak;
            bound += stranded;
        }
        let mut running = JoinSet::new();
        for process in &processes {
            let process = process.clone();
            running.spawn(async move { process.run(calls_per_second, millis).await });
        }
        running.join_all().await;
    }
    for process in &processes {
        let report = process.buckets.shut_down().await;
        let stats = process.buckets.stats();
        bound += stats.chunk_tokens_peak;
        if report.unwritten_total > 0 || stats.chunk_tokens > 0 {
            let what = format!(
                "{} unwritten, {} in hand",
                report.unwritten_total, stats.chunk_tokens
            );
            results(&shared).outcome.violations.push(what);
        }
    }
    sum_up(&world, &shared, flood.limit, bound, stranded)
}

/// What is booked in the table, next to what the processes saw.
fn sum_up(world: &Shared, shared: &SharedResults, limit: (u64, u64), bound: u64, stranded: u64) -> Outcome {
    let mut world = lock(world);
    world.oracle.finish();
    let mut results = results(shared);
    let worst = results.admissions.worst;
    let mut outcome = std::mem::take(&mut results.outcome);
    let (burst, per_second) = limit;
    let allowed = burst * 1000 + per_second * LATEST_ANSWER_MILLIS;
    outcome.excess = worst.saturating_sub(allowed).div_ceil(1000);
    (outcome.bound, outcome.stranded) = (bound, stranded);
    outcome.writes = world.attempts;
    outcome.throttled = world.throttling.as_ref().map_or(0, |item| item.throttled);
    let booked = world.oracle.booked.values().sum::<i128>() / 1000;
    outcome.booked = u64::try_from(booked).unwrap_or(0);
    let counted = world.items.values().filter_map(|item| item.number(&Attr::Events));
    outcome.counted = u64::try_from(counted.sum::<i128>()).unwrap_or(0);
    let found = world
        .oracle
        .violations
        .iter()
        .map(|violation| violation.what.clone());
    outcome.violations.extend(found);
    outcome
}

pub(super) fn is_long() -> bool {
    std::env::var("ZAE_SIMULATION").is_ok_and(|length| length == "long")
}

/// 50 processes with 1,100 calls a second each, at 55 % of the limit.
const FIFTY: Flood = Flood {
    processes: 50,
    phases: &[(1_100, 2_000)],
    limit: (100_000, 100_000),
    chunks: true,
    crash: false,
    mutation: None,
};

#[test]
fn fifty_processes_on_one_throttled_item_admit_fifty_thousand_calls_a_second() {
    let flood = if is_long() {
        Flood {
            phases: &[(1_100, 10_000)],
            ..FIFTY
        }
    } else {
        FIFTY
    };
    let seconds = flood.phases[0].1 / 1000;
    let outcome = simulate(flood);
    eprintln!(
        "50 processes, chunks on: {} acquires/s, {} unavailable, {} writes/s, {} throttled in all, slowest call {:?}, \
         {} tokens beyond burst and refill, {} reported",
        outcome.admitted / seconds,
        outcome.unavailable,
        outcome.writes / seconds,
        outcome.throttled,
        outcome.slowest,
        outcome.excess,
        outcome.bound
    );
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{outcome:?}");
    assert_eq!(outcome.unavailable + outcome.refused, 0, "{outcome:?}");
    assert!(outcome.admitted / seconds >= 50_000, "{outcome:?}");
}

/// Chunks are in hand when suddenly everybody asks for much more than there is.
const SURGE: Flood = Flood {
    processes: 10,
    phases: &[(60, 3_000), (1_000, 500), (60, 3_000)],
    limit: (1_000, 1_000),
    chunks: true,
    crash: false,
    mutation: None,
};

#[test]
fn a_surge_admits_at_most_the_tokens_in_hand_beyond_burst_and_refill() {
    let outcome = simulate(SURGE);
    eprintln!(
        "a surge on 10 processes: {} admitted, {} refused, {} tokens beyond burst and refill, {} reported",
        outcome.admitted, outcome.refused, outcome.excess, outcome.bound
    );
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{outcome:?}");
    assert_eq!(outcome.unavailable, 0, "{outcome:?}");
    assert!(outcome.refused > 0 && outcome.excess > 0, "{outcome:?}");
}

#[test]
fn a_crash_strands_no_more_than_one_chunk() {
    let outcome = simulate(Flood { crash: true, ..SURGE });
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{outcome:?}");
    assert!(outcome.booked > outcome.admitted, "{outcome:?}");
}

#[test]
fn without_chunks_nothing_is_admitted_beyond_burst_and_refill() {
    let outcome = simulate(Flood {
        chunks: false,
        ..SURGE
    });
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{outcome:?}");
    assert_eq!((outcome.excess, outcome.bound, outcome.unavailable), (0, 0, 0));
}

#[test]
fn broken_rules_of_chunks_are_noticed() {
    for mutation in [
        Mutation::ChunkSpentTwice,
        Mutation::ChunkGivenBackTwice,
        Mutation::ChunkNotCounted,
    ] {
        let outcome = simulate(Flood {
            mutation: Some(mutation),
            ..SURGE
        });
        let broken = outcome.broken();
        assert!(!broken.is_empty(), "{mutation:?} went unnoticed: {outcome:?}");
        eprintln!("{mutation:?} is noticed: {}", broken[0]);
    }
}

/// The burst that the bucket has after the limits were halved under a process that has tokens in hand and calls on.
fn burst_after_a_change(mutation: Option<Mutation>) -> i128 {
    paused(async {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let world = throttled_world(clock, limits(10_000, 10_000));
        let results = empty_results(10_000);
        let process = Process::new(&world, clock, settings(true, mutation), 1, results);
        process.run(1_000, 2_000).await;
        assert!(
            process.buckets.stats().chunk_tokens > 50,
            "{:?}",
            process.buckets.stats()
        );
        lock(&world).change_limits(limits(5_000, 10_000));
        // Two calls a second keep the chunk in hand until the process has read the new limits, and a while longer.
        process.run(2, 14_000).await;
        let world = lock(&world);
        let Some(Ok(Decoded::Bucket(image))) = world.items.values().next().map(Attributes::decode) else {
            panic!("no bucket")
        };
        let rpm = LimitName::parse("rpm")
            .ok()
            .and_then(|rpm| image.limits.get(&rpm).copied());
        rpm.map_or(0, |limit| limit.token_bucket.params.burst())
    })
}

#[test]
fn a_chunk_is_not_spent_after_the_configuration_has_changed() {
    assert_eq!(burst_after_a_change(None), 5_000_000);
    let mutated = burst_after_a_change(Some(Mutation::ChunkSpentAfterChange));
    assert_eq!(
        mutated, 10_000_000,
        "spending what was taken under the old limits is noticed"
    );
}

/// While the table is away a process goes on with the tokens in hand.
#[test]
fn tokens_in_hand_are_spent_while_the_table_is_away() {
    paused(async {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let world = throttled_world(clock, limits(10_000, 10_000));
        let process = Process::new(&world, clock, settings(true, None), 1, empty_results(10_000));
        process.run(1_000, 2_000).await;
        let in_hand = process.buckets.stats().chunk_tokens;
        assert!(in_hand > 50, "{in_hand}");
        process.port.alive.store(false, Ordering::Relaxed);
        for _ in 0..in_hand / 2 {
            let acquire = Acquire::new(process.buckets.clone(), ENTITY.to_owned(), RESOURCE.to_owned());
            let lease = acquire.consume("rpm", 1).await;
            assert!(lease.is_ok(), "{lease:?}");
            if let Ok(lease) = lease {
                assert!(lease.commit().await.is_ok());
            }
        }
        assert_eq!(process.buckets.stats().chunk_tokens, in_hand - in_hand / 2);
    });
}
