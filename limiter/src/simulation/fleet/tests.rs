//! The loads, and what they cost if a rule is broken.

use std::time::Duration;

use tokio::time::sleep;
use zae_limiter_schema::bucket::{Attributes, Decoded};

use super::super::Mutation;
use super::super::clock::block_on;
use super::super::outages::Process;
use super::super::world::lock;
use super::load::{FLEETS, Fleet};
use super::run::simulate;

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

/// The level right after a call for one token on a full bucket of 100 that no other process uses, in millitokens.
fn level_of_one_process(mutation: Option<Mutation>) -> i128 {
    block_on(async move {
        let process = Process::new((100, 60, 60), mutation);
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
    assert!((99_000..99_010).contains(&level_of_one_process(None)));
    assert!(level_of_one_process(Some(Mutation::MarginWithoutOthers)) < 99_000);
}

/// A bucket that is full again after 5 ms, so that every write moves its refill time and refuses those of the others.
const REFILLS_AT_ONCE: Fleet = Fleet::one_limit(
    "200 processes, 2,000/s, one limit at 10 % that fills in 5 ms",
    200,
    2_000,
    (100, 1_200_000),
);

#[test]
fn calls_are_tried_for_as_long_as_their_time_budget_lasts_and_not_eight_times() {
    let (patient, tired) = (
        simulate(REFILLS_AT_ONCE, None),
        simulate(REFILLS_AT_ONCE, Some(Mutation::EightTries)),
    );
    eprintln!(
        "{}: {} calls admitted and {} failed with {} writes, {} failed if they are tried eight times",
        REFILLS_AT_ONCE.name, patient.admitted, patient.unavailable, patient.writes, tired.unavailable
    );
    // At twelve writes per admission, more than an item takes, hardly a call runs out of time.
    assert!(patient.unavailable * 1_000 < patient.admitted, "{patient:?}");
    assert_eq!((patient.refused, patient.violations), (0, Vec::new()));
    assert!(tired.unavailable > tired.admitted, "{tired:?}");
}
