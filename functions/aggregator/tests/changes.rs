//! What stream records mean, and how they come together.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use aws_lambda_events::dynamodb::EventRecord;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Condition, Entry, Progress, Reading, SnapshotUpdate, UsageDelta, groups};
use zae_limiter_schema::{AttributeValue, EntityId, Resource, Timestamp, WindowKind};

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

fn delta(record: &EventRecord) -> Option<UsageDelta> {
    Reading::of(record).unwrap().delta
}

/// Consumption per limit and events of a delta.
fn counted(record: &EventRecord) -> Option<(Vec<(String, i128)>, i128)> {
    let delta = delta(record)?;
    let consumed = delta
        .consumed
        .iter()
        .map(|(limit, tokens)| (limit.to_string(), *tokens));
    Some((consumed.collect(), delta.events))
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
    assert!(!delta(&modify(&with, &without)).unwrap().counts());
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
    assert_eq!(reading.delta.unwrap().consumed.len(), 1);
}

#[test]
fn removals_and_other_items_mean_nothing() {
    let image = json!({"b_rpm_tc": {"N": "9000"}});
    assert_eq!(delta(&record("REMOVE", "1", EVENING, &image, &json!({}))), None);
    let mut own = modify(&json!({}), &image);
    own.change.keys =
        serde_dynamo::to_item(json!({"PK": "ENTITY#user-1", "SK": "#USAGE#gpt-4#2026-01"})).unwrap();
    assert_eq!(delta(&own), None);
}

#[test]
fn what_cannot_be_counted_says_why() {
    let reason = |record: &EventRecord| Reading::of(record).unwrap_err().to_string();
    let new = |value: Json| json!({"b_rpm_tc": value});
    let bad = |value| reason(&modify(&json!({}), &new(value)));
    assert!(bad(json!({"N": "1500"})).contains("whole number of tokens"));
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

fn consuming(number: u64, at: i64, from: i64, to: i64) -> UsageDelta {
    let image = |tokens: i64| json!({"b_rpm_tc": {"N": (tokens * 1000).to_string()}, "o_abcd": {"N": tokens.to_string()}});
    delta(&record(
        "MODIFY",
        &number.to_string(),
        at,
        &image(from),
        &image(to),
    ))
    .unwrap()
}

fn entries(deltas: &[UsageDelta]) -> Vec<Entry<'_>> {
    let deltas = deltas.iter().enumerate();
    deltas.map(|(index, delta)| Entry { delta, index }).collect()
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
    assert_eq!(ttl.1, AttributeValue::N(end.to_string()));
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
    let (first, link) = (changes[1].position.clone(), changes[1].link.before.clone());
    assert_eq!(update.condition, Condition::Follows { first, link });
    assert_eq!(groups[0].first_index(), 0);
}

/// A snapshot that has counted up to this record.
fn progress(last: &UsageDelta, newest: i64) -> Progress {
    let newest = newest.to_string();
    let stored = |name: &str| match name {
        "_sq" => Some(last.position.as_str()),
        "_ln" => Some(last.link.after.as_str()),
        "_sa" => Some(newest.as_str()),
        _ => None,
    };
    Progress::from_attributes(stored).unwrap()
}

fn set<'u>(update: &'u SnapshotUpdate, name: &str) -> Option<&'u str> {
    let all = update.set.iter().chain(&update.set_if_absent);
    all.filter(|(known, _)| known == name)
        .find_map(|(_, value)| match value {
            AttributeValue::S(text) => Some(text.as_str()),
            _ => None,
        })
}

/// The progress of a snapshot after an update.
fn after(update: &SnapshotUpdate) -> Progress {
    Progress::from_attributes(|name| set(update, name)).unwrap()
}

#[test]
fn a_snapshot_knows_which_records_it_has_passed_without_counting_them() {
    let all: Vec<_> = (1..=6)
        .map(|n| {
            consuming(
                n,
                EVENING,
                i64::try_from(n).unwrap() - 1,
                i64::try_from(n).unwrap(),
            )
        })
        .collect();
    let pick = |numbers: &[usize]| numbers.iter().map(|n| all[n - 1].clone()).collect::<Vec<_>>();
    let counts = |progress: &Progress| {
        all.iter()
            .map(|d| progress.has_counted(&d.position))
            .collect::<Vec<_>>()
    };

    // The first delivery lacks 1, 3 and 4; there must be no snapshot yet.
    let first = pick(&[2, 5]);
    let group = &groups(&[WindowKind::Daily], entries(&first))[0];
    let update = SnapshotUpdate::whole(group, 1);
    assert_eq!(update.condition, Condition::New);
    let progress = after(&update);
    assert_eq!(counts(&progress), [false, true, false, false, true, false]);

    // 6 follows 5. What the snapshot knows about 1, 3 and 4 stays.
    let next = pick(&[6]);
    let group = &groups(&[WindowKind::Daily], entries(&next))[0];
    assert!(matches!(
        SnapshotUpdate::whole(group, 1).condition,
        Condition::Follows { .. }
    ));
    let progress = after(&SnapshotUpdate::rest(group, 1, &progress));
    assert_eq!(counts(&progress), [false, true, false, false, true, true]);

    // Delivered again, and in part: only what is missing is counted.
    let again = pick(&[2, 3, 4, 5]);
    let group = &groups(&[WindowKind::Daily], entries(&again))[0];
    let rest = group.uncounted(&progress).unwrap();
    assert_eq!(rest.entries().len(), 2);
    let update = SnapshotUpdate::rest(&rest, 1, &progress);
    assert_eq!(update.add[0], ("rpm".to_owned(), 2));
    let progress = after(&update);
    assert_eq!(counts(&progress), [false, true, true, true, true, true]);

    let all_again = &groups(&[WindowKind::Daily], entries(&all))[0];
    let rest = all_again.uncounted(&progress).unwrap();
    let progress = after(&SnapshotUpdate::rest(&rest, 1, &progress));
    assert_eq!(all_again.uncounted(&progress), None);
}

#[test]
fn the_gaps_of_a_snapshot_are_bounded() {
    let mut progress: Option<Progress> = None;
    for n in 1..100 {
        let delta = [consuming(
            n * 2,
            EVENING,
            i64::try_from(n * 10).unwrap(),
            i64::try_from(n * 10 + 1).unwrap(),
        )];
        let group = &groups(&[WindowKind::Daily], entries(&delta))[0];
        let update = match &progress {
            Some(progress) => SnapshotUpdate::rest(group, 1, progress),
            None => SnapshotUpdate::whole(group, 1),
        };
        assert!(set(&update, "_gp").unwrap().len() < 3_000);
        assert_eq!(update.forgotten_gaps, u64::from(n > 16));
        progress = Some(after(&update));
    }
}

/// A new snapshot is one write unit for the index, and later writes are none: their index keys are the same.
#[test]
fn the_index_is_written_once_per_snapshot_and_with_one_unit() {
    let longest = "x".repeat(EntityId::MAX_LENGTH);
    let mut delta = consuming(1, EVENING, 0, 1);
    delta.entity = longest.parse().unwrap();
    let resource = "y".repeat(Resource::MAX_LENGTH);
    delta.resource = resource.parse().unwrap();
    let deltas = [
        delta.clone(),
        UsageDelta {
            position: consuming(2, EVENING, 1, 2).position,
            ..delta
        },
    ];
    let keys = |delta: &UsageDelta| {
        let deltas = [delta.clone()];
        let group = &groups(&[WindowKind::Hourly], entries(&deltas))[0];
        let update = SnapshotUpdate::whole(group, 1);
        let index = ["GSI2PK", "GSI2SK"].map(|name| set(&update, name).unwrap().to_owned());
        [update.key.pk, update.key.sk, index[0].clone(), index[1].clone()]
    };
    let first = keys(&deltas[0]);
    assert_eq!(first, keys(&deltas[1]));
    let size: usize = first.iter().map(String::len).sum();
    assert!(size + "PKSKGSI2PKGSI2SK".len() <= 1_024, "{size} bytes");
}

#[test]
fn what_is_left_of_a_group_is_written_under_the_progress_that_was_seen() {
    let changes = [consuming(9, EVENING, 0, 5), consuming(10, EVENING + 1, 5, 7)];
    let groups = groups(&[WindowKind::Monthly], entries(&changes[..1]));
    let seen = progress(&changes[0], EVENING + 50);
    assert_eq!(groups[0].uncounted(&seen), None);
    let both = zae_limiter_aggregator::groups(&[WindowKind::Hourly], entries(&changes));
    let rest = both[0].uncounted(&seen).unwrap();
    let update = SnapshotUpdate::rest(&rest, 1, &seen);
    assert_eq!(update.add[0], ("rpm".to_owned(), 2));
    assert_eq!(
        update.condition,
        Condition::Unchanged {
            last: seen.last.clone(),
            gaps: None,
        }
    );
    let newest = update.set.iter().find(|(name, _)| name == "_sa").unwrap();
    assert_eq!(
        newest.1,
        AttributeValue::S((EVENING + 50).to_string()),
        "never goes back"
    );
}

/// A client that adds to the count of refusals, and changes nothing else.
fn refusing(number: u64, from: u64, to: u64) -> UsageDelta {
    let image = |refusals: u64| json!({"b_rpm_tc": {"N": "1000"}, "ev": {"N": "1"}, "rj": {"N": refusals.to_string()}});
    let (old, new) = (image(from), image(to));
    delta(&record("MODIFY", &number.to_string(), EVENING, &old, &new)).unwrap()
}

#[test]
fn a_write_of_refusals_is_no_acquire_and_consumes_nothing() {
    let change = refusing(1, 2, 9);
    assert_eq!((change.refusals, change.events, change.consumed.len()), (7, 0, 0));
    assert!(change.counts());
    let reset = refusing(1, 9, 2);
    assert_eq!(reset.refusals, 0, "somebody set it back");
    let created = json!({"b_rpm_tc": {"N": "0"}, "rj": {"N": "4"}});
    let created = delta(&record("INSERT", "1", EVENING, &json!({}), &created)).unwrap();
    assert_eq!(created.refusals, 4);
}

#[test]
fn a_count_of_refusals_that_cannot_be_read_does_not_hide_what_was_consumed() {
    let image = |consumed: &str, refusals: &Json| json!({"b_rpm_tc": {"N": consumed}, "ev": {"N": "1"}, "rj": refusals});
    for unreadable in [json!({"S": "many"}), json!({"N": "1.5"}), json!({"N": "1E+99"})] {
        let readable = json!({"N": "50"});
        for (before, after) in [(&unreadable, &readable), (&readable, &unreadable)] {
            let (old, new) = (image("1000", before), image("4000", after));
            let change = delta(&record("MODIFY", "1", EVENING, &old, &new)).unwrap();
            assert_eq!((change.refusals, change.consumed[0].1), (0, 3), "{unreadable}");
        }
    }
}

#[test]
fn refusals_are_text_that_is_added_to_what_was_read() {
    let changes = [refusing(1, 0, 3), refusing(2, 3, 5), refusing(3, 5, 6)];
    let both = &groups(&[WindowKind::Daily], entries(&changes[..2]))[0];
    let first = SnapshotUpdate::whole(both, 1);
    assert_eq!(
        first.condition,
        Condition::New,
        "a snapshot that exists must be read"
    );
    assert_eq!(set(&first, "_rf"), Some("5"));
    assert_eq!(first.add, [("total_events".to_owned(), 0)]);
    // Delivered again with one more: only that one is added, to what the snapshot has.
    let seen = after(&first);
    let all = &groups(&[WindowKind::Daily], entries(&changes))[0];
    let rest = all.uncounted(&seen).unwrap();
    let second = SnapshotUpdate::rest(&rest, 1, &seen);
    assert_eq!(set(&second, "_rf"), Some("6"));
    // A later group without refusals leaves the text alone.
    let plain = [consuming(4, EVENING, 0, 1)];
    let plain = &groups(&[WindowKind::Daily], entries(&plain))[0];
    let third = SnapshotUpdate::rest(plain, 1, &after(&second));
    assert_eq!(set(&third, "_rf"), None);
}

#[test]
fn a_record_numbered_below_the_progress_but_newer_than_it_is_told_from_a_duplicate() {
    let changes = [consuming(5, EVENING, 0, 5), consuming(6, EVENING + 1, 5, 7)];
    let groups = groups(&[WindowKind::Hourly], entries(&changes));
    let seen = |newest| progress(&changes[1], newest);
    assert!(groups[0].regressed(&seen(EVENING + 1)).is_empty());
    let places: Vec<_> = groups[0]
        .regressed(&seen(EVENING))
        .iter()
        .map(|entry| entry.index)
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
        let sum = |changes: &[UsageDelta]| -> i128 {
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
