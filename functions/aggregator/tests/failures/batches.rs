//! Batches that are delivered again, whole or in part, and batches without anything to count.

use serde_json::json;
use zae_limiter_aggregator::metric;
use zae_limiter_function::CallError;

use super::support::{Letters, Script, good, process, returning};

#[tokio::test(start_paused = true)]
async fn a_throttled_snapshot_reports_its_first_record_and_the_others_go_on() {
    let table = returning("b", Err(CallError::Unavailable("slow down".to_owned())));
    let letters = Letters::default();
    let records = [good(1, "a"), good(2, "b"), good(3, "c"), good(4, "b")];
    let outcome = process(table, &letters, &records).await.unwrap();
    assert_eq!(outcome.failed, ["2"]);
    assert_eq!(outcome.report.counted(metric::SNAPSHOTS), 2);
    assert!(
        outcome.called.iter().filter(|entity| *entity == "b").count() > 5,
        "retried while there was time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_holds_the_whole_batch_back() {
    let table = returning("c", Err(CallError::Denied("AccessDeniedException".to_owned())));
    let letters = Letters::default();
    let records: Vec<_> = (1..40)
        .map(|number| good(number, if number == 9 { "c" } else { "a" }))
        .collect();
    let outcome = process(table, &letters, &records).await.unwrap();
    assert_eq!(outcome.failed, ["1"]);
    assert!(
        letters.kept.borrow().is_empty(),
        "nothing is passed over for want of a permission"
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_batch_and_one_of_other_items_succeed_without_a_call() {
    let letters = Letters::default();
    let mut own = good(1, "a");
    own["dynamodb"]["Keys"]["SK"] = json!({"S": "#USAGE#gpt-4#2026-01"});
    for records in [vec![], vec![own]] {
        let outcome = process(Script::default(), &letters, &records).await.unwrap();
        assert!(outcome.failed.is_empty() && outcome.called.is_empty());
    }
}
