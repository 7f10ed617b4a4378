//! Records that become dead letters.

use serde_json::json;
use zae_limiter_aggregator::{UpdateOutcome, metric};
use zae_limiter_function::CallError;

use super::support::{Letters, Script, good, panicking, process, record, returning};

#[tokio::test(start_paused = true)]
async fn a_malformed_record_goes_whole_to_the_dead_letters_and_blocks_nobody() {
    let letters = Letters::default();
    let bad = record(2, "b", 1_769_903_998, &json!({"N": "1500"}));
    let outcome = process(
        Script::default(),
        &letters,
        &[good(1, "a"), bad.clone(), json!({"x": 1})],
    )
    .await
    .unwrap();
    assert_eq!(outcome.failed, [] as [&str; 0]);
    assert_eq!(outcome.report.counted(metric::DEAD_LETTERS), 2);
    let kept = letters.kept.borrow();
    assert_eq!(kept[0]["record"], bad);
    assert_eq!(kept[0]["sequenceNumber"], "2");
    assert!(
        kept[0]["reason"]
            .as_str()
            .unwrap()
            .contains("whole number of tokens")
    );
    assert_eq!(kept[1]["record"], json!({"x": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_record_that_cannot_be_kept_is_reported_as_failed() {
    let letters = Letters {
        full: true,
        ..Letters::default()
    };
    let bad = record(2, "b", 1_769_903_998, &json!({"S": "x"}));
    let outcome = process(Script::default(), &letters, &[good(1, "a"), bad])
        .await
        .unwrap();
    assert_eq!(outcome.failed, ["2"]);
    let nameless = process(Script::default(), &letters, &[good(1, "a"), json!({"x": 1})]).await;
    assert!(nameless.err().unwrap().contains("no sequence number"));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_can_never_take_its_update_makes_dead_letters_of_its_records_only() {
    let letters = Letters::default();
    for response in [
        Err(CallError::Invalid("ValidationException".to_owned())),
        Ok(UpdateOutcome::Refused(None)),
    ] {
        letters.kept.borrow_mut().clear();
        let records = [good(1, "a"), good(2, "b"), good(3, "b")];
        let outcome = process(returning("b", response), &letters, &records)
            .await
            .unwrap();
        assert_eq!(outcome.failed, [] as [&str; 0]);
        let kept = letters.kept.borrow();
        let numbers: Vec<_> = kept.iter().map(|letter| &letter["sequenceNumber"]).collect();
        assert_eq!(numbers, ["2", "3"]);
        assert!(
            kept[0]["reason"]
                .as_str()
                .unwrap()
                .contains("daily usage of b on gpt-4")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_makes_dead_letters_of_its_records_and_the_others_are_counted() {
    let letters = Letters::default();
    let records = [good(1, "a"), good(2, "b"), good(3, "c"), good(4, "b")];
    let outcome = process(panicking("b"), &letters, &records).await.unwrap();
    assert_eq!(outcome.failed, [] as [&str; 0], "it does not block the shard");
    assert_eq!(outcome.called, ["a", "b", "c"]);
    assert_eq!(outcome.report.counted(metric::SNAPSHOTS), 2);
    let kept = letters.kept.borrow();
    let whole: Vec<_> = kept.iter().map(|letter| &letter["record"]).collect();
    assert_eq!(whole, [&records[1], &records[3]]);
    let reason = kept[0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("daily usage of b on gpt-4") && reason.contains("a bug that only b meets"),
        "{reason}"
    );
    assert!(
        outcome
            .report
            .notes()
            .iter()
            .any(|note| note.message.contains("a bug that only b meets")),
        "it is in the log"
    );
}

#[tokio::test(start_paused = true)]
async fn a_bucket_under_the_key_of_something_else_is_a_dead_letter() {
    let letters = Letters::default();
    let (mut foreign, mut number) = (good(1, "a"), good(2, "a"));
    foreign["dynamodb"]["Keys"]["PK"] = json!({"S": "SYSTEM#"});
    number["dynamodb"]["Keys"]["PK"] = json!({"N": "7"});
    let outcome = process(Script::default(), &letters, &[foreign, number])
        .await
        .unwrap();
    assert_eq!((outcome.failed.len(), outcome.called.len()), (0, 0));
    let kept = letters.kept.borrow();
    let reasons: Vec<_> = kept
        .iter()
        .map(|letter| letter["reason"].as_str().unwrap())
        .collect();
    assert!(reasons[0].contains("does not start with ENTITY#"), "{reasons:?}");
    assert!(reasons[1].contains("PK is not a string"), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_read_is_named() {
    let letters = Letters::default();
    let (mut old, mut new) = (good(1, "a"), good(2, "a"));
    old["dynamodb"]["OldImage"] = json!({"ev": {"N": 1}});
    new["dynamodb"]["NewImage"]["ev"] = json!(1);
    let outcome = process(Script::default(), &letters, &[old, new, good(3, "b")])
        .await
        .unwrap();
    assert_eq!(
        (outcome.failed.len(), &outcome.called[..]),
        (0, &["b".to_owned()][..])
    );
    let kept = letters.kept.borrow();
    let reason = |index: usize| kept[index]["reason"].as_str().unwrap();
    assert!(reason(0).contains("dynamodb.OldImage.ev"), "{}", reason(0));
    assert!(reason(1).contains("dynamodb.NewImage.ev"), "{}", reason(1));
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_holds_its_record_although_records_before_it_are_left_out() {
    let letters = Letters::default();
    let mut other_item = good(1, "a");
    other_item["dynamodb"]["Keys"]["SK"] = json!({"S": "#META"});
    let bad = record(2, "b", 1_769_903_998, &json!({"N": "1500"}));
    let records = [other_item, bad.clone(), good(3, "c")];
    process(Script::default(), &letters, &records).await.unwrap();
    assert_eq!(letters.kept.borrow()[0]["record"], bad);
    let records = [records[0].clone(), good(2, "b"), good(3, "c")];
    letters.kept.borrow_mut().clear();
    process(panicking("b"), &letters, &records).await.unwrap();
    assert_eq!(letters.kept.borrow()[0]["record"], records[1]);
}
