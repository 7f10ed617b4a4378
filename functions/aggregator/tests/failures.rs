//! What the aggregator does when something cannot be done.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{
    Aggregator, Progress, Redriven, Settings, SnapshotUpdate, Table, UpdateOutcome, metric, redrive,
};
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetterMessage, DeadLetterSource, DeadLetters, Function as _,
    Invocation, Level, Report,
};
use zae_limiter_schema::WindowKind;

const STREAM: &str = "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-31T12:00:00.000";

fn record(number: u64, entity: &str, at: i64, consumed: &Json) -> Json {
    json!({
        "eventID": "1", "eventName": "INSERT", "awsRegion": "us-east-1", "eventSourceARN": STREAM,
        "dynamodb": {
            "ApproximateCreationDateTime": at, "SequenceNumber": number.to_string(), "SizeBytes": 1,
            "Keys": {"PK": {"S": format!("ENTITY#{entity}")}, "SK": {"S": "#BUCKET#gpt-4"}},
            "NewImage": {"b_rpm_tc": consumed, "ev": {"N": "1"}},
        },
    })
}

fn good(number: u64, entity: &str) -> Json {
    record(number, entity, 1_769_903_998, &json!({"N": "1000"}))
}

fn batch(records: &[Json]) -> Batch {
    serde_json::from_value(json!({ "Records": records })).unwrap()
}

/// A table that answers by entity, and remembers what it was asked.
#[derive(Default)]
struct Script {
    answers: BTreeMap<&'static str, Result<UpdateOutcome, CallError>>,
    asked: RefCell<Vec<String>>,
    /// Whose snapshot makes it panic.
    panics: Option<&'static str>,
}

impl Table for Script {
    async fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        let entity = update.key.pk.trim_start_matches("ENTITY#");
        self.asked.borrow_mut().push(entity.to_owned());
        assert_ne!(Some(entity), self.panics, "a bug that only {entity} meets");
        self.answers
            .get(entity)
            .cloned()
            .unwrap_or(Ok(UpdateOutcome::Applied))
    }
}

#[derive(Default)]
struct Letters {
    full: bool,
    kept: RefCell<Vec<Json>>,
}

impl DeadLetters for &Letters {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        if self.full {
            return Err(CallError::Denied("the queue is gone".to_owned()));
        }
        self.kept
            .borrow_mut()
            .push(serde_json::from_str(&letter.to_message()).unwrap());
        Ok(())
    }
}

struct Outcome {
    failed: Vec<String>,
    report: Report,
    asked: Vec<String>,
}

async fn process(table: Script, letters: &Letters, records: &[Json]) -> Result<Outcome, String> {
    let aggregator = Aggregator::new(table, letters, vec![WindowKind::Daily], 30);
    let mut report = Report::new(Level::Info, &[]);
    let invocation = Invocation::within(Duration::from_secs(20));
    let response = aggregator
        .handle(&batch(records), &invocation, &mut report)
        .await
        .map_err(|error| error.to_string())?;
    let failed = response
        .batch_item_failures
        .into_iter()
        .map(|item| item.item_identifier.unwrap());
    let asked = aggregator.table().asked.borrow().clone();
    Ok(Outcome {
        failed: failed.collect(),
        report,
        asked,
    })
}

fn answering(entity: &'static str, answer: Result<UpdateOutcome, CallError>) -> Script {
    Script {
        answers: [(entity, answer)].into(),
        ..Script::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_snapshot_reports_its_first_record_and_the_others_go_on() {
    let table = answering("b", Err(CallError::Unavailable("slow down".to_owned())));
    let letters = Letters::default();
    let records = [good(1, "a"), good(2, "b"), good(3, "c"), good(4, "b")];
    let outcome = process(table, &letters, &records).await.unwrap();
    assert_eq!(outcome.failed, ["2"]);
    assert_eq!(outcome.report.counted(metric::SNAPSHOTS), 2);
    assert!(
        outcome.asked.iter().filter(|entity| *entity == "b").count() > 5,
        "retried while there was time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_holds_the_whole_batch_back() {
    let table = answering("c", Err(CallError::Denied("AccessDeniedException".to_owned())));
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
    for answer in [
        Err(CallError::Invalid("ValidationException".to_owned())),
        Ok(UpdateOutcome::Refused(None)),
    ] {
        letters.kept.borrow_mut().clear();
        let records = [good(1, "a"), good(2, "b"), good(3, "b")];
        let outcome = process(answering("b", answer), &letters, &records).await.unwrap();
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
    let table = Script {
        panics: Some("b"),
        ..Script::default()
    };
    let records = [good(1, "a"), good(2, "b"), good(3, "c"), good(4, "b")];
    let outcome = process(table, &letters, &records).await.unwrap();
    assert_eq!(outcome.failed, [] as [&str; 0], "it does not block the shard");
    assert_eq!(outcome.asked, ["a", "b", "c"]);
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

fn counted_to(number: u64, newest: i64) -> Script {
    let label = STREAM.rsplit('/').next().unwrap();
    let (last, newest) = (format!("{label}/{number:040}"), newest.to_string());
    let progress = Progress::from_attributes(|name| match name {
        "_sq" => Some(last.as_str()),
        "_sa" => Some(newest.as_str()),
        _ => None,
    });
    answering("a", Ok(UpdateOutcome::Refused(progress)))
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
        (outcome.report.counted(metric::DUPLICATES), outcome.asked.len()),
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
    assert_eq!(outcome.asked.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn an_empty_batch_and_one_of_other_items_succeed_without_a_call() {
    let letters = Letters::default();
    let mut own = good(1, "a");
    own["dynamodb"]["Keys"]["SK"] = json!({"S": "#USAGE#gpt-4#2026-01"});
    for records in [vec![], vec![own]] {
        let outcome = process(Script::default(), &letters, &records).await.unwrap();
        assert!(outcome.failed.is_empty() && outcome.asked.is_empty());
    }
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
    assert_eq!((outcome.failed.len(), outcome.asked.len()), (0, 0));
    let kept = letters.kept.borrow();
    let reasons: Vec<_> = kept
        .iter()
        .map(|letter| letter["reason"].as_str().unwrap())
        .collect();
    assert!(reasons[0].contains("does not start with ENTITY#"), "{reasons:?}");
    assert!(reasons[1].contains("PK is not a string"), "{reasons:?}");
}

/// A queue of dead letters, named by their index.
struct Messages {
    waiting: RefCell<Vec<DeadLetterMessage>>,
    deleted: RefCell<Vec<String>>,
    released: RefCell<Vec<String>>,
}

impl DeadLetterSource for Messages {
    async fn receive(&self) -> Result<Vec<DeadLetterMessage>, CallError> {
        Ok(self.waiting.take())
    }

    async fn release(&self, message: &DeadLetterMessage) -> Result<(), CallError> {
        self.released.borrow_mut().push(message.id.clone());
        Ok(())
    }

    async fn delete(&self, message: &DeadLetterMessage) -> Result<(), CallError> {
        self.deleted.borrow_mut().push(message.id.clone());
        Ok(())
    }
}

/// Redrives messages with these bodies. Returns what was done, and the queue.
async fn redriven(table: Script, bodies: &[Json]) -> (Redriven, Messages) {
    let message = |(id, body): (usize, &Json)| DeadLetterMessage {
        id: id.to_string(),
        receipt: String::new(),
        body: body.to_string(),
    };
    let queue = Messages {
        waiting: RefCell::new(bodies.iter().enumerate().map(message).collect()),
        deleted: RefCell::default(),
        released: RefCell::default(),
    };
    let settings = Settings {
        table: "t".to_owned(),
        dead_letters: "q".to_owned(),
        windows: vec![WindowKind::Daily],
        retention_days: 30,
    };
    let invocation = Invocation::within(Duration::from_secs(20));
    let done = redrive(table, &queue, &settings, &invocation).await.unwrap();
    (done, queue)
}

fn letter(function: &str, record: &Json) -> Json {
    json!({"function": function, "reason": "because", "sequenceNumber": "1", "record": record})
}

#[tokio::test(start_paused = true)]
async fn a_redrive_deletes_only_letters_whose_records_it_has_counted() {
    let bodies = [
        letter("aggregator", &good(1, "a")),
        letter("archiver", &good(2, "a")),
        json!({"requestContext": {"condition": "RetryAttemptsExhausted"}}),
        json!({"function": "aggregator", "reason": "because", "sequenceNumber": "4"}),
    ];
    let (done, queue) = redriven(Script::default(), &bodies).await;
    assert_eq!((done.done, done.snapshots), (1, 1), "{done:?}");
    assert_eq!(*queue.deleted.borrow(), ["0"]);
    assert_eq!(*queue.released.borrow(), ["1", "2", "3"]);
    let expected = [
        "message 1: it is a dead letter of the archiver",
        "message 2: it is not a dead letter of the aggregator",
        "message 3: its record was too large for a message",
    ];
    for (kept, expected) in done.kept.iter().zip(expected) {
        assert!(kept.starts_with(expected), "{kept}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_redrive_keeps_every_letter_from_the_first_failure_on() {
    let letters =
        [(1, "a"), (2, "b"), (3, "c")].map(|(number, entity)| letter("aggregator", &good(number, entity)));
    let table = answering("b", Err(CallError::Throttled("slow down".to_owned())));
    let (done, queue) = redriven(table, &letters).await;
    assert_eq!((done.done, done.kept.len()), (1, 2), "{done:?}");
    assert_eq!(*queue.deleted.borrow(), ["0"]);
    assert_eq!(*queue.released.borrow(), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_redrive_whose_failure_cannot_be_reported_keeps_every_letter() {
    let letters = [
        letter("aggregator", &json!({"x": 1})),
        letter("aggregator", &good(2, "b")),
    ];
    let table = answering("b", Err(CallError::Denied("AccessDeniedException".to_owned())));
    let (done, queue) = redriven(table, &letters).await;
    assert_eq!((done.done, done.kept.len()), (0, 2), "{done:?}");
    assert!(queue.deleted.borrow().is_empty());
}
