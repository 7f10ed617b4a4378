//! What can go wrong, to what, and what to do about it.

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

    /// Reading or writing the table failed.
    #[error(transparent)]
    Limiter(#[from] zae_limiter::Error),

    /// Another process has applied a file since this one was compared.
    #[error("another process has applied a limits file to table {table}; compare the file again")]
    Concurrent {
        /// The table.
        table: String,
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
        matches!(
            self,
            Self::Limiter(zae_limiter::Error::NotFound(NotFound::Table { .. }))
        )
    }
}
