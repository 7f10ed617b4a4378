//! What an admission costs and how many calls are admitted, next to an exact limiter, where nothing goes wrong but clocks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zae_limiter_schema::bucket::{Params, TokenBucket};
use zae_limiter_schema::{Limit, LimitKind, LimitSet, Timestamp};

use super::midnight::SKEW;
use crate::Error;
use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::Settings;
use crate::simulation::clock::{START, SimClock, block_on};
use crate::simulation::faults::Scenario;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{Shared, World, lock};

const PROCESSES: u64 = 100;
const CALLS_PER_SECOND: u32 = 200;
/// A midnight in Berlin, in the middle of the run.
const MIDNIGHT: &str = "2024-03-31T22:00:00Z";
const EACH_SIDE: Duration = Duration::from_secs(6);
/// From a call to the table and back, in milliseconds: a permit is held that much longer, by an exact limiter there too.
const ROUND_TRIP: i64 = 5;

/// What is asked of the bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) limits: &'static [&'static str],
    /// The mean time from a call to its end, in milliseconds.
    pub(super) mean_hold: u64,
    /// Calls take one more of the quota than they use.
    pub(super) corrected: bool,
}

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) unavailable: u64,
    /// Writes of buckets, refused ones included.
    pub(super) writes: u64,
    /// What an exact limiter admitted.
    pub(super) exact: u64,
    pub(super) violations: Vec<String>,
}

impl Outcome {
    /// Thousandths of what an exact limiter admitted.
    pub(super) fn per_mille(&self) -> u64 {
        (self.admitted * 1_000).checked_div(self.exact).unwrap_or(1_000)
    }

    pub(super) fn writes_per_100(&self) -> u64 {
        (self.writes * 100).checked_div(self.admitted).unwrap_or(0)
    }
}

/// A limiter that knows everything at once, and the true time.
#[derive(Debug)]
struct Exact {
    limits: LimitSet,
    rate: Option<TokenBucket>,
    used: u64,
    period_end: Timestamp,
    /// When the permits that are held come back.
    held: BinaryHeap<Reverse<i64>>,
    at: i64,
}

impl Exact {
    fn new(limits: LimitSet, at: i64) -> Self {
        let rate = limits.iter().find_map(Limit::rate).map(Params::from);
        Self {
            rate: rate.map(TokenBucket::full),
            limits,
            used: 0,
            period_end: Timestamp::from_millis(0),
            held: BinaryHeap::new(),
            at,
        }
    }

    fn admits(&mut self, amount: u64, hold: u64, at: i64) -> bool {
        let elapsed = i128::from(at - self.at);
        self.at = at;
        self.rate = self.rate.map(|rate| rate.refilled(elapsed));
        while self.held.peek().is_some_and(|Reverse(back)| *back <= at) {
            self.held.pop();
        }
        let now = Timestamp::from_millis(at);
        let mut admits = self.rate.is_none_or(|rate| rate.tokens >= 1_000);
        for limit in self.limits.iter() {
            match limit.kind() {
                LimitKind::Rate(_) => {}
                LimitKind::Quota(quota) => {
                    if now >= self.period_end {
                        (self.used, self.period_end) = (0, quota.period().end_after(now));
                    }
                    admits &= self.used + amount <= quota.amount().get();
                }
                LimitKind::Concurrency(limit) => admits &= (self.held.len() as u64) < limit.permits().get(),
            }
        }
        if admits {
            self.rate = self.rate.map(|rate| rate.force_take(0, 1_000));
            self.used += amount;
            self.held.push(Reverse(at + hold.cast_signed() + ROUND_TRIP));
        }
        admits
    }
}

struct Process {
    load: Load,
    world: Shared,
    buckets: Arc<Buckets>,
    outcome: Arc<Mutex<Outcome>>,
    exact: Arc<Mutex<Exact>>,
    random: fastrand::Rng,
}

impl Process {
    /// Calls at random times, each on its own, until the end.
    async fn run(mut self, end: Instant) {
        let mut calls = JoinSet::new();
        loop {
            let mean = Duration::from_secs(PROCESSES) / CALLS_PER_SECOND;
            sleep(mean.mul_f64(self.exponential())).await;
            if Instant::now() >= end {
                break;
            }
            let hold = Duration::from_millis(self.load.mean_hold).mul_f64(self.exponential());
            calls.spawn(self.call(hold));
        }
        calls.join_all().await;
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.f64()).ln()
    }

    fn call(&self, hold: Duration) -> impl Future<Output = ()> + Send + 'static {
        let corrected = self.load.corrected;
        let amount = if corrected { 2 } else { 1 };
        let mut acquire = Acquire::new(self.buckets.clone(), "team", RESOURCE);
        for limit in lock(&self.world).config.limits().iter() {
            let tokens = if limit.name().as_str() == "spend" {
                amount
            } else {
                1
            };
            acquire = acquire.consume(limit.name(), tokens);
        }
        let at = lock(&self.world).clock.millis();
        let millis = u64::try_from(hold.as_millis()).unwrap();
        let exact = self.exact.lock().unwrap().admits(amount, millis, at);
        let outcome = self.outcome.clone();
        outcome.lock().unwrap().exact += u64::from(exact);
        async move {
            let result = acquire.await;
            {
                let mut outcome = outcome.lock().unwrap();
                match &result {
                    Ok(_) => outcome.admitted += 1,
                    Err(Error::Refused(_)) => outcome.refused += 1,
                    Err(_) => outcome.unavailable += 1,
                }
            }
            let Ok(mut lease) = result else { return };
            sleep(hold).await;
            if corrected {
                lease.release("spend", 1);
            }
            if let Err(error) = lease.commit().await {
                outcome.lock().unwrap().violations.push(error.to_string());
            }
        }
    }
}

pub(super) fn simulate(load: Load) -> Outcome {
    block_on(run(load))
}

async fn run(load: Load) -> Outcome {
    let limits = load.limits.iter().map(|text| text.parse::<Limit>().unwrap());
    let limits = LimitSet::new(limits).unwrap();
    let side = i64::try_from(EACH_SIDE.as_millis()).unwrap();
    let clock = SimClock {
        start: Instant::now(),
        skew: Timestamp::parse(MIDNIGHT).unwrap().millis() - side - START,
    };
    let scenario = Scenario {
        skew: SKEW,
        ..Scenario::calm(1)
    };
    let world = Arc::new(Mutex::new(World::new(scenario, clock, limits.clone())));
    let outcome: Arc<Mutex<Outcome>> = Arc::default();
    let exact = Arc::new(Mutex::new(Exact::new(limits, clock.millis())));
    let end = Instant::now() + EACH_SIDE * 2;
    let mut random = fastrand::Rng::with_seed(7);
    let mut processes = JoinSet::new();
    for seed in 0..PROCESSES {
        let clock = SimClock {
            skew: clock.skew + random.i64(-SKEW..=SKEW),
            ..clock
        };
        let process = Process {
            load,
            world: world.clone(),
            buckets: connect(&Port::new(&world), clock, Settings::default(), seed),
            outcome: outcome.clone(),
            exact: exact.clone(),
            random: fastrand::Rng::with_seed(seed.wrapping_mul(7_919)),
        };
        processes.spawn(process.run(end));
    }
    processes.join_all().await;
    let world = lock(&world);
    let mut outcome = std::mem::take(&mut *outcome.lock().unwrap());
    outcome.writes = world.attempts;
    let violations = world
        .oracle
        .violations
        .iter()
        .map(|violation| violation.what.clone());
    outcome.violations.extend(violations);
    outcome
}
