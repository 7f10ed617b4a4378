//! Which writes reach a threshold of a quota.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Crossing, SnapshotUpdate, groups};
use zae_limiter_schema::WindowKind;

use super::support::{EVENING, delta, entries, modify, record};

/// The first of March, in milliseconds.
const MARCH: i64 = 1_772_323_200_000;

/// A bucket with a quota: whole tokens used, what may be used, and the end of the period.
fn image(used: i64, amount: i64, end: i64, alerts: &str) -> Json {
    json!({
        "q_spend_us": {"N": (used * 1_000).to_string()}, "q_spend_cp": {"N": (amount * 1_000).to_string()},
        "q_spend_pe": {"N": end.to_string()}, "q_spend_sc": {"S": "month"}, "q_spend_al": {"S": alerts},
        "q_spend_tc": {"N": (used * 1_000).to_string()}, "o_0": {"N": "1"},
    })
}

fn crossings(old: &Json, new: &Json) -> Vec<Crossing> {
    delta(&modify(old, new)).map_or_else(Vec::new, |delta| delta.crossings)
}

fn percentages(old: &Json, new: &Json) -> Vec<u8> {
    crossings(old, new)
        .iter()
        .map(|crossing| crossing.percent)
        .collect()
}

#[test]
fn a_write_that_takes_several_thresholds_reaches_each_of_them() {
    let (before, after) = (
        image(399, 500, MARCH, "80 95 100"),
        image(480, 500, MARCH, "80 95 100"),
    );
    let found = crossings(&before, &after);
    assert_eq!(
        found.iter().map(|crossing| crossing.percent).collect::<Vec<_>>(),
        [80, 95]
    );
    let Crossing {
        table_arn,
        limit,
        used,
        amount,
        period_end,
        ..
    } = &found[0];
    assert_eq!(table_arn, "arn:aws:dynamodb:eu-west-1:123456789012:table/limiter");
    assert_eq!((limit.as_str(), *used, *amount), ("spend", 480, 500));
    assert_eq!(period_end.to_string(), "2026-03-01T00:00:00Z");
}

#[test]
fn the_first_write_of_a_bucket_may_reach_a_threshold() {
    let insert = record(
        "INSERT",
        "1",
        EVENING,
        &json!({}),
        &image(450, 500, MARCH, "80 95"),
    );
    let delta = delta(&insert).unwrap();
    assert_eq!(delta.crossings.len(), 1);
}

#[test]
fn a_new_period_reaches_its_thresholds_again() {
    let april = MARCH + 31 * 86_400_000;
    let full = image(500, 500, MARCH, "80 100");
    assert_eq!(percentages(&full, &image(10, 500, april, "80 100")), [0; 0]);
    assert_eq!(percentages(&full, &image(400, 500, april, "80 100")), [80]);
}

#[test]
fn a_refund_reaches_nothing_and_the_next_use_the_threshold_again() {
    let (below, above) = (image(399, 500, MARCH, "80"), image(401, 500, MARCH, "80"));
    assert_eq!(percentages(&above, &below), [0; 0]);
    assert_eq!(percentages(&below, &above), [80]);
}

#[test]
fn a_smaller_amount_and_a_new_threshold_are_reached_by_what_is_used_already() {
    let before = image(400, 1_000, MARCH, "80");
    assert_eq!(percentages(&before, &image(400, 500, MARCH, "80")), [80]);
    assert_eq!(percentages(&before, &image(400, 1_000, MARCH, "30 80")), [30]);
    assert_eq!(
        percentages(&image(900, 1_000, MARCH, ""), &image(901, 1_000, MARCH, "80")),
        [80]
    );
}

/// A top-up counts in the period that it was made in.
#[test]
fn what_was_topped_up_is_part_of_the_amount() {
    let topped_up = |used: i64, until: i64| {
        let mut image = image(used, 500, MARCH, "80");
        image["q_spend_tu"] = json!({"N": "500000"});
        image["q_spend_te"] = json!({"N": until.to_string()});
        image
    };
    assert_eq!(
        percentages(&image(400, 500, MARCH, "80"), &topped_up(400, MARCH)),
        [0; 0]
    );
    let found = crossings(&topped_up(799, MARCH), &topped_up(800, MARCH));
    assert_eq!((found.len(), found[0].amount, found[0].used), (1, 1_000, 800));
    let last_period = MARCH - 1;
    assert_eq!(
        percentages(&topped_up(399, last_period), &topped_up(400, last_period)),
        [80]
    );
}

/// The record is of January 31. What was used in a period that has ended is not used now.
#[test]
fn other_parameters_of_a_period_that_has_ended_reach_nothing() {
    let ended = EVENING * 1_000 - 60_000;
    assert_eq!(
        percentages(&image(400, 1_000, ended, "80"), &image(400, 500, ended, "80")),
        [0; 0]
    );
    // A client whose clock is behind has just used some of it.
    assert_eq!(
        percentages(&image(399, 500, ended, "80"), &image(401, 500, ended, "80")),
        [80]
    );
}

#[test]
fn a_damaged_quota_is_counted_and_reaches_nothing() {
    let before = image(100, 500, MARCH, "80");
    for (attribute, value) in [
        ("q_spend_us", json!({"S": "450000"})),
        ("q_spend_cp", json!({"N": "0"})),
        ("q_spend_cp", json!({"N": "1.5"})),
        ("q_spend_pe", json!({"NULL": true})),
        ("q_spend_pe", json!({"N": "99999999999999999999999"})),
        ("q_spend_al", json!({"S": "eighty"})),
        ("q_spend_al", json!({"N": "80"})),
    ] {
        let mut after = image(450, 500, MARCH, "80");
        after[attribute] = value;
        let delta = delta(&modify(&before, &after)).unwrap();
        assert_eq!(delta.crossings, [], "{attribute}");
        assert_eq!(delta.consumed.len(), 1, "{attribute}");
    }
}

#[test]
fn a_snapshot_gets_the_thresholds_even_if_nothing_else_is_counted() {
    let delta = delta(&modify(
        &image(400, 1_000, MARCH, "80"),
        &image(400, 500, MARCH, "80"),
    ))
    .unwrap();
    let deltas = [delta];
    let group = &groups(&[WindowKind::Monthly], entries(&deltas))[0];
    let update = SnapshotUpdate::whole(group, 90);
    assert_eq!(
        update.add_members,
        [("_th".to_owned(), vec!["spend 80".to_owned()])]
    );
    assert_eq!(update.add, [("total_events".to_owned(), 0)]);
}

fn run() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0i64..1_200, 2..40)
}

proptest! {
    /// Reached by a write are the thresholds between what was used before it and after it; by all writes together, those up to
    /// the most that was used.
    #[test]
    fn each_threshold_is_reached_by_the_write_that_takes_the_quota_past_it(
        used in run(),
        thresholds in prop::collection::btree_set(1i64..=100, 1..6),
    ) {
        let alerts: Vec<_> = thresholds.iter().map(ToString::to_string).collect();
        let image = |used: i64| image(used, 1_000, MARCH, &alerts.join(" "));
        let mut all = std::collections::BTreeSet::new();
        let mut before = None;
        for now in used.iter().copied() {
            let old = before.map_or_else(|| json!({}), image);
            let found = percentages(&old, &image(now));
            let expected: Vec<_> = thresholds
                .iter()
                .filter(|percent| before.unwrap_or(-1) < *percent * 10 && *percent * 10 <= now)
                .map(|percent| u8::try_from(*percent).unwrap())
                .collect();
            prop_assert_eq!(&found, &expected);
            all.extend(found);
            before = Some(now);
        }
        let most = used.iter().max().copied().unwrap_or_default();
        let expected = thresholds.iter().filter(|percent| *percent * 10 <= most);
        prop_assert!(all.into_iter().map(i64::from).eq(expected.copied()));
    }
}
