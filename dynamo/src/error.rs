//! What an operation on the table can fail with.

use std::path::PathBuf;
use std::time::Duration;

use zae_limiter_schema::Malformed;

use crate::CallError;

/// The result of most operations of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that an operation can fail with.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call failed and a retry cannot help, or its time budget is used up.
    #[error("{operation} on table {table} in {place} failed: {cause}")]
    Call {
        /// The API operation.
        operation: &'static str,
        /// The table.
        table: String,
        /// Region, endpoint or file.
        place: String,
        /// The time budget.
        within: Duration,
        /// What happened at the last attempt.
        cause: CallError,
    },

    /// The embedded store's file is locked by another process.
    #[error("another process holds {}; stop it, or use another file", path.display())]
    FileHeld {
        /// The file.
        path: PathBuf,
    },

    /// The embedded store cannot be used.
    #[error("{place} {reason}")]
    Store {
        /// The file, or memory.
        place: String,
        /// Why not.
        reason: String,
    },

    /// An item of the table is not what it should be.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

impl Error {
    /// Why the call failed, if one was made.
    pub fn cause(&self) -> Option<&CallError> {
        match self {
            Self::Call { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
