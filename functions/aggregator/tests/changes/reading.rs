//! What a stream record means.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::changes::support::{EVENING, delta, keyed, modify, read, record};

/// Consumption per limit and events of a delta.
fn counted(record: &str) -> Option<(Vec<(String, i128)>, i128)> {
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
    let reading = read(&modify(&json!({}), &new)).unwrap();
    assert_eq!(reading.reserved, 2);
    assert_eq!(reading.delta.unwrap().consumed.len(), 1);
}

#[test]
fn removals_and_other_items_mean_nothing() {
    let image = json!({"b_rpm_tc": {"N": "9000"}});
    assert_eq!(delta(&record("REMOVE", "1", EVENING, &image, &json!({}))), None);
    let keys = json!({"PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#USAGE#gpt-4#2026-01"}});
    let own = keyed(&keys, "MODIFY", "100", EVENING, &json!({}), &image);
    assert_eq!(delta(&own), None);
}

#[test]
fn what_cannot_be_counted_says_why() {
    let reason = |record: &str| read(record).unwrap_err().to_string();
    let new = |value: Json| json!({"b_rpm_tc": value});
    let bad = |value| reason(&modify(&json!({}), &new(value)));
    assert!(bad(json!({"N": "1500"})).contains("whole number of tokens"));
    assert!(bad(json!({"N": "1.5"})).contains("b_rpm_tc is 1.5"));
    assert!(bad(json!({"S": "1000"})).contains("not a number"));
    assert!(bad(json!({"N": "9".repeat(38)})).contains("not a usable"));
    let image = new(json!({"N": "1000"}));
    assert!(reason(&record("MODIFY", "1x", EVENING, &json!({}), &image)).contains("SequenceNumber"));
    assert!(reason(&record("MODIFY", "1", 0, &json!({}), &image)).contains("ApproximateCreationDateTime"));
    let under = |keys: Json| reason(&keyed(&keys, "MODIFY", "100", EVENING, &json!({}), &image));
    assert!(under(json!({"SK": {"S": "#BUCKET#gpt-4"}})).contains("PK is missing"));
    let wrong = json!({"PK": {"S": "ENTITY#a#b"}, "SK": {"S": "#BUCKET#gpt-4"}});
    assert!(under(wrong).contains("entity id"));
}

proptest! {
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
        let _ = read(&modify(&json!({}), &image));
        let _ = read(&modify(&image, &json!({"b_rpm_tc": {"N": "1000"}})));
    }
}
