//! A value that is kept for a while, and longer if it cannot be read again.

use std::num::NonZeroU64;
use std::time::Duration;

/// After a reload that failed, the expired value is used this long before the next attempt.
const RELOAD_PAUSE: Duration = Duration::from_secs(5);

/// How good a kept value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// Good.
    Fresh,
    /// Expired, and used because the last reload has just failed.
    Stale,
    /// To be reloaded.
    Expired,
}

/// A value, and until when it is good. There are hundreds of thousands of them, so times are
/// numbers of nanoseconds: eight bytes for 584 years.
#[derive(Debug)]
pub(super) struct Timed<T> {
    pub(super) value: T,
    /// Its place in the order of loads and invalidations.
    pub(super) kept: u64,
    expires: u64,
    /// Set once a reload has failed.
    retry_at: Option<NonZeroU64>,
}

fn nanos(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

impl<T> Timed<T> {
    pub(super) fn until(expires: Duration, value: T, kept: u64) -> Self {
        Self {
            value,
            kept,
            expires: nanos(expires),
            retry_at: None,
        }
    }

    pub(super) fn age(&self, now: Duration) -> Age {
        let now = nanos(now);
        if now < self.expires {
            Age::Fresh
        } else if self.retry_at.is_some_and(|retry_at| now < retry_at.get()) {
            Age::Stale
        } else {
            Age::Expired
        }
    }

    /// Until when its age stays what it is.
    pub(super) fn unchanged_until(&self) -> Duration {
        Duration::from_nanos(self.retry_at.map_or(self.expires, NonZeroU64::get))
    }

    /// A reload has failed.
    pub(super) fn reload_failed(&mut self, now: Duration) {
        if self.age(now) == Age::Expired {
            self.retry_at = NonZeroU64::new(nanos(now + RELOAD_PAUSE));
        }
    }

    /// A reload begins. If the last one failed, no other caller waits for this one.
    pub(super) fn reload_starts(&mut self, now: Duration) {
        if self.retry_at.is_some() {
            self.reload_failed(now);
        }
    }
}
