//! When an amount will be there.

use std::time::Duration;

/// When the requested amount will be available, if nobody else takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetryAfter {
    /// It is available.
    Now,
    /// After this time, and not a millisecond earlier.
    After(Duration),
    /// Never: it is more than the limit's burst.
    Never,
}

impl RetryAfter {
    /// After this many milliseconds.
    pub fn after_millis(millis: i128) -> Self {
        Self::After(Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)))
    }

    /// In seconds; `None` for never.
    pub fn seconds(self) -> Option<f64> {
        match self {
            Self::Now => Some(0.0),
            Self::After(time) => Some(time.as_secs_f64()),
            Self::Never => None,
        }
    }
}
