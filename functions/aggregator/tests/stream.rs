//! The aggregator behind an event source mapping, with everything that can go wrong.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::BTreeSet;

use support::{Backend as _, Dynoxide, Memory, Outcome, Trial};
use zae_limiter_aggregator::Rules;
use zae_limiter_testing::stream::{Database, Options, bucket_changes};

fn assert_exact(outcome: &Outcome, malformed: usize) {
    assert_eq!(outcome.differences, [] as [String; 0]);
    assert_eq!(outcome.discarded, 0);
    let letters: BTreeSet<_> = outcome.letters.iter().collect();
    assert_eq!(
        letters.len(),
        malformed,
        "each malformed record is kept, and nothing else"
    );
}

#[tokio::test(start_paused = true)]
async fn totals_equal_consumption_after_100_000_changes_of_500_buckets_with_random_faults() {
    let workload = bucket_changes(6, 100_000, 500);
    let outcome = Trial::new(6).run(Dynoxide(Database::new()), &workload).await;
    println!(
        "{} deliveries, {} faults, {} duplicates",
        outcome.deliveries, outcome.faults, outcome.duplicates
    );
    assert_exact(&outcome, workload.malformed);
    assert!(outcome.deliveries > 150_000 && outcome.faults > 10_000 && outcome.duplicates > 10_000);
}

#[tokio::test(start_paused = true)]
async fn totals_equal_consumption_for_many_seeds() {
    for seed in 100..108 {
        let workload = bucket_changes(seed, 2_000, 40);
        let mut trial = Trial::new(seed);
        trial.options.batch_size = [30, 300, 1_000][usize::try_from(seed).unwrap() % 3];
        assert_exact(&trial.run(Memory::default(), &workload).await, workload.malformed);
    }
}

#[tokio::test(start_paused = true)]
async fn without_faults_every_record_is_delivered_once_and_nothing_is_a_duplicate() {
    let workload = bucket_changes(1, 3_000, 50);
    let mut trial = Trial::new(1);
    (trial.trouble, trial.options) = (0, Options::aggregator());
    let outcome = trial.run(Memory::default(), &workload).await;
    assert_exact(&outcome, workload.malformed);
    assert_eq!(outcome.duplicates, 0);
}

/// True if some seed shows that the broken rule is missed.
async fn is_caught(break_rule: impl Fn(&mut Trial)) -> bool {
    for seed in 0..6 {
        let workload = bucket_changes(seed, 3_000, 40);
        let mut trial = Trial::new(seed);
        trial.options.batch_size = 100;
        let intact = trial.run(Memory::default(), &workload).await;
        assert_exact(&intact, workload.malformed);
        break_rule(&mut trial);
        let broken = trial.run(Memory::default(), &workload).await;
        if !broken.differences.is_empty() {
            return true;
        }
    }
    false
}

fn rules(break_rule: impl Fn(&mut Rules)) -> impl Fn(&mut Trial) {
    move |trial| break_rule(&mut trial.rules)
}

#[tokio::test(start_paused = true)]
async fn comparing_raw_sequence_numbers_is_caught() {
    assert!(is_caught(rules(|rules| rules.padded = false)).await);
}

#[tokio::test(start_paused = true)]
async fn a_condition_on_the_last_number_is_caught() {
    assert!(is_caught(rules(|rules| rules.from_first = false)).await);
}

#[tokio::test(start_paused = true)]
async fn skipping_groups_that_sum_up_to_nothing_is_caught() {
    assert!(is_caught(rules(|rules| rules.zero_sums = false)).await);
}

#[tokio::test(start_paused = true)]
async fn a_second_write_without_compare_and_set_is_caught() {
    assert!(is_caught(rules(|rules| rules.compare_and_set = false)).await);
}

#[tokio::test(start_paused = true)]
async fn tokens_without_the_streams_label_are_caught() {
    assert!(is_caught(rules(|rules| rules.labelled = false)).await);
}

#[tokio::test(start_paused = true)]
async fn bounded_retries_are_caught() {
    assert!(is_caught(|trial| trial.options.maximum_retry_attempts = Some(3)).await);
}

#[test]
fn the_model_of_the_table_does_what_dynamodb_does() {
    use proptest::prelude::*;
    use zae_limiter_aggregator::{Condition, SnapshotUpdate, Value};
    use zae_limiter_schema::keys::Key;

    let token = || (0u8..6).prop_map(|n| format!("2026/{n}"));
    let condition = prop_oneof![
        token().prop_map(Condition::Before),
        token().prop_map(Condition::CountedTo),
        Just(Condition::Any),
    ];
    let update = (condition, token(), 0u8..2, -9i128..9).prop_map(|(condition, next, row, amount)| {
        let text = |text: &str| Value::Text(text.to_owned());
        SnapshotUpdate {
            key: Key {
                pk: "ENTITY#e".to_owned(),
                sk: format!("#USAGE#r#2026-0{}", row + 1),
            },
            condition,
            set: [
                ("entity_id", text("e")),
                ("resource", text("r")),
                ("window", text("monthly")),
                ("window_start", text(&format!("2026-0{}-01T00:00:00Z", row + 1))),
                ("_sq", text(&next)),
                ("_sa", text("17")),
                ("ttl", Value::Number(5)),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
            add: vec![("in-put.x".to_owned(), amount), ("total_events".to_owned(), 1)],
        }
    });
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let result = runner.run(&prop::collection::vec(update, 1..12), |updates| {
        let (model, real) = (Memory::default(), Dynoxide(Database::new()));
        for update in &updates {
            prop_assert_eq!(model.update(update), real.update(update));
        }
        let mut found = real.snapshots();
        found.sort_by_key(|snapshot| snapshot.window);
        prop_assert_eq!(model.snapshots(), found);
        Ok(())
    });
    result.unwrap();
}
