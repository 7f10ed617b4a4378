//! When an amount will be there.

use std::time::Duration;

use crate::Timestamp;

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

/// What is left of a limit, and what comes back when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlook {
    /// What is left, in thousandths. Below zero is debt.
    pub left: i128,
    /// What is used of a quota's period, or held by calls in flight, in thousandths. A rate only knows what is left.
    pub used: Option<i128>,
    /// When the requested amount will be available.
    pub retry_after: RetryAfter,
    /// When everything comes back at once, if it does.
    pub reset: Option<Reset>,
    /// What may be taken beyond the amount until then, in thousandths.
    pub topped_up: i128,
}

/// When everything of a limit comes back at once: the end of a quota's period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reset {
    /// The end of the period.
    pub at: Timestamp,
    /// The time until then.
    pub after: Duration,
    /// The length of the period.
    pub period: Duration,
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
