//! Records that can never be processed: kept whole, with the reason, so that they block nobody and are not lost.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    Batch, Budget, CallFailure, Failures, Level, Record, Report, metric, processing, retrying, spread,
};

/// A record and why it was passed over.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter<'a> {
    /// The function that could not process it.
    pub function: &'static str,
    /// What is wrong.
    pub reason: String,
    /// Where in the stream it is, if that could be read.
    pub sequence_number: Option<String>,
    /// The record as it came; absent if it does not fit in a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<&'a RawValue>,
}

/// What every SQS queue takes, in bytes.
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

    /// The message: JSON that holds the record itself, or, where that is too large for any message, the place in the
    /// stream from which it can be read for a day.
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
    // Strings and text that is JSON already: there is nothing that could fail to serialise.
    serde_json::to_string(letter).unwrap_or_default()
}

/// Where dead letters go.
pub trait DeadLetters {
    /// Keeps a letter; returns when it is safe.
    fn send(&self, letter: &DeadLetter<'_>) -> impl Future<Output = Result<(), CallFailure>>;
}

/// Makes dead letters of records that can never be processed, given by their places in the batch. One that cannot even
/// be kept has failed and comes again.
pub async fn pass_over<D: DeadLetters>(
    batch: &Batch,
    reasons: Vec<(usize, String)>,
    function: &'static str,
    dead_letters: &D,
    budget: &Budget,
    failures: &mut Failures,
    report: &mut Report,
) {
    let jobs = reasons.into_iter().filter_map(|(place, reason)| {
        let letter = DeadLetter::new(function, batch.record(place)?, reason);
        Some(async move {
            let sent = processing(retrying(budget, || dead_letters.send(&letter))).await;
            (place, letter, sent)
        })
    });
    spread(jobs, |(place, letter, sent)| {
        let number = letter.sequence_number.as_deref().unwrap_or("without a number");
        match sent {
            Ok(()) => {
                report.count(metric::DEAD_LETTERS, 1);
                report.note(
                    Level::Warn,
                    format!("record {number} is now a dead letter: {}", letter.reason),
                );
            }
            Err(failure) => {
                failures.add(place);
                report.note(
                    Level::Error,
                    format!("record {number} could not be dead-lettered: {failure}"),
                );
            }
        }
        true
    })
    .await;
}

/// An SQS queue of dead letters.
#[derive(Debug, Clone)]
pub struct Queue {
    client: aws_sdk_sqs::Client,
    url: String,
}

impl Queue {
    /// The queue at that URL.
    pub fn new(client: aws_sdk_sqs::Client, url: impl Into<String>) -> Self {
        Self {
            client,
            url: url.into(),
        }
    }
}

impl DeadLetters for Queue {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallFailure> {
        self.client
            .send_message()
            .queue_url(&self.url)
            .message_body(letter.to_message())
            .send()
            .await
            .map(drop)
            .map_err(|error| CallFailure::of(&error))
    }
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
