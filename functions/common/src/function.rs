//! What a function does with a batch, wherever the batch comes from.

use crate::{Batch, DynamoDbEventResponse, Invocation, Report, Unreportable};

/// A function that reads a DynamoDB stream.
pub trait Function {
    /// The metrics it always reports.
    const METRICS: &'static [&'static str];

    /// Processes a batch in the time of the invocation. The response names the records that failed; a failed record
    /// without a sequence number fails the invocation.
    fn handle(
        &self,
        batch: &Batch,
        invocation: &Invocation,
        report: &mut Report,
    ) -> impl Future<Output = Result<DynamoDbEventResponse, Unreportable>>;
}
