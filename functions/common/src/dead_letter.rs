//! Records that cannot be processed: kept whole in a queue, with the reason, so that they neither block others nor get lost.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{Batch, CallError, Failures, Invocation, Level, Record, Report, metric, processing, spread};

/// A record that could not be processed, and why.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter<'a> {
    /// The function that could not process it.
    pub function: &'static str,
    /// Why.
    pub reason: String,
    /// The sequence number of the record, if it has one.
    pub sequence_number: Option<String>,
    /// The record as it was delivered; absent if it does not fit in a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<&'a RawValue>,
}

/// The largest message that every SQS queue accepts, in bytes.
const LARGEST_MESSAGE: usize = 262_144;

impl<'a> DeadLetter<'a> {
    /// A letter about a record.
    pub fn new(function: &'static str, record: Record<'a>, reason: impl Into<String>) -> Self {
        Self {
            function,
            reason: reason.into(),
            sequence_number: record.sequence_number(),
            record: Some(record.raw()),
        }
    }

    /// The message: JSON with the record itself, or, if that is too large for a message, with its sequence number. The
    /// record can be read from the stream for 24 hours.
    pub fn to_message(&self) -> String {
        let whole = json(self);
        if whole.len() <= LARGEST_MESSAGE {
            return whole;
        }
        let reason: String = self.reason.chars().take(1000).collect();
        json(&Self {
            reason: format!("{reason} (the record is too large for a message; read it from the stream)"),
            record: None,
            ..self.clone()
        })
    }
}

fn json(letter: &DeadLetter<'_>) -> String {
    // Strings and JSON: serializing them cannot fail.
    serde_json::to_string(letter).unwrap_or_default()
}

/// Where dead letters go.
pub trait DeadLetters {
    /// Keeps a dead letter. Returns once it is durable.
    fn send(&self, letter: &DeadLetter<'_>) -> impl Future<Output = Result<(), CallError>>;
}

/// Makes dead letters of records that cannot be processed, given by their index in the batch. A record whose dead letter
/// cannot be sent has failed, and is delivered again.
pub async fn pass_over<D: DeadLetters>(
    batch: &Batch,
    reasons: Vec<(usize, String)>,
    function: &'static str,
    dead_letters: &D,
    invocation: &Invocation,
    failures: &mut Failures,
    report: &mut Report,
) {
    let jobs = reasons.into_iter().filter_map(|(index, reason)| {
        let letter = DeadLetter::new(function, batch.record(index)?, reason);
        Some(async move {
            let sent = processing(invocation.retry(|| dead_letters.send(&letter))).await;
            (index, letter, sent)
        })
    });
    spread(jobs, |(index, letter, sent)| {
        let number = letter
            .sequence_number
            .as_deref()
            .unwrap_or("without a sequence number");
        match sent {
            Ok(()) => {
                report.count(metric::DEAD_LETTERS, 1);
                report.note(
                    Level::Warn,
                    format!("record {number} is now a dead letter: {}", letter.reason),
                );
            }
            Err(error) => {
                failures.add(index);
                report.note(
                    Level::Error,
                    format!("record {number} could not be dead-lettered: {error}"),
                );
            }
        }
        true
    })
    .await;
}

/// A dead letter in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterMessage {
    /// What the queue calls it.
    pub id: String,
    /// What deletes it.
    pub receipt: String,
    /// The message: see [`DeadLetter::to_message`].
    pub body: String,
}

/// Where dead letters are read again.
pub trait DeadLetterSource {
    /// Some messages, hidden from other receivers for a while; none if the queue is empty.
    fn receive(&self) -> impl Future<Output = Result<Vec<DeadLetterMessage>, CallError>>;

    /// Lets others receive a message again, at once.
    fn release(&self, message: &DeadLetterMessage) -> impl Future<Output = Result<(), CallError>>;

    /// Deletes a message.
    fn delete(&self, message: &DeadLetterMessage) -> impl Future<Output = Result<(), CallError>>;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_letter_holds_the_record_byte_for_byte_unless_no_message_could() {
        let small = r#"{"dynamodb":{"SequenceNumber":"12"},  "odd":1e400}"#;
        let batch = format!(r#"{{"Records":[{small},{{"a":"{}"}}]}}"#, "x".repeat(300_000));
        let batch: crate::Batch = serde_json::from_str(&batch).unwrap();
        let letters: Vec<_> = batch
            .records()
            .map(|record| DeadLetter::new("aggregator", record, "because").to_message())
            .collect();
        assert_eq!(
            letters[0],
            format!(
                r#"{{"function":"aggregator","reason":"because","sequenceNumber":"12","record":{small}}}"#
            )
        );
        assert!(letters[1].len() < 1000 && letters[1].contains("too large for a message"));
    }
}
