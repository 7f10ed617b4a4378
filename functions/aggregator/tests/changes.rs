//! What stream records mean, and how they come together.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use aws_lambda_events::dynamodb::EventRecord;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Change, Condition, Entry, Reading, Seen, SnapshotUpdate, Value, groups};
use zae_limiter_schema::{Timestamp, WindowKind};

const STREAM: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/limiter/stream/2026-01-31T12:00:00.000";
/// 2026-01-31T23:59:58Z.
const EVENING: i64 = 1_769_903_998;

fn record(kind: &str, number: &str, at: i64, old: &Json, new: &Json) -> EventRecord {
    let record = json!({
        "eventID": "1", "eventName": kind, "awsRegion": "eu-west-1", "eventSource": "aws:dynamodb",
        "eventSourceARN": STREAM,
        "dynamodb": {
            "ApproximateCreationDateTime": at, "SequenceNumber": number, "SizeBytes": 1,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            "Keys": {"PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#BUCKET#gpt-4"}},
            "OldImage": old, "NewImage": new,
        },
    });
    serde_json::from_value(record).unwrap()
}

fn modify(old: &Json, new: &Json) -> EventRecord {
    record("MODIFY", "100", EVENING, old, new)
}

fn change(record: &EventRecord) -> Option<Change> {
    Reading::of(record).unwrap().change
}

/// Consumption per limit and events of a change.
fn counted(record: &EventRecord) -> Option<(Vec<(String, i128)>, i128)> {
    let change = change(record)?;
    let consumed = change
        .consumed
        .iter()
        .map(|(limit, tokens)| (limit.to_string(), *tokens));
    Some((consumed.collect(), change.events))
}

fn tokens(list: &[(&str, i128)]) -> Vec<(String, i128)> {
    list.iter()
        .map(|(limit, tokens)| ((*limit).to_owned(), *tokens))
        .collect()
}

#[test]
fn consumption_is_the_difference_of_the_counters_and_events_that_of_ev() {
    let old = json!({"b_rpm_tc": {"N": "5000"}, "b_t-p.m_tc": {"N": "70000"}, "ev": {"N": "5"}, "o_abcd": {"N": "1"}});
    let new = json!({"b_rpm_tc": {"N": "7000"}, "b_t-p.m_tc": {"N": "69000"}, "ev": {"N": "7"}, "o_abcd": {"N": "2"}});
    assert_eq!(
        counted(&modify(&old, &new)),
        Some((tokens(&[("rpm", 2), ("t-p.m", -1)]), 2))
    );
}

#[test]
fn a_new_bucket_counts_from_zero() {
    let new = json!({"b_rpm_tc": {"N": "3000"}, "ev": {"N": "1"}, "o_abcd": {"N": "1"}});
    let insert = record("INSERT", "1", EVENING, &json!({}), &new);
    assert_eq!(counted(&insert), Some((tokens(&[("rpm", 3)]), 1)));
}

#[test]
fn a_limit_that_is_dropped_takes_nothing_back_and_counts_from_zero_when_it_returns() {
    let with = json!({"b_rpm_tc": {"N": "9000"}, "b_tpm_tc": {"N": "4000"}, "ev": {"N": "5"}});
    let without = json!({"b_rpm_tc": {"N": "9000"}, "ev": {"N": "5"}});
    assert_eq!(counted(&modify(&with, &without)), None);
    let again = json!({"b_rpm_tc": {"N": "9000"}, "b_tpm_tc": {"N": "1000"}, "ev": {"N": "6"}});
    assert_eq!(
        counted(&modify(&without, &again)),
        Some((tokens(&[("tpm", 1)]), 1))
    );
}

#[test]
fn a_refund_subtracts_and_is_no_event() {
    let old = json!({"b_rpm_tc": {"N": "9000"}, "ev": {"N": "5"}, "o_abcd": {"N": "1"}});
    let new = json!({"b_rpm_tc": {"N": "4000"}, "ev": {"N": "5"}, "o_abcd": {"N": "2"}});
    assert_eq!(counted(&modify(&old, &new)), Some((tokens(&[("rpm", -5)]), 0)));
}

#[test]
fn a_write_of_the_peer_that_consumes_is_one_event_and_its_refund_none() {
    let image = |tc: &str| json!({"b_rpm_tc": {"N": tc}, "b_tpm_tc": {"N": tc}, "ev": {"N": "5"}, "o_abcd": {"N": "1"}});
    let consumed = counted(&modify(&image("1000"), &image("3000")));
    assert_eq!(consumed, Some((tokens(&[("rpm", 2), ("tpm", 2)]), 1)));
    let refunded = counted(&modify(&image("3000"), &image("1000")));
    assert_eq!(refunded, Some((tokens(&[("rpm", -2), ("tpm", -2)]), 0)));
}

#[test]
fn a_write_of_ours_that_adds_to_a_lease_is_no_event() {
    let old = json!({"b_rpm_tc": {"N": "1000"}, "ev": {"N": "5"}, "o_abcd": {"N": "1"}});
    let new = json!({"b_rpm_tc": {"N": "3000"}, "ev": {"N": "5"}, "o_abcd": {"N": "2"}});
    assert_eq!(counted(&modify(&old, &new)), Some((tokens(&[("rpm", 2)]), 0)));
}

#[test]
fn limits_named_like_an_attribute_of_the_snapshot_are_left_out_and_counted_as_such() {
    let new = json!({"b_ttl_tc": {"N": "1000"}, "b_window_tc": {"N": "1000"}, "b_sq_tc": {"N": "2000"}, "ev": {"N": "1"}});
    let reading = Reading::of(&modify(&json!({}), &new)).unwrap();
    assert_eq!(reading.reserved, 2);
    assert_eq!(reading.change.unwrap().consumed.len(), 1);
}

#[test]
fn removals_and_other_items_mean_nothing() {
    let image = json!({"b_rpm_tc": {"N": "9000"}});
    assert_eq!(change(&record("REMOVE", "1", EVENING, &image, &json!({}))), None);
    let mut own = modify(&json!({}), &image);
    own.change.keys =
        serde_dynamo::to_item(json!({"PK": "ENTITY#user-1", "SK": "#USAGE#gpt-4#2026-01"})).unwrap();
    assert_eq!(change(&own), None);
}

#[test]
fn what_cannot_be_counted_says_why() {
    let reason = |record: &EventRecord| Reading::of(record).unwrap_err().to_string();
    let new = |value: Json| json!({"b_rpm_tc": value});
    let bad = |value| reason(&modify(&json!({}), &new(value)));
    assert!(bad(json!({"N": "1500"})).contains("whole tokens"));
    assert!(bad(json!({"N": "1.5"})).contains("b_rpm_tc is 1.5"));
    assert!(bad(json!({"S": "1000"})).contains("not a number"));
    assert!(bad(json!({"N": "9".repeat(38)})).contains("not a usable"));
    let image = new(json!({"N": "1000"}));
    assert!(reason(&record("MODIFY", "1x", EVENING, &json!({}), &image)).contains("SequenceNumber"));
    assert!(reason(&record("MODIFY", "1", 0, &json!({}), &image)).contains("ApproximateCreationDateTime"));
    let mut keyless = modify(&json!({}), &image);
    keyless.change.keys = serde_dynamo::to_item(json!({"SK": "#BUCKET#gpt-4"})).unwrap();
    assert!(reason(&keyless).contains("PK is missing"));
    keyless.change.keys = serde_dynamo::to_item(json!({"PK": "ENTITY#a#b", "SK": "#BUCKET#gpt-4"})).unwrap();
    assert!(reason(&keyless).contains("entity id"));
}

fn consuming(number: u64, at: i64, from: i64, to: i64) -> Change {
    let image = |tokens: i64| json!({"b_rpm_tc": {"N": (tokens * 1000).to_string()}, "o_abcd": {"N": tokens.to_string()}});
    change(&record(
        "MODIFY",
        &number.to_string(),
        at,
        &image(from),
        &image(to),
    ))
    .unwrap()
}

fn entries(changes: &[Change]) -> Vec<Entry<'_>> {
    let places = changes.iter().enumerate();
    places.map(|(place, change)| Entry { change, place }).collect()
}

#[test]
fn a_batch_is_one_write_per_bucket_and_window_with_the_hour_and_day_of_each_record() {
    let changes = [
        consuming(1, EVENING, 0, 5),
        consuming(2, EVENING + 1, 5, 7),
        consuming(3, EVENING + 2, 7, 8),
    ];
    let groups = groups(&WindowKind::ALL, entries(&changes));
    let rows: Vec<_> = groups
        .iter()
        .map(|group| {
            let update = SnapshotUpdate::whole(group, 1);
            (update.key.sk.clone(), update.add[0].1)
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("#USAGE#gpt-4#2026-01-31T23:00:00Z".to_owned(), 7),
            ("#USAGE#gpt-4#2026-02-01T00:00:00Z".to_owned(), 1),
            ("#USAGE#gpt-4#2026-01-31".to_owned(), 7),
            ("#USAGE#gpt-4#2026-02-01".to_owned(), 1),
            ("#USAGE#gpt-4#2026-01".to_owned(), 7),
            ("#USAGE#gpt-4#2026-02".to_owned(), 1),
        ]
    );
}

#[test]
fn a_snapshot_lives_until_its_window_is_over_and_the_retention_after_it() {
    let changes = [consuming(1, EVENING, 0, 5)];
    let groups = groups(&[WindowKind::Monthly], entries(&changes));
    let update = SnapshotUpdate::whole(&groups[0], 7);
    let ttl = update.set.iter().find(|(name, _)| name == "ttl").unwrap();
    let end = Timestamp::parse("2026-02-08T00:00:00Z").unwrap().seconds();
    assert_eq!(ttl.1, Value::Number(end.into()));
}

#[test]
fn a_record_that_stands_twice_in_a_batch_counts_once_and_disorder_is_put_right() {
    let changes = [
        consuming(3, EVENING, 5, 8),
        consuming(1, EVENING, 0, 5),
        consuming(3, EVENING, 5, 8),
    ];
    let groups = groups(&[WindowKind::Daily], entries(&changes));
    let update = SnapshotUpdate::whole(&groups[0], 1);
    assert_eq!(update.add[0], ("rpm".to_owned(), 8));
    assert_eq!(update.condition, Condition::Before(changes[1].token.to_string()));
    assert_eq!(groups[0].first_place(), 0);
}

#[test]
fn what_is_left_of_a_group_is_written_under_the_progress_that_was_seen() {
    let changes = [consuming(9, EVENING, 0, 5), consuming(10, EVENING + 1, 5, 7)];
    let groups = groups(&[WindowKind::Monthly], entries(&changes[..1]));
    assert_eq!(groups[0].after(changes[0].token.as_str()), None);
    let both = zae_limiter_aggregator::groups(&[WindowKind::Hourly], entries(&changes));
    let seen = Seen {
        sequence: changes[0].token.to_string(),
        newest: Some(EVENING + 50),
    };
    let rest = both[0].after(&seen.sequence).unwrap();
    let update = SnapshotUpdate::rest(&rest, 1, &seen);
    assert_eq!(update.add[0], ("rpm".to_owned(), 2));
    assert_eq!(update.condition, Condition::CountedTo(seen.sequence.clone()));
    let newest = update.set.iter().find(|(name, _)| name == "_sa").unwrap();
    assert_eq!(
        newest.1,
        Value::Text((EVENING + 50).to_string()),
        "never goes back"
    );
}

#[test]
fn a_record_numbered_below_the_progress_but_newer_than_it_is_told_from_a_duplicate() {
    let changes = [consuming(5, EVENING, 0, 5), consuming(6, EVENING + 1, 5, 7)];
    let groups = groups(&[WindowKind::Hourly], entries(&changes));
    let seen = |newest| Seen {
        sequence: groups[0].last().to_string(),
        newest: Some(newest),
    };
    assert!(groups[0].regressed(&seen(EVENING + 1)).is_empty());
    let places: Vec<_> = groups[0]
        .regressed(&seen(EVENING))
        .iter()
        .map(|entry| entry.place)
        .collect();
    assert_eq!(places, [1]);
}

proptest! {
    #[test]
    fn however_a_run_of_changes_is_cut_the_parts_sum_up_to_the_whole(
        levels in prop::collection::vec(-1_000i64..1_000, 2..40),
        cut in 0usize..40,
    ) {
        let changes: Vec<_> = levels
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| pair[0] != pair[1])
            .map(|(number, pair)| consuming(number as u64 + 1, EVENING - 7_200, pair[0], pair[1]))
            .collect();
        prop_assume!(!changes.is_empty());
        let sum = |changes: &[Change]| -> i128 {
            groups(&[WindowKind::Daily], entries(changes))
                .iter()
                .map(|group| group.consumed().values().sum::<i128>())
                .sum()
        };
        let cut = cut.min(changes.len());
        prop_assert_eq!(sum(&changes), i128::from(levels[levels.len() - 1] - levels[0]));
        prop_assert_eq!(sum(&changes[..cut]) + sum(&changes[cut..]), sum(&changes));
    }

    #[test]
    fn reading_never_panics_whatever_the_image_holds(
        name in "b_[a-z._-]{0,5}_tc|ev|o_[a-z]{4}|b__tc|_tc|b_tc",
        value in prop_oneof![
            "-?[0-9]{0,45}(\\.[0-9])?".prop_map(|n| json!({"N": n})),
            ".*".prop_map(|s| json!({"S": s})),
            Just(json!({"NULL": true})),
            Just(json!({"L": [{"N": "1"}]})),
        ],
    ) {
        let image = json!({name: value});
        let _ = Reading::of(&modify(&json!({}), &image));
        let _ = Reading::of(&modify(&image, &json!({"b_rpm_tc": {"N": "1000"}})));
    }
}
