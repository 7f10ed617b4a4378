//! Refused acquires in records and snapshots.

use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Condition, SnapshotUpdate, UsageDelta, groups};
use zae_limiter_schema::WindowKind;

use crate::changes::support::{EVENING, after, consuming, delta, entries, record, set};

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
    assert_eq!(reset.refusals, 0, "another program reset it");
    let created = json!({"b_rpm_tc": {"N": "0"}, "rj": {"N": "4"}});
    let created = delta(&record("INSERT", "1", EVENING, &json!({}), &created)).unwrap();
    assert_eq!(created.refusals, 4);
}

/// What passed because it is only observed is counted next to what was refused, and neither changes the other.
#[test]
fn observed_refusals_have_a_count_of_their_own() {
    let image = |refused: u64, observed: u64| json!({"b_rpm_tc": {"N": "1000"}, "rj": {"N": refused.to_string()}, "ro": {"N": observed.to_string()}});
    let both = delta(&record("MODIFY", "1", EVENING, &image(0, 0), &image(2, 3))).unwrap();
    assert_eq!((both.refusals, both.observed, both.events), (2, 3, 0));
    let observed = delta(&record("MODIFY", "2", EVENING, &image(2, 3), &image(2, 7))).unwrap();
    assert_eq!((observed.refusals, observed.observed), (0, 4));
    assert!(observed.counts());

    let first = [both];
    let first = &groups(&[WindowKind::Daily], entries(&first))[0];
    let first = SnapshotUpdate::whole(first, 1);
    assert_eq!(first.condition, Condition::New);
    assert_eq!((set(&first, "_rf"), set(&first, "_ro")), (Some("2"), Some("3")));
    let later = [observed];
    let later = &groups(&[WindowKind::Daily], entries(&later))[0];
    let unread = SnapshotUpdate::whole(later, 1);
    assert_eq!(
        unread.condition,
        Condition::New,
        "a snapshot that exists must be read"
    );
    let second = SnapshotUpdate::rest(later, 1, &after(&first));
    assert_eq!((set(&second, "_rf"), set(&second, "_ro")), (None, Some("7")));
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
