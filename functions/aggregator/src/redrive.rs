//! Counting dead letters once their cause is gone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use zae_limiter_function::{
    Batch, CallError, DeadLetter, DeadLetterMessage, DeadLetterSource, DeadLetters, Function as _,
    Invocation, Level, Report,
};

use crate::{Aggregator, Alerts, Settings, Table, metric};

/// What a redrive did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redriven {
    /// Dead letters whose records are counted now, or had been counted before. They are deleted from the queue.
    pub done: usize,
    /// Snapshots that were written.
    pub snapshots: u64,
    /// Dead letters that stay in the queue, each with the reason.
    pub kept: Vec<String>,
}

/// The most dead letters that one redrive takes from the queue. Run it again for the rest.
const MAX_LETTERS: usize = 10_000;

/// A dead letter of the aggregator, as far as a redrive needs it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Letter<'a> {
    function: &'a str,
    #[serde(borrow)]
    record: Option<&'a RawValue>,
}

/// Delivers the records of dead letters to the aggregator again, and deletes the letters that are done with.
///
/// Events about thresholds that could not be sent are sent to `alerts`.
///
/// A snapshot knows which records it has not counted, so the result is exact at any time: while the function runs, after
/// it has counted later records, and if the redrive itself is repeated.
pub async fn redrive<T: Table, Q: DeadLetterSource, A: Alerts>(
    table: T,
    queue: &Q,
    alerts: Option<A>,
    settings: &Settings,
    invocation: &Invocation,
) -> Result<Redriven, CallError> {
    let mut messages = BTreeMap::new();
    while messages.len() < MAX_LETTERS {
        let received = invocation.retry(|| queue.receive()).await?;
        if received.is_empty() {
            break;
        }
        messages.extend(received.into_iter().map(|message| (message.id.clone(), message)));
    }
    let mut redriven = Redriven::default();
    let (mut records, mut kept) = (Vec::new(), Vec::new());
    for message in messages.values() {
        match record(&message.body) {
            Ok(record) => records.push((message, record)),
            Err(reason) => kept.push((message, reason)),
        }
    }
    // In the order of the stream, so that a snapshot's gaps close one after the other instead of splitting up.
    records.sort_by_key(|(_, record)| sort_key(record));
    let aggregator = Aggregator::new(
        table,
        Returned::default(),
        settings.windows.clone(),
        settings.retention_days,
    )
    .with_alerts(alerts);
    for part in records.chunks(BATCH) {
        let event: Vec<_> = part.iter().map(|(_, record)| record.get()).collect();
        let batch: Batch = serde_json::from_str(&format!(r#"{{"Records":[{}]}}"#, event.join(",")))
            .map_err(|error| CallError::Invalid(error.to_string()))?;
        let outcome = deliver(&aggregator, &batch, invocation).await;
        redriven.snapshots += outcome.snapshots;
        for (index, (message, _)) in part.iter().enumerate() {
            if let Some(reason) = outcome.reason(index) {
                kept.push((message, reason.to_owned()));
                continue;
            }
            invocation.retry(|| queue.delete(message)).await?;
            redriven.done += 1;
        }
    }
    redriven.kept = release(queue, kept, invocation).await;
    Ok(redriven)
}

/// Gives messages back to the queue, for the next redrive, and lists them.
async fn release<Q: DeadLetterSource>(
    queue: &Q,
    kept: Vec<(&DeadLetterMessage, String)>,
    invocation: &Invocation,
) -> Vec<String> {
    let mut listed = Vec::with_capacity(kept.len());
    for (message, reason) in kept {
        // A message that cannot be released comes back by itself, only later.
        let _ = invocation.retry(|| queue.release(message)).await;
        listed.push(format!("message {}: {reason}", message.id));
    }
    listed
}

/// As many records as Lambda delivers at once.
const BATCH: usize = 1_000;

/// The record in a message, or why there is none to count.
fn record(body: &str) -> Result<&RawValue, String> {
    let letter: Letter<'_> = serde_json::from_str(body).map_err(|_| {
        "it is not a dead letter of the aggregator; a batch that Lambda gave up is counted by reading the stream again"
            .to_owned()
    })?;
    if letter.function != "aggregator" {
        return Err(format!("it is a dead letter of the {}", letter.function));
    }
    letter
        .record
        .ok_or_else(|| "its record was too large for a message".to_owned())
}

/// Stream label and sequence number as they sort; records without them come first and are refused later.
fn sort_key(record: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "eventSourceARN")]
        stream: String,
        dynamodb: Change,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Change {
        sequence_number: String,
    }
    let head: Head = serde_json::from_str(record.get()).ok()?;
    let position = crate::Position::new(&head.stream, &head.dynamodb.sequence_number);
    Some(position.ok()?.to_string())
}

/// What became of one batch.
struct Outcome {
    snapshots: u64,
    /// From this index on, nothing is certain.
    failed_from: Option<usize>,
    failure: String,
    /// Records that became dead letters again.
    returned: BTreeMap<String, String>,
    numbers: Vec<Option<String>>,
}

impl Outcome {
    /// Why the letter of a record has to stay.
    fn reason(&self, index: usize) -> Option<&str> {
        if self.failed_from.is_some_and(|failed| failed <= index) {
            return Some(&self.failure);
        }
        let number = self.numbers[index].as_deref().unwrap_or_default();
        self.returned.get(number).map(String::as_str)
    }
}

async fn deliver<T: Table, A: Alerts>(
    aggregator: &Aggregator<T, Returned, A>,
    batch: &Batch,
    invocation: &Invocation,
) -> Outcome {
    let numbers: Vec<_> = batch
        .records()
        .map(zae_limiter_function::Record::sequence_number)
        .collect();
    let mut report = Report::new(Level::Warn, &[]);
    let response = aggregator.handle(batch, invocation, &mut report).await;
    let failed: Option<BTreeSet<_>> = response.ok().map(|response| {
        let failures = response.batch_item_failures.into_iter();
        failures.filter_map(|failure| failure.item_identifier).collect()
    });
    let failed_from = match &failed {
        // Not even the failure could be reported.
        None => Some(0),
        Some(failed) => numbers
            .iter()
            .position(|number| number.as_ref().is_some_and(|number| failed.contains(number))),
    };
    let failure = report
        .notes()
        .iter()
        .find(|note| ["counted", "sent"].iter().any(|word| note.message.contains(word)));
    Outcome {
        snapshots: report.counted(metric::SNAPSHOTS),
        failed_from,
        failure: failure.map_or_else(|| "the batch failed".to_owned(), |note| note.message.clone()),
        returned: aggregator.dead_letters().0.take(),
        numbers,
    }
}

/// Dead letters by sequence number, with their reasons. Their messages are in the queue already.
#[derive(Debug, Default)]
struct Returned(RefCell<BTreeMap<String, String>>);

impl DeadLetters for Returned {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        let number = letter.sequence_number.clone().unwrap_or_default();
        self.0.borrow_mut().insert(number, letter.reason.clone());
        Ok(())
    }
}
