//! Totals equal consumption, whatever goes wrong, and only because of every one of the rules.

use std::collections::BTreeSet;

use zae_limiter_schema::Timestamp;
use zae_limiter_testing::stream::{
    Chaos, Database, Invoke as _, ItemChange, Options, Stream, bucket_changes,
};

use super::{Backend as _, Dynoxide, InProcess, Memory, Outcome, Trial};
use crate::rules::{Rule, Rules};

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
async fn totals_equal_consumption_with_parallel_batches_of_one_shard() {
    for seed in 200..204 {
        let workload = bucket_changes(seed, 3_000, 40);
        let mut trial = Trial::new(seed);
        trial.options.batch_size = 200;
        trial.options.parallelization_factor = 4;
        let outcome = trial.run(Memory::default(), &workload).await;
        assert_exact(&outcome, workload.malformed);
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

/// True if the totals are wrong for some seed without the rule.
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

fn without(rule: Rule) -> impl Fn(&mut Trial) {
    move |trial| trial.rules = Rules::without(rule)
}

#[tokio::test(start_paused = true)]
async fn comparing_raw_sequence_numbers_is_caught() {
    assert!(is_caught(without(Rule::PaddedNumbers)).await);
}

#[tokio::test(start_paused = true)]
async fn a_condition_on_the_last_number_is_caught() {
    assert!(is_caught(without(Rule::ConditionOnFirst)).await);
}

#[tokio::test(start_paused = true)]
async fn skipping_groups_that_sum_to_zero_is_caught() {
    assert!(is_caught(without(Rule::ZeroSums)).await);
}

#[tokio::test(start_paused = true)]
async fn a_second_write_without_compare_and_set_is_caught() {
    assert!(is_caught(without(Rule::CompareAndSet)).await);
}

/// How many acquires each window counts of three, the last of which is in a new stream. Its number lies between those of
/// the first two.
async fn events_of_two_streams(rules: Rules) -> Vec<i64> {
    let function = InProcess::new(Memory::default(), Chaos::new(0, 0), rules);
    let image = |n: u64| format!(r#"{{"b_rpm_tc":{{"N":"{}"}},"ev":{{"N":"{n}"}}}}"#, n * 1_000);
    let push = |stream: &mut Stream, n: u64| {
        stream.push(&ItemChange {
            kind: "MODIFY",
            pk: "ENTITY#user-1",
            sk: "#BUCKET#gpt-4",
            at: 1_769_889_600,
            old: Some(&image(n - 1)),
            new: Some(&image(n)),
        });
    };
    let mut first = Stream::new(Timestamp::from_seconds(1_769_800_000), 1_000);
    push(&mut first, 1);
    first.split(0);
    push(&mut first, 2);
    let mut second = Stream::new(Timestamp::from_seconds(1_769_880_000), 2_000);
    push(&mut second, 3);
    for stream in [first, second] {
        function.invoke(&stream.event()).await.unwrap();
    }
    let snapshots = function.table().backend.snapshots();
    snapshots.iter().map(|snapshot| snapshot.total_events).collect()
}

#[tokio::test(start_paused = true)]
async fn positions_without_the_streams_label_are_caught() {
    assert_eq!(events_of_two_streams(Rules::default()).await, [3, 3, 3]);
    let broken = Rules::without(Rule::StreamLabel);
    assert_eq!(events_of_two_streams(broken).await, [2, 2, 2]);
}

/// Batches are given up at the first failure, and nothing is delivered again.
fn give_up(trial: &mut Trial) {
    trial.options = Options {
        batch_size: 100,
        maximum_retry_attempts: Some(0),
        bisect: false,
        ..Options::aggregator()
    };
}

#[tokio::test(start_paused = true)]
async fn bounded_retries_are_caught() {
    assert!(is_caught(give_up).await);
}

#[test]
fn the_model_of_the_table_does_what_dynamodb_does() {
    use proptest::prelude::*;
    use zae_limiter_schema::AttributeValue;
    use zae_limiter_schema::keys::Key;

    use crate::{Condition, Digest, Position, SnapshotUpdate};

    let position = || (0u8..6).prop_map(|n| Position::stored(&format!("2026/{n}")));
    let link = || (0u8..2).prop_map(|n| n.to_string());
    let gaps = || prop::option::of((0u8..2).prop_map(|n| n.to_string()));
    let condition = prop_oneof![
        Just(Condition::New),
        (position(), link()).prop_map(|(first, link)| Condition::Follows {
            first,
            link: Digest::stored(&link)
        }),
        (position(), gaps()).prop_map(|(last, gaps)| Condition::Unchanged { last, gaps }),
        position().prop_map(Condition::Before),
        Just(Condition::Always),
    ];
    let update = (condition, position(), link(), 0u8..2, -9i128..9);
    let update = update.prop_map(|(condition, next, link, row, amount)| {
        let text = |text: &str| AttributeValue::S(text.to_owned());
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
                ("_sq", text(next.as_str())),
                ("_ln", text(&link)),
                ("_sa", text("17")),
                ("ttl", AttributeValue::N("5".to_owned())),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
            set_if_absent: vec![("_gp".to_owned(), text(&link))],
            add: vec![("in-put.x".to_owned(), amount), ("total_events".to_owned(), 1)],
            add_members: vec![],
            forgotten_gaps: 0,
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
