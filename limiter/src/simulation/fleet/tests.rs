//! The loads, and what they cost if a rule is broken.

use super::super::Mutation;
use super::load::FLEETS;
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
