//! The loads, and what they cost if a rule is broken.

use std::time::Duration;

use tokio::time::sleep;
use zae_limiter_schema::bucket::{Attributes, Decoded};

use super::super::outages::Process;
use super::load::{FLEETS, Fleet};
use super::run::simulate;
use crate::simulation::clock::block_on;
use crate::simulation::world::lock;

#[test]
fn a_shared_bucket_costs_little_more_than_one_write_per_admission_and_fails_no_call() {
    eprintln!("| processes and load | writes per admission | reads | unavailable | of an exact bucket |");
    eprintln!("|---|---|---|---|---|");
    for fleet in FLEETS {
        let outcome = simulate(fleet);
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

/// The level right after a call for one token on a full bucket of 100 that no other process uses, in millitokens.
fn level_of_one_process() -> i128 {
    block_on(async move {
        let process = Process::new((100, 60, 60));
        process.take("a", 1).await.unwrap();
        sleep(Duration::from_secs(2)).await;
        process.take("a", 1).await.unwrap();
        let world = lock(&process.world);
        let Some(Ok(Decoded::Bucket(image))) = world.items.values().next().map(Attributes::decode) else {
            panic!("no bucket")
        };
        let elapsed = i128::from(world.clock.millis() - image.refilled_at.millis());
        let limit = image.limits.values().next().unwrap();
        limit.token_bucket.available(elapsed)
    })
}

#[test]
fn a_bucket_of_one_process_is_exact() {
    // A token a second comes back while the response is on its way.
    assert!((99_000..99_010).contains(&level_of_one_process()));
}

/// A bucket that is full again after 5 ms, so that every write moves its refill time and refuses those of the others.
const REFILLS_AT_ONCE: Fleet = Fleet::one_limit(
    "200 processes, 2,000/s, one limit at 10 % that fills in 5 ms",
    200,
    2_000,
    (100, 1_200_000),
);

#[test]
fn contention_is_no_outage() {
    let outcome = simulate(REFILLS_AT_ONCE);
    eprintln!(
        "{}: {} calls admitted, {} refused and {} failed with {} writes",
        REFILLS_AT_ONCE.name, outcome.admitted, outcome.refused, outcome.unavailable, outcome.writes
    );
    // At twelve writes per admission, more than an item takes, hardly a call runs out of time.
    assert!(outcome.refused * 1_000 < outcome.admitted, "{outcome:?}");
    assert_eq!((outcome.unavailable, outcome.violations), (0, Vec::new()));
}

const fn saturated(name: &'static str, calls_per_second: u32) -> Fleet {
    Fleet {
        most_writes: 240,
        saturated: true,
        ..Fleet::one_limit(name, 50, calls_per_second, (600, 6_000))
    }
}

/// Fifty processes on a bucket of 100 calls a second that get five and ten times as many.
const SATURATED: [Fleet; 2] = [
    saturated("50 processes, 500/s, limit 100/s", 500),
    saturated("50 processes, 1,000/s, limit 100/s", 1_000),
];

#[test]
fn a_saturated_bucket_refuses_and_is_never_unavailable() {
    for fleet in SATURATED {
        let outcome = simulate(fleet);
        let writes = outcome.writes_per_100();
        eprintln!(
            "{}: {} admitted, {} refused, {} unavailable, {}.{:02} writes and {} reads per 100 admissions, {} per mille",
            fleet.name,
            outcome.admitted,
            outcome.refused,
            outcome.unavailable,
            writes / 100,
            writes % 100,
            outcome.per_100(outcome.reads),
            outcome.admitted_per_mille()
        );
        assert_eq!(outcome.violations, Vec::<String>::new(), "{}", fleet.name);
        assert_eq!(outcome.unavailable, 0, "{}: {outcome:?}", fleet.name);
        assert!(writes <= fleet.most_writes, "{}: {outcome:?}", fleet.name);
        assert!(outcome.admitted_per_mille() >= 990, "{}: {outcome:?}", fleet.name);
    }
}
