//! Processes that call for one entity, from their first call to what is booked in the end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zae_limiter_schema::bucket::Attr;
use zae_limiter_schema::{Limit, LimitSet};

use super::admissions::Admissions;
use crate::Error;
use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::{ChunkScope, Settings};
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::faults::Scenario;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::throttling::Throttling;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{Shared, World, lock};

pub(super) const ENTITY: &str = "shared";
/// A response arrives at most this long after its write, so that an admission shows that much later than it happened.
const LATEST_ANSWER_MILLIS: u64 = 7;

/// Processes that ask for one token at a time, at the same rate each.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulation) struct Flood {
    pub(in crate::simulation) processes: u64,
    /// Calls a second of each process, and for how many milliseconds; one phase after the other.
    pub(in crate::simulation) phases: &'static [(u64, u64)],
    /// Burst and refill a second.
    pub(in crate::simulation) limit: (u64, u64),
    pub(in crate::simulation) chunks: bool,
    /// One process crashes at the end of the first phase.
    pub(in crate::simulation) crash: bool,
}

/// What a flood came to.
#[derive(Debug, Default)]
pub(in crate::simulation) struct Outcome {
    pub(in crate::simulation) asked: u64,
    pub(in crate::simulation) admitted: u64,
    pub(in crate::simulation) refused: u64,
    pub(in crate::simulation) unavailable: u64,
    /// Writes that the item took, and those that were throttled.
    pub(in crate::simulation) writes: u64,
    pub(in crate::simulation) throttled: u64,
    /// The longest time that a call took.
    pub(in crate::simulation) slowest: Duration,
    /// What the worst interval had beyond burst and refill, in tokens.
    pub(in crate::simulation) excess: u64,
    /// What all limiters report as the bound of that.
    pub(in crate::simulation) bound: u64,
    /// What is booked in the table, in tokens, and how many acquires are counted there.
    pub(in crate::simulation) booked: u64,
    pub(in crate::simulation) counted: u64,
    /// The most that the chunks of the crashed process held.
    pub(in crate::simulation) stranded: u64,
    pub(in crate::simulation) violations: Vec<String>,
}

impl Outcome {
    /// Every promise that was not kept.
    pub(in crate::simulation) fn broken(&self) -> Vec<String> {
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

pub(super) struct Results {
    outcome: Outcome,
    admissions: Admissions,
}

pub(super) type SharedResults = Arc<Mutex<Results>>;

pub(super) fn empty_results(per_second: u64) -> SharedResults {
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

pub(super) struct Process {
    pub(super) port: Arc<Port>,
    pub(super) buckets: Arc<Buckets>,
    results: SharedResults,
}

impl Process {
    pub(super) fn new(
        world: &Shared,
        clock: SimClock,
        settings: Settings,
        seed: u64,
        results: SharedResults,
    ) -> Self {
        let port = Port::new(world);
        let buckets = connect(&port, clock, settings, seed);
        Self {
            port,
            buckets,
            results,
        }
    }

    /// Calls at the same rate for the given milliseconds, each on its own.
    pub(super) async fn run(&self, calls_per_second: u64, millis: u64) {
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
    let acquire = Acquire::new(buckets, ENTITY, RESOURCE);
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
        Err(Error::Refused(_)) => outcome.refused += 1,
        Err(_) => outcome.unavailable += 1,
    }
}

pub(in crate::simulation) fn simulate(flood: Flood) -> Outcome {
    block_on(run(flood))
}

pub(super) fn limits(burst: u64, per_second: u64) -> LimitSet {
    let limit = Limit::custom("rpm", burst, burst, per_second, 1);
    LimitSet::new(limit).unwrap_or_default()
}

pub(super) fn throttled_world(clock: SimClock, limits: LimitSet) -> Shared {
    let mut world = World::new(Scenario::calm(1), clock, limits);
    world.throttling = Some(Throttling::default());
    Arc::new(Mutex::new(world))
}

pub(super) fn settings(chunks: bool) -> Settings {
    Settings {
        chunks: if chunks {
            ChunkScope::Everywhere
        } else {
            ChunkScope::default()
        },
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
        let settings = settings(flood.chunks);
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
                "{} unwritten, {} in chunks",
                report.unwritten_total, stats.chunk_tokens
            );
            results(&shared).outcome.violations.push(what);
        }
    }
    sum_up(&world, &shared, flood.limit, bound, stranded)
}

/// What is booked in the table, next to what the processes counted.
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
