//! What the archiver does when something cannot be done.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use zae_limiter_archiver::{Archiver, CallError, Object, Store, metric};
use zae_limiter_function::{Batch, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report};

/// An id whose last digit is the event's number.
fn id(number: u64) -> String {
    format!("01KGA0VC00000000000000000{number}")
}

fn record(number: u64) -> Value {
    json!({
        "eventID": "1", "eventName": "INSERT", "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-31T12:00:00.000",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_769_903_998, "SequenceNumber": number.to_string(), "SizeBytes": 1,
            "Keys": {"PK": {"S": "AUDIT#user-1"}, "SK": {"S": format!("#AUDIT#{}", id(number))}},
            "NewImage": {"event_id": {"S": id(number)}, "timestamp": {"S": "2026-01-31T12:00:00Z"}},
        },
    })
}

/// What the store does with the event of a number.
#[derive(Clone)]
enum Mood {
    Fails(CallError),
    Panics,
}

#[derive(Default)]
struct Script {
    moods: BTreeMap<u64, Mood>,
    full: bool,
    put: RefCell<Vec<String>>,
    kept: RefCell<Vec<Value>>,
}

impl Script {
    fn with(number: u64, mood: Mood) -> Self {
        Self {
            moods: [(number, mood)].into(),
            ..Self::default()
        }
    }
}

impl Store for &Script {
    async fn put(&self, object: &Object) -> Result<(), CallError> {
        let number = object.key.trim_end_matches(".jsonl.gz").chars().last();
        let number = u64::from(number.and_then(|digit| digit.to_digit(10)).unwrap());
        match self.moods.get(&number) {
            Some(Mood::Panics) => panic!("a bug that only event {number} meets"),
            Some(Mood::Fails(failure)) => Err(failure.clone()),
            None => {
                self.put.borrow_mut().push(object.key.clone());
                Ok(())
            }
        }
    }
}

impl DeadLetters for &Script {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        assert!(!self.full, "the queue's client has a bug");
        let letter = serde_json::from_str(&letter.to_message()).unwrap();
        self.kept.borrow_mut().push(letter);
        Ok(())
    }
}

async fn process(script: &Script, records: &[Value]) -> (Vec<String>, Report) {
    let batch: Batch = serde_json::from_value(json!({ "Records": records })).unwrap();
    let mut report = Report::new(Level::Info, &[]);
    let invocation = Invocation::within(Duration::from_secs(20));
    let response = Archiver::new(script, script)
        .handle(&batch, &invocation, &mut report)
        .await
        .unwrap();
    let failed = response.batch_item_failures.into_iter();
    (failed.map(|item| item.item_identifier.unwrap()).collect(), report)
}

#[tokio::test(start_paused = true)]
async fn a_panic_makes_a_dead_letter_of_its_record_and_the_others_are_archived() {
    let script = Script::with(2, Mood::Panics);
    let records = [record(1), record(2), record(3)];
    let (failed, report) = process(&script, &records).await;
    assert_eq!(failed, [] as [&str; 0], "it does not block the shard");
    assert_eq!(
        (
            report.counted(metric::OBJECTS),
            report.counted(metric::DEAD_LETTERS)
        ),
        (2, 1)
    );
    let kept = script.kept.borrow();
    assert_eq!(kept[0]["record"], records[1], "whole");
    assert_eq!(kept[0]["sequenceNumber"], "2");
    let reason = kept[0]["reason"].as_str().unwrap();
    assert!(reason.contains("a bug that only event 2 meets"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_letter_is_sent_brings_its_record_back() {
    let script = Script {
        full: true,
        ..Script::with(2, Mood::Panics)
    };
    let (failed, _) = process(&script, &[record(1), record(2), record(3)]).await;
    assert_eq!(failed, ["2"], "nothing is lost");
    assert_eq!(script.put.borrow().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_put_is_reported_for_its_record_alone() {
    let script = Script::with(2, Mood::Fails(CallError::Unavailable("SlowDown".to_owned())));
    let (failed, report) = process(&script, &[record(1), record(2), record(3)]).await;
    assert_eq!(failed, ["2"]);
    assert_eq!(
        (report.counted(metric::OBJECTS), report.counted(metric::FAILURES)),
        (2, 1)
    );
    assert!(script.kept.borrow().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_put_that_is_invalid_or_refused_for_an_unknown_reason_makes_a_dead_letter_of_its_record() {
    for (failure, code) in [
        (CallError::Refused("SomethingNew".to_owned()), "SomethingNew"),
        (
            CallError::Invalid("KeyTooLongError".to_owned()),
            "KeyTooLongError",
        ),
    ] {
        let script = Script::with(2, Mood::Fails(failure));
        let records = [record(1), record(2), record(3)];
        let (failed, report) = process(&script, &records).await;
        assert_eq!(failed, [] as [&str; 0], "{code} does not block the shard");
        assert_eq!(
            (
                report.counted(metric::OBJECTS),
                report.counted(metric::DEAD_LETTERS)
            ),
            (2, 1),
            "{code}"
        );
        let kept = script.kept.borrow();
        assert_eq!((kept.len(), &kept[0]["record"]), (1, &records[1]), "whole");
        let reason = kept[0]["reason"].as_str().unwrap();
        assert!(reason.contains(code), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_bucket_or_permission_holds_the_whole_batch_back() {
    let script = Script::with(3, Mood::Fails(CallError::Denied("NoSuchBucket".to_owned())));
    let (failed, _) = process(&script, &[record(1), record(2), record(3)]).await;
    assert_eq!(failed, ["1"]);
    assert!(
        script.kept.borrow().is_empty(),
        "nothing is passed over for want of a permission"
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_name_goes_whole_to_the_dead_letters() {
    let script = Script::default();
    let mut nameless = record(2);
    nameless["dynamodb"]["NewImage"] = json!({"timestamp": {"S": "2026-01-31T12:00:00Z"}});
    let (failed, _) = process(&script, &[record(1), nameless.clone(), record(3)]).await;
    assert_eq!(failed, [] as [&str; 0]);
    let kept = script.kept.borrow();
    assert_eq!((kept.len(), &kept[0]["record"]), (1, &nameless));
    assert!(kept[0]["reason"].as_str().unwrap().contains("event_id"));
    assert_eq!(script.put.borrow().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn only_new_audit_events_are_archived() {
    let script = Script::default();
    let (mut expired, mut changed, mut bucket) = (record(1), record(2), record(3));
    expired["eventName"] = json!("REMOVE");
    changed["eventName"] = json!("MODIFY");
    bucket["dynamodb"]["Keys"]["PK"] = json!({"S": "ENTITY#user-1"});
    let (failed, report) = process(&script, &[expired, changed, bucket, record(4)]).await;
    assert_eq!(failed, [] as [&str; 0]);
    assert!(script.kept.borrow().is_empty());
    assert_eq!(
        (script.put.borrow().len(), report.counted(metric::OBJECTS)),
        (1, 1)
    );
    assert!(script.put.borrow()[0].contains(&id(4)), "{:?}", script.put);
}

#[tokio::test(start_paused = true)]
async fn a_record_without_a_partition_key_goes_whole_to_the_dead_letters() {
    let script = Script::default();
    let (mut missing, mut number) = (record(1), record(2));
    missing["dynamodb"]["Keys"] = json!({"SK": {"S": "#AUDIT#x"}});
    number["dynamodb"]["Keys"]["PK"] = json!({"N": "7"});
    let (failed, _) = process(&script, &[missing.clone(), number.clone()]).await;
    assert_eq!(failed, [] as [&str; 0]);
    let kept = script.kept.borrow();
    assert_eq!((&kept[0]["record"], &kept[1]["record"]), (&missing, &number));
    for letter in kept.iter() {
        let reason = letter["reason"].as_str().unwrap();
        assert!(reason.contains("PK is missing or not a string"), "{reason}");
    }
    assert!(script.put.borrow().is_empty());
}

/// A record that the archiver leaves out.
fn other_item(number: u64) -> Value {
    let mut bucket = record(number);
    bucket["dynamodb"]["Keys"]["PK"] = json!({"S": "ENTITY#user-1"});
    bucket
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_by_its_place_in_the_batch_although_records_before_it_are_left_out() {
    let script = Script::with(3, Mood::Fails(CallError::Unavailable("SlowDown".to_owned())));
    let records = [other_item(1), other_item(2), record(3), record(4)];
    let (failed, _) = process(&script, &records).await;
    assert_eq!(
        failed,
        ["3"],
        "Lambda delivers the event again that is not archived"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_holds_the_failed_record_although_records_before_it_are_left_out() {
    for mood in [
        Mood::Panics,
        Mood::Fails(CallError::Invalid("KeyTooLongError".to_owned())),
    ] {
        let script = Script::with(3, mood);
        let records = [other_item(1), other_item(2), record(3), record(4)];
        let (failed, _) = process(&script, &records).await;
        assert_eq!(failed, [] as [&str; 0]);
        let kept = script.kept.borrow();
        assert_eq!((kept.len(), &kept[0]["record"]), (1, &records[2]));
        assert_eq!(kept[0]["sequenceNumber"], "3");
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_read_is_named_in_the_dead_letter() {
    let script = Script::default();
    let mut unreadable = record(2);
    unreadable["dynamodb"]["NewImage"]["event_id"] = json!({"S": 7});
    process(&script, &[record(1), unreadable.clone(), record(3)]).await;
    let kept = script.kept.borrow();
    assert_eq!((kept.len(), &kept[0]["record"]), (1, &unreadable));
    let reason = kept[0]["reason"].as_str().unwrap();
    assert!(reason.contains("dynamodb.NewImage.event_id"), "{reason}");
}
