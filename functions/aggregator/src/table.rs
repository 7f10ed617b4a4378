//! Where snapshots are.

use zae_limiter_function::CallFailure;

use crate::{Seen, SnapshotUpdate};

/// What the table said to an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is written.
    Done,
    /// The condition did not hold; how far the snapshot has counted, if its progress could be read.
    Refused(Option<Seen>),
}

/// The table as the aggregator sees it: it writes snapshots and does nothing else.
pub trait Table {
    /// Performs the update if its condition holds.
    fn update(&self, update: &SnapshotUpdate) -> impl Future<Output = Result<Answer, CallFailure>>;
}
