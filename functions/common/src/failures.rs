//! Which records Lambda delivers again.

use std::collections::BTreeSet;

use aws_lambda_events::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};

use crate::Batch;

/// A record failed that has no sequence number: only a failed invocation brings it back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {index} of the batch failed and has no sequence number; the whole batch is delivered again")]
pub struct Unreportable {
    index: usize,
}

/// The records of a batch that Lambda has to deliver again, by index.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Failures(BTreeSet<usize>);

impl Failures {
    /// The record at this index failed.
    pub fn add(&mut self, index: usize) {
        self.0.insert(index);
    }

    /// No record of the batch can be processed now.
    pub fn add_all(&mut self) {
        self.0.insert(0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if no record failed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The partial batch response. Lambda goes back to the lowest of the numbers.
    pub fn to_response(&self, batch: &Batch) -> Result<DynamoDbEventResponse, Unreportable> {
        let mut response = DynamoDbEventResponse::default();
        for index in &self.0 {
            let number = batch.record(*index).and_then(crate::Record::sequence_number);
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(number.ok_or(Unreportable { index: *index })?);
            response.batch_item_failures.push(failure);
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn batch() -> Batch {
        serde_json::from_str(
            r#"{"Records": [{"dynamodb": {"SequenceNumber": "5"}}, {"dynamodb": {"SequenceNumber": "6"}}, 1]}"#,
        )
        .unwrap()
    }

    #[test]
    fn success_is_an_empty_list_and_a_failure_names_its_number_once() {
        let mut failures = Failures::default();
        let response =
            |failures: &Failures| serde_json::to_string(&failures.to_response(&batch()).unwrap()).unwrap();
        assert_eq!(response(&failures), r#"{"batchItemFailures":[]}"#);
        failures.add(1);
        failures.add(1);
        assert_eq!(
            response(&failures),
            r#"{"batchItemFailures":[{"itemIdentifier":"6"}]}"#
        );
    }

    #[test]
    fn a_failed_record_without_a_number_fails_the_invocation() {
        let mut failures = Failures::default();
        failures.add(2);
        assert!(failures.to_response(&batch()).is_err());
    }
}
