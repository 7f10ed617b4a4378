//! The processes of a fleet, from their first call to their last.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::load::Fleet;
use super::reference::Reference;
use crate::Error;
use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::Settings;
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::faults::Scenario;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{Shared, World, lock};

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) unavailable: u64,
    pub(super) writes: u64,
    pub(super) reads: u64,
    /// Tokens admitted of the last limit, and those of an exact bucket that got the same calls.
    tokens: u64,
    exact: u64,
    pub(super) violations: Vec<String>,
}

impl Outcome {
    pub(super) fn writes_per_100(&self) -> u64 {
        self.per_100(self.writes)
    }

    pub(super) fn per_100(&self, requests: u64) -> u64 {
        (requests * 100).checked_div(self.admitted).unwrap_or(0)
    }

    /// Thousandths of what an exact bucket would have admitted.
    pub(super) fn admitted_per_mille(&self) -> u64 {
        (self.tokens * 1_000).checked_div(self.exact).unwrap_or(1_000)
    }
}

struct Process {
    fleet: Fleet,
    world: Shared,
    buckets: Arc<Buckets>,
    outcome: Arc<Mutex<Outcome>>,
    reference: Arc<Mutex<Reference>>,
    random: fastrand::Rng,
}

impl Process {
    /// Calls at random times, each on its own, until the end.
    async fn run(mut self, end: Instant) {
        let mut calls = JoinSet::new();
        loop {
            let mean =
                Duration::from_secs(self.fleet.processes).div_f64(f64::from(self.fleet.calls_per_second));
            sleep(mean.mul_f64(-(1.0 - self.random.f64()).ln())).await;
            if Instant::now() >= end {
                break;
            }
            let tokens = self.fleet.tpm.map(|_| self.random.u64(100..=900));
            calls.spawn(self.call(tokens));
        }
        calls.join_all().await;
    }

    fn call(&self, tokens: Option<u64>) -> impl Future<Output = ()> + Send + 'static {
        let mut acquire = Acquire::new(self.buckets.clone(), "shared", RESOURCE);
        acquire = acquire.consume("rpm", 1);
        if let Some(tokens) = tokens {
            acquire = acquire.consume("tpm", tokens);
        }
        let amounts: Vec<u64> = std::iter::once(1).chain(tokens).collect();
        let counted = tokens.unwrap_or(1);
        let at = lock(&self.world).clock.millis();
        let exact = self
            .reference
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .admits(&amounts, at);
        let outcome = self.outcome.clone();
        async move {
            let result = match acquire.await {
                Ok(lease) => lease.commit().await.map(|()| true),
                Err(error) => Err(error),
            };
            let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.exact += if exact { counted } else { 0 };
            match result {
                Ok(_) => {
                    outcome.admitted += 1;
                    outcome.tokens += counted;
                }
                Err(Error::Refused(_)) => outcome.refused += 1,
                Err(_) => outcome.unavailable += 1,
            }
        }
    }
}

pub(super) fn simulate(fleet: Fleet) -> Outcome {
    block_on(run(fleet))
}

async fn run(fleet: Fleet) -> Outcome {
    let clock = SimClock {
        start: Instant::now(),
        skew: 0,
    };
    let world = Arc::new(Mutex::new(World::new(Scenario::calm(1), clock, fleet.limits())));
    let outcome = Arc::new(Mutex::new(Outcome::default()));
    let reference = Arc::new(Mutex::new(Reference::new(&fleet.limits(), clock.millis())));
    let end = Instant::now() + Duration::from_secs(fleet.seconds());
    let mut processes = JoinSet::new();
    for seed in 0..fleet.processes {
        let port = Port::new(&world);
        let settings = Settings::default();
        let process = Process {
            fleet,
            world: world.clone(),
            buckets: connect(&port, clock, settings, seed),
            outcome: outcome.clone(),
            reference: reference.clone(),
            random: fastrand::Rng::with_seed(seed.wrapping_mul(7_919)),
        };
        processes.spawn(process.run(end));
    }
    processes.join_all().await;
    let mut world = lock(&world);
    world.oracle.finish();
    let mut outcome = std::mem::take(&mut *outcome.lock().unwrap_or_else(PoisonError::into_inner));
    (outcome.writes, outcome.reads) = (world.attempts, world.reads);
    outcome.violations = world
        .oracle
        .violations
        .iter()
        .map(|violation| violation.what.clone())
        .collect();
    outcome
}
