//! A value that is kept for a while, and longer if it cannot be read again.

use std::time::Duration;

/// After a reload that failed, the expired value is used this long before the next attempt.
const RELOAD_PAUSE: Duration = Duration::from_secs(5);

/// How good a kept value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// Good.
    Fresh,
    /// Expired, and used because it could not be reloaded a moment ago.
    Stale,
    /// To be reloaded.
    Expired,
}

/// A value, and until when it is good.
#[derive(Debug)]
pub(super) struct Timed<T> {
    pub(super) value: T,
    /// Its place in the order of loads and invalidations.
    pub(super) kept: u64,
    expires: Duration,
    /// Set once a reload has failed.
    retry_at: Option<Duration>,
}

impl<T> Timed<T> {
    pub(super) fn until(expires: Duration, value: T, kept: u64) -> Self {
        Self {
            value,
            kept,
            expires,
            retry_at: None,
        }
    }

    pub(super) fn age(&self, now: Duration) -> Age {
        if now < self.expires {
            Age::Fresh
        } else if self.retry_at.is_some_and(|retry_at| now < retry_at) {
            Age::Stale
        } else {
            Age::Expired
        }
    }

    /// Until when its age stays what it is.
    pub(super) fn unchanged_until(&self) -> Duration {
        self.retry_at.unwrap_or(self.expires)
    }

    /// A reload has failed.
    pub(super) fn reload_failed(&mut self, now: Duration) {
        if self.age(now) == Age::Expired {
            self.retry_at = Some(now + RELOAD_PAUSE);
        }
    }

    /// A reload begins. If the last one failed, nobody else waits for this one.
    pub(super) fn reload_starts(&mut self, now: Duration) {
        if self.retry_at.is_some() {
            self.reload_failed(now);
        }
    }
}
