//! What can go wrong, to what, and what to do about it.

use std::error::Error as StdError;

use crate::{InvalidField, InvalidFields};
use zae_limiter::error::NotFound;

/// The result of the operations of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a limits file could not be compared or applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file breaks a rule. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] InvalidFields),

    /// Reading or writing a level failed.
    #[error(transparent)]
    Limiter(#[from] zae_limiter::Error),

    /// Another process has applied a file since this one was compared.
    #[error("another process has applied a limits file to table {table}; compare the file again")]
    Concurrent {
        /// The table.
        table: String,
    },

    /// Reading or writing the record of managed levels failed.
    #[error("{operation} on table {table} failed: {problem}")]
    Table {
        /// The operation, such as `PutItem`.
        operation: &'static str,
        /// The table.
        table: String,
        /// What DynamoDB reported.
        problem: String,
        /// The error of the SDK.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl From<InvalidField> for Error {
    fn from(field: InvalidField) -> Self {
        Self::Invalid(field.into())
    }
}

impl Error {
    /// Whether the table does not exist.
    pub fn is_missing_table(&self) -> bool {
        match self {
            Self::Limiter(zae_limiter::Error::NotFound(NotFound::Table { .. })) => true,
            Self::Table { problem, .. } => problem.starts_with("ResourceNotFoundException"),
            _ => false,
        }
    }
}
