//! Records that a snapshot has counted before.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use zae_limiter_aggregator::{Aggregator, Progress, UpdateOutcome, metric};
use zae_limiter_function::{Function as _, Invocation, Level, Report};
use zae_limiter_schema::WindowKind;

use super::support::{Letters, STREAM, Script, batch, good, process, record, returning};

/// The snapshots of entity a have counted up to this sequence number, at this time.
fn counted_to(number: u64, newest: i64) -> Script {
    let label = STREAM.rsplit('/').next().unwrap();
    let (last, newest) = (format!("{label}/{number:040}"), newest.to_string());
    let progress = Progress::from_attributes(|name| match name {
        "_sq" => Some(last.as_str()),
        "_sa" => Some(newest.as_str()),
        _ => None,
    });
    returning("a", Ok(UpdateOutcome::Refused(progress)))
}

#[tokio::test(start_paused = true)]
async fn acquires_are_reported_by_resource_once_whatever_the_windows_and_not_if_they_are_duplicates() {
    let (table, letters) = (counted_to(2, 1_769_903_998), Letters::default());
    let aggregator = Aggregator::new(table, &letters, WindowKind::ALL.to_vec(), 30);
    let mut report = Report::new(Level::Info, &[]);
    // The snapshots of entity a have counted its record before.
    let records = batch(&[good(1, "a"), good(2, "b"), good(3, "c")]);
    let invocation = Invocation::within(Duration::from_secs(20));
    aggregator
        .handle(&records, &invocation, &mut report)
        .await
        .unwrap();
    assert_eq!(report.counted(metric::SNAPSHOTS), 6);
    assert_eq!(*report.acquires(), BTreeMap::from([("gpt-4".to_owned(), 2)]));
}

#[tokio::test(start_paused = true)]
async fn a_counted_group_is_a_duplicate_and_no_failure() {
    let letters = Letters::default();
    let records = [good(1, "a"), good(2, "a")];
    let outcome = process(counted_to(2, 1_769_903_998), &letters, &records)
        .await
        .unwrap();
    assert_eq!(outcome.failed, [] as [&str; 0]);
    assert_eq!(
        (outcome.report.counted(metric::DUPLICATES), outcome.called.len()),
        (2, 1)
    );
    assert_eq!(outcome.report.counted(metric::SEQUENCE_REGRESSIONS), 0);
}

#[tokio::test(start_paused = true)]
async fn numbers_that_go_back_raise_an_alarm_and_are_kept() {
    let letters = Letters::default();
    let records = [good(1, "a"), record(2, "a", 1_769_904_000, &json!({"N": "5000"}))];
    let outcome = process(counted_to(70, 1_769_903_999), &letters, &records)
        .await
        .unwrap();
    assert_eq!(outcome.failed, [] as [&str; 0]);
    assert_eq!(outcome.report.counted(metric::SEQUENCE_REGRESSIONS), 1);
    assert_eq!(outcome.report.counted(metric::DUPLICATES), 1);
    assert_eq!(letters.kept.borrow()[0]["sequenceNumber"], "2");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_never_stands_still_is_left_to_the_next_delivery() {
    let letters = Letters::default();
    let records = [good(1, "a"), good(2, "a")];
    let outcome = process(counted_to(1, 1_769_903_998), &letters, &records)
        .await
        .unwrap();
    assert_eq!(outcome.failed, ["1"]);
    assert_eq!(outcome.called.len(), 6);
}
