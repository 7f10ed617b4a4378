//! A process whose clock is two minutes ahead, beside others that know the time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use zae_limiter_schema::{Limit, LimitSet};

use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::Settings;
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::faults::Scenario;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{Shared, World, lock};

/// One token comes back each second.
const BURST: u64 = 10;

fn world(spread: i64) -> (Shared, SimClock) {
    let clock = SimClock {
        start: Instant::now(),
        skew: 0,
    };
    let limit = Limit::custom("rpm", BURST, BURST, 1, 1).unwrap();
    let scenario = Scenario {
        skew: spread / 2,
        ..Scenario::calm(1)
    };
    let world = World::new(scenario, clock, LimitSet::new([limit]).unwrap());
    (Arc::new(Mutex::new(world)), clock)
}

/// A process whose clock is off by this much.
fn process(world: &Shared, clock: SimClock, skew: i64, knows_time: bool) -> Arc<Buckets> {
    let port = Port::new(world);
    port.knows_time.store(knows_time, Ordering::Relaxed);
    let seed = skew.unsigned_abs() + 7;
    connect(&port, SimClock { skew, ..clock }, Settings::default(), seed)
}

/// Takes one token after the other for some time, and counts them.
async fn take_all(process: &Arc<Buckets>, time: Duration) -> u64 {
    let end = Instant::now() + time;
    let mut taken = 0;
    while Instant::now() < end {
        let call = Acquire::new(process.clone(), "user-1", RESOURCE).consume("rpm", 1);
        if let Ok(lease) = call.await {
            lease.commit().await.unwrap();
            taken += 1;
        }
        sleep(Duration::from_millis(50)).await;
    }
    taken
}

fn violations(world: &Shared) -> Vec<String> {
    let mut world = lock(world);
    world.oracle.finish();
    let violations = world.oracle.violations.iter();
    violations.map(|violation| format!("{violation:?}")).collect()
}

#[test]
fn a_bucket_recovers_from_a_clock_that_was_two_minutes_ahead() {
    block_on(async {
        let (world, clock) = world(120_000);
        let one = process(&world, clock, 0, true);
        let other = process(&world, clock, -1_500, true);
        let wrong = process(&world, clock, 120_000, false);
        let (first, seconds) = (Duration::from_secs(10), Duration::from_secs(100));
        let before = take_all(&one, first).await;
        // By its clock the bucket is full again, once.
        let by_wrong = take_all(&wrong, Duration::from_secs(2)).await;
        let (a, b) = tokio::join!(take_all(&one, seconds), take_all(&other, seconds));
        eprintln!("before {before}, by the wrong clock {by_wrong}, after {a} and {b}");
        assert!((BURST..=BURST + 2).contains(&by_wrong), "{by_wrong}");
        // A second of the clocks' uncertainty, and those of the wrong process that it had booked ahead.
        assert!((95..=102).contains(&(a + b)), "{a} and {b}");
        let (one, other) = (one.stats().refills_set_back, other.stats().refills_set_back);
        assert_eq!(one + other, 1);
        assert_eq!(violations(&world), [""; 0]);
    });
}

#[test]
fn clocks_that_differ_by_four_seconds_never_set_a_bucket_back() {
    block_on(async {
        let (world, clock) = world(4_000);
        let [one, two, three] = [-2_000, 0, 2_000].map(|skew| process(&world, clock, skew, true));
        let time = Duration::from_secs(60);
        let (a, b, c) = tokio::join!(take_all(&one, time), take_all(&two, time), take_all(&three, time));
        let all = a + b + c;
        assert!((BURST + 57..=BURST + 60 + 4).contains(&all), "{all}");
        for process in [one, two, three] {
            assert_eq!(process.stats().refills_set_back, 0);
        }
        assert_eq!(violations(&world), [""; 0]);
    });
}
