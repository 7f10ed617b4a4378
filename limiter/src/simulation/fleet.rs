//! Many processes that share one bucket: what an admission costs, and that no call fails while the table answers.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zae_limiter_schema::bucket::{Attributes, Params, Scalar, TokenBucket};
use zae_limiter_schema::{Limit, LimitSet};

use super::Mutation;
use super::clock::SimClock;
use super::faults::Scenario;
use super::run::connect;
use super::traffic::RESOURCE;
use super::world::{Port, Shared, World, lock};
use crate::Error;
use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::Settings;

/// A load: how many processes, and what they ask for.
#[derive(Debug, Clone, Copy)]
struct Fleet {
    name: &'static str,
    processes: u64,
    /// Of all processes together.
    calls_per_second: u32,
    /// Burst and refill a minute of `rpm`, of which each call takes one.
    rpm: (u64, u64),
    /// Burst and refill a minute of `tpm`, of which each call takes 100 to 900.
    tpm: Option<(u64, u64)>,
    /// The most writes for 100 admissions.
    most_writes: u64,
    /// The load exceeds a limit, once its burst is used up.
    saturated: bool,
}

const FLEETS: [Fleet; 8] = [
    Fleet::one_limit("8 processes, 40/s, one limit at 40 %", 8, 40, (1_000, 6_000)),
    Fleet::one_limit(
        "20 processes, 200/s, one limit at 60 %",
        20,
        200,
        (20_000, 20_000),
    ),
    Fleet::one_limit(
        "50 processes, 200/s, one limit at 60 %",
        50,
        200,
        (20_000, 20_000),
    ),
    Fleet::one_limit(
        "100 processes, 200/s, one limit at 60 %",
        100,
        200,
        (20_000, 20_000),
    ),
    Fleet::one_limit(
        "1,000 processes, 200/s, one limit at 60 %",
        1_000,
        200,
        (20_000, 20_000),
    ),
    Fleet {
        tpm: Some((10_000_000, 10_000_000)),
        ..Fleet::one_limit(
            "100 processes, 200/s, rpm 20 %, tpm 60 %",
            100,
            200,
            (60_000, 60_000),
        )
    },
    Fleet {
        tpm: Some((6_600_000, 6_660_000)),
        ..Fleet::one_limit("50 processes, 200/s, both at 90 %", 50, 200, (13_300, 13_320))
    },
    Fleet {
        tpm: Some((200_000, 4_000_000)),
        most_writes: 240,
        saturated: true,
        ..Fleet::one_limit(
            "100 processes, 200/s, rpm 60 %, tpm saturated",
            100,
            200,
            (20_000, 19_980),
        )
    },
];

impl Fleet {
    const fn one_limit(name: &'static str, processes: u64, calls_per_second: u32, rpm: (u64, u64)) -> Self {
        Self {
            name,
            processes,
            calls_per_second,
            rpm,
            tpm: None,
            most_writes: 110,
            saturated: false,
        }
    }

    /// How long it is simulated. A burst that is not used up hides what saturation costs.
    fn seconds(&self) -> u64 {
        if is_long() || self.saturated { 20 } else { 5 }
    }

    fn limits(&self) -> LimitSet {
        let limit = |name: &str, (burst, amount)| Limit::custom(name, burst, burst, amount, 60);
        let limits = [
            Some(limit("rpm", self.rpm)),
            self.tpm.map(|tpm| limit("tpm", tpm)),
        ];
        LimitSet::new(limits.into_iter().flatten().flatten()).unwrap_or_default()
    }
}

/// What a run came to.
#[derive(Debug, Default)]
struct Outcome {
    admitted: u64,
    refused: u64,
    unavailable: u64,
    writes: u64,
    reads: u64,
    /// Tokens admitted of the last limit, and those of an exact bucket that got the same calls.
    tokens: u64,
    exact: u64,
    violations: Vec<String>,
}

impl Outcome {
    fn writes_per_100(&self) -> u64 {
        self.per_100(self.writes)
    }

    fn per_100(&self, requests: u64) -> u64 {
        (requests * 100).checked_div(self.admitted).unwrap_or(0)
    }

    /// Thousandths of what an exact bucket would have admitted.
    fn admitted_per_mille(&self) -> u64 {
        (self.tokens * 1_000).checked_div(self.exact).unwrap_or(1_000)
    }
}

/// An exact bucket of every limit that gets the same calls at the same moments, and the sum of what it admitted.
#[derive(Debug)]
struct Reference {
    buckets: Vec<TokenBucket>,
    at: i64,
}

impl Reference {
    fn new(limits: &LimitSet, at: i64) -> Self {
        let buckets = limits.iter().map(|limit| TokenBucket::full(Params::from(limit)));
        Self {
            buckets: buckets.collect(),
            at,
        }
    }

    fn admits(&mut self, amounts: &[u64], at: i64) -> bool {
        let elapsed = i128::from(at - self.at);
        self.at = at;
        let debits = || amounts.iter().map(|tokens| i128::from(*tokens) * 1000);
        for bucket in &mut self.buckets {
            *bucket = bucket.refilled(elapsed);
        }
        let fits = self
            .buckets
            .iter()
            .zip(debits())
            .all(|(bucket, debit)| bucket.tokens >= debit);
        for (bucket, debit) in self.buckets.iter_mut().zip(debits()).filter(|_| fits) {
            *bucket = bucket.force_take(0, debit);
        }
        fits
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
    /// Calls at random moments, each on its own, until the end.
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
        let mut acquire = Acquire::new(self.buckets.clone(), "shared".to_owned(), RESOURCE.to_owned());
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
                Err(Error::RateLimitExceeded(_)) => outcome.refused += 1,
                Err(_) => outcome.unavailable += 1,
            }
        }
    }
}

fn simulate(fleet: Fleet, mutation: Option<Mutation>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(fleet, mutation)),
        Err(error) => panic!("no runtime: {error}"),
    }
}

async fn run(fleet: Fleet, mutation: Option<Mutation>) -> Outcome {
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
        let port = Arc::new(Port {
            world: world.clone(),
            alive: AtomicBool::new(true),
        });
        let settings = Settings {
            mutation,
            ..Settings::default()
        };
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

fn is_long() -> bool {
    std::env::var("ZAE_SIMULATION").is_ok_and(|length| length == "long")
}

#[test]
fn a_shared_bucket_costs_little_more_than_one_write_per_admission_and_fails_no_call() {
    eprintln!("| processes and load | writes per admission | reads | unavailable | of an exact bucket |");
    eprintln!("|---|---|---|---|---|");
    for fleet in FLEETS {
        let outcome = simulate(fleet, None);
        let (writes, reads) = (outcome.writes_per_100(), outcome.per_100(outcome.reads));
        let share = outcome.admitted_per_mille();
        eprintln!(
            "| {} | {}.{:02} | {}.{:02} | {} | {}.{} % |",
            fleet.name,
            writes / 100,
            writes % 100,
            reads / 100,
            reads % 100,
            outcome.unavailable,
            share / 10,
            share % 10
        );
        assert_eq!(outcome.violations, Vec::<String>::new(), "{}", fleet.name);
        assert_eq!(outcome.unavailable, 0, "{}: {outcome:?}", fleet.name);
        assert!(writes <= fleet.most_writes, "{}: {outcome:?}", fleet.name);
        assert!(share >= 990, "{}: {outcome:?}", fleet.name);
    }
}

#[test]
fn without_the_margin_or_the_guess_shared_buckets_cost_more() {
    for (fleet, mutation) in [(FLEETS[1], Mutation::NoMargin), (FLEETS[3], Mutation::NoGuess)] {
        let outcome = simulate(fleet, Some(mutation));
        assert!(
            outcome.writes_per_100() > fleet.most_writes,
            "{mutation:?}: {outcome:?}"
        );
    }
}

#[test]
fn a_saturated_bucket_costs_more_if_refills_are_written_from_old_images() {
    let saturated = FLEETS.into_iter().find(|fleet| fleet.saturated).unwrap();
    let outcome = simulate(saturated, Some(Mutation::RefillsFromOldImages));
    assert!(outcome.writes_per_100() > saturated.most_writes, "{outcome:?}");
}

/// A process that makes one call and ends, as a Lambda does.
async fn call_once(world: &Shared, clock: SimClock, seed: u64) -> crate::Result<()> {
    let port = Arc::new(Port {
        world: world.clone(),
        alive: AtomicBool::new(true),
    });
    let buckets = connect(&port, clock, Settings::default(), seed);
    let acquire = Acquire::new(buckets, "shared".to_owned(), RESOURCE.to_owned());
    acquire.consume("rpm", 1).await?.commit().await
}

#[test]
fn one_call_processes_leave_an_item_of_at_most_one_kilobyte() {
    let calls = if is_long() { 100_000 } else { 2_000 };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let Ok(runtime) = runtime else {
        panic!("no runtime")
    };
    let (bytes, failed) = runtime.block_on(async {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let limits = ["rpm", "tpm", "rpd", "tpd"].map(|name| Limit::per_day(name, 1_000_000_000));
        let limits = LimitSet::new(limits.into_iter().flatten()).unwrap_or_default();
        let world = Arc::new(Mutex::new(World::new(Scenario::calm(1), clock, limits)));
        let mut failed = 0;
        for seed in 0..calls {
            sleep(Duration::from_millis(100)).await;
            failed += u64::from(call_once(&world, clock, seed).await.is_err());
        }
        let world = lock(&world);
        (world.items.values().map(item_bytes).max().unwrap_or(0), failed)
    });
    // The key and the four attributes that repeat entity and resource, with UUIDs instead of the short names here.
    let with_uuids = bytes + 3 * 36;
    eprintln!("{calls} one-call processes: {bytes} bytes, {with_uuids} with UUIDs, {failed} failed");
    assert_eq!(failed, 0);
    assert!(with_uuids <= 1_024, "{with_uuids}");
}

/// The size of an item as DynamoDB counts it: names, text and flags by byte, numbers by two digits a byte and one more.
fn item_bytes(item: &Attributes) -> usize {
    let value = |value: &Scalar| match value {
        Scalar::Number(number) => number.unsigned_abs().to_string().len().div_ceil(2) + 1,
        Scalar::Text(text) => text.len(),
        Scalar::Flag(_) | Scalar::Other(_) => 1,
    };
    let own: usize = item
        .iter()
        .map(|(attr, scalar)| attr.to_string().len() + value(scalar))
        .sum();
    own + "PK".len() + "SK".len() + "ENTITY#shared".len() + "BUCKET#model".len()
}
