//! Processes whose clocks are set while they run, by minutes and hours, and responses with wrong dates.
//!
//! Unlike the other worlds, this one has what production has between a machine's clock and the buckets: every response carries
//! a date, and [`ServerTime`] judges the clock by it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use zae_limiter_dynamo::{LocalTime, ServerTime};
use zae_limiter_schema::{Limit, LimitSet, Timestamp};

use crate::Clock;
use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::Settings;
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::faults::Scenario;
use crate::simulation::is_long;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{Shared, World, lock};

/// One token comes back every six minutes: an hour that has not passed is worth a burst.
const BURST: u64 = 10;
const PERIOD: u64 = 3_600;
const DURATION: Duration = Duration::from_hours(6);
const PROCESSES: u64 = 3;
/// By how much clocks are set, in milliseconds; in between they are set right.
const STEPS: [i64; 7] = [
    -86_400_000,
    -3_600_000,
    -120_000,
    3_000,
    120_000,
    1_800_000,
    21_600_000,
];

/// A clock that can be set.
#[derive(Debug, Clone)]
struct SetClock {
    right: SimClock,
    off_by: Arc<AtomicI64>,
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        self.right.now().plus_millis(self.off_by.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        self.right.elapsed()
    }
}

/// A process that reads the dates of responses.
fn process(world: &Shared, clock: &SetClock, seed: u64) -> Arc<Buckets> {
    let local = clock.clone();
    let dates = ServerTime::new(move || LocalTime {
        now: local.now(),
        elapsed: local.elapsed(),
    });
    let port = Port {
        dates: Some(dates),
        ..Port::to(world)
    };
    connect(&Arc::new(port), clock.clone(), Settings::default(), seed)
}

/// Asks for one token again and again, and counts those it gets.
async fn take_all(process: Arc<Buckets>, mut random: fastrand::Rng, end: Instant) -> u64 {
    let mut taken = 0;
    while Instant::now() < end {
        let call = Acquire::new(process.clone(), "user-1", RESOURCE).consume("rpm", 1);
        if let Ok(lease) = call.await {
            lease.commit().await.unwrap();
            taken += 1;
        }
        sleep(Duration::from_millis(random.u64(5_000..=30_000))).await;
    }
    taken
}

/// Sets clocks, wrong and right in turn, once every process has heard enough responses.
async fn set_clocks(clocks: Vec<SetClock>, mut random: fastrand::Rng) {
    sleep(Duration::from_mins(3)).await;
    loop {
        sleep(Duration::from_secs(random.u64(20..=900))).await;
        let clock = &clocks[random.usize(..clocks.len())];
        let wrong = clock.off_by.load(Ordering::Relaxed) != 0;
        let off_by = if wrong && random.bool() {
            0
        } else {
            STEPS[random.usize(..STEPS.len())]
        };
        clock.off_by.store(off_by, Ordering::Relaxed);
    }
}

/// What was admitted, and what was wrong.
fn run(seed: u64) -> (u64, Vec<String>) {
    block_on(async move {
        let right = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let limit = Limit::custom("rpm", BURST, BURST, BURST, PERIOD).unwrap();
        let scenario = Scenario {
            // A clock within two seconds is not corrected.
            skew: 2_000,
            wrong_dates: 30,
            lost_responses: 50,
            ..Scenario::calm(seed)
        };
        let world = World::new(scenario, right, LimitSet::new([limit]).unwrap());
        let world = Arc::new(Mutex::new(world));
        let clocks: Vec<_> = (0..PROCESSES)
            .map(|_| SetClock {
                right,
                off_by: Arc::default(),
            })
            .collect();
        let end = Instant::now() + DURATION;
        let mut callers = tokio::task::JoinSet::new();
        for (number, clock) in (seed * 10..).zip(&clocks) {
            let random = fastrand::Rng::with_seed(number);
            callers.spawn(take_all(process(&world, clock, number), random, end));
        }
        let steps = tokio::spawn(set_clocks(clocks, fastrand::Rng::with_seed(seed)));
        let taken = callers.join_all().await.into_iter().sum();
        steps.abort();
        let mut world = lock(&world);
        world.oracle.finish();
        let violations = world.oracle.violations.iter();
        (
            taken,
            violations.map(|violation| format!("{violation:?}")).collect(),
        )
    })
}

#[test]
fn clocks_that_are_set_by_hours_admit_nothing_too_much_and_freeze_nothing() {
    let due = BURST + BURST * DURATION.as_secs() / PERIOD;
    let seeds = if is_long() { 100 } else { 4 };
    let (mut least, mut most) = (u64::MAX, 0);
    for seed in 0..seeds {
        let (taken, violations) = run(seed);
        assert_eq!(violations, [""; 0], "seed {seed}");
        (least, most) = (least.min(taken), most.max(taken));
    }
    eprintln!("clocks that are set: {least} to {most} admitted of {due} that came back in {DURATION:?}");
    assert!(
        most <= due && least * 100 >= due * 95,
        "{least} to {most} of {due}"
    );
}
