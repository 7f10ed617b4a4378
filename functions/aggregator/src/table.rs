//! The table that holds the snapshots.

use zae_limiter_function::CallError;

use crate::{Progress, SnapshotUpdate, ThresholdMark};

/// What became of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// The snapshot is written.
    Applied,
    /// The condition did not hold. The snapshot's progress, if it could be read.
    Refused(Option<Progress>),
}

/// The table as the aggregator sees it: it updates snapshots, marks thresholds and does nothing else.
pub trait Table {
    /// Performs the update if its condition holds.
    fn update(&self, update: &SnapshotUpdate) -> impl Future<Output = Result<UpdateOutcome, CallError>>;

    /// Marks a threshold as reached by a record. False if another record has reached it before.
    fn mark(&self, mark: &ThresholdMark) -> impl Future<Output = Result<bool, CallError>>;
}

impl<T: Table> Table for &T {
    async fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        (*self).update(update).await
    }

    async fn mark(&self, mark: &ThresholdMark) -> Result<bool, CallError> {
        (*self).mark(mark).await
    }
}
