//! Batches of stream records, a table and a queue.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use zae_limiter_aggregator::{Aggregator, SnapshotUpdate, Table, ThresholdMark, UpdateOutcome};
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetters, Function as _, Invocation, Level, Report,
};
use zae_limiter_schema::WindowKind;

pub(crate) const STREAM: &str = "arn:aws:dynamodb:us-east-1:1:table/t/stream/2026-01-31T12:00:00.000";

pub(crate) fn record(number: u64, entity: &str, at: i64, consumed: &Json) -> Json {
    json!({
        "eventID": "1", "eventName": "INSERT", "awsRegion": "us-east-1", "eventSourceARN": STREAM,
        "dynamodb": {
            "ApproximateCreationDateTime": at, "SequenceNumber": number.to_string(), "SizeBytes": 1,
            "Keys": {"PK": {"S": format!("ENTITY#{entity}")}, "SK": {"S": "#BUCKET#gpt-4"}},
            "NewImage": {"b_rpm_tc": consumed, "ev": {"N": "1"}},
        },
    })
}

/// A record that can be counted.
pub(crate) fn good(number: u64, entity: &str) -> Json {
    record(number, entity, 1_769_903_998, &json!({"N": "1000"}))
}

pub(crate) fn batch(records: &[Json]) -> Batch {
    serde_json::from_value(json!({ "Records": records })).unwrap()
}

/// A table with a response for each entity, and a record of its calls.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) responses: BTreeMap<&'static str, Result<UpdateOutcome, CallError>>,
    pub(crate) called: RefCell<Vec<String>>,
    /// The response to each mark of a threshold: by default, no other record has reached it.
    pub(crate) marking: Option<Result<bool, CallError>>,
    pub(crate) marked: RefCell<Vec<String>>,
    /// Whose snapshot makes it panic.
    pub(crate) panics: Option<&'static str>,
}

impl Table for Script {
    async fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        let entity = update.key.pk.trim_start_matches("ENTITY#");
        self.called.borrow_mut().push(entity.to_owned());
        assert_ne!(Some(entity), self.panics, "a bug that only {entity} meets");
        self.responses
            .get(entity)
            .cloned()
            .unwrap_or(Ok(UpdateOutcome::Applied))
    }

    async fn mark(&self, mark: &ThresholdMark) -> Result<bool, CallError> {
        self.marked.borrow_mut().push(mark.key.sk.clone());
        self.marking.clone().unwrap_or(Ok(true))
    }
}

/// A queue for dead letters.
#[derive(Default)]
pub(crate) struct Letters {
    /// Every letter is refused.
    pub(crate) full: bool,
    pub(crate) kept: RefCell<Vec<Json>>,
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

/// What became of a batch.
pub(crate) struct Outcome {
    /// The sequence numbers that the response reports.
    pub(crate) failed: Vec<String>,
    pub(crate) report: Report,
    /// The entities whose snapshots were updated.
    pub(crate) called: Vec<String>,
}

pub(crate) async fn process(table: Script, letters: &Letters, records: &[Json]) -> Result<Outcome, String> {
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
    let called = aggregator.table().called.borrow().clone();
    Ok(Outcome {
        failed: failed.collect(),
        report,
        called,
    })
}

/// A table that returns this for one entity, and applies the updates of the others.
pub(crate) fn returning(entity: &'static str, response: Result<UpdateOutcome, CallError>) -> Script {
    Script {
        responses: [(entity, response)].into(),
        ..Script::default()
    }
}

/// A table that panics where it updates a snapshot of one entity.
pub(crate) fn panicking(entity: &'static str) -> Script {
    Script {
        panics: Some(entity),
        ..Script::default()
    }
}
