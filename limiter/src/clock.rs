//! Time as the limiter sees it, so that tests can set it.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use zae_limiter_schema::Timestamp;

/// Where the time comes from.
///
/// Every decision takes one reading and keeps it: refill, expiry and the write that follows use the same time.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The time now, by the calendar. May jump when the machine's clock is set.
    fn now(&self) -> Timestamp;

    /// Time since some fixed start, for measuring how long ago something was. Never goes back.
    fn elapsed(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose [`elapsed`](Clock::elapsed) starts at zero now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that only moves when it is advanced.
///
/// ```
/// use std::time::Duration;
/// use zae_limiter::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap());
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().to_string(), "2026-01-31T12:01:00Z");
/// ```
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicI64,
    elapsed: AtomicI64,
}

impl ManualClock {
    /// A clock that shows this time.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now: AtomicI64::new(now.millis()),
            elapsed: AtomicI64::new(0),
        }
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.now.fetch_add(millis, Ordering::SeqCst);
        self.elapsed.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the calendar, forwards or back, as an operator or a time server does. No time passes by it.
    pub fn set(&self, now: Timestamp) {
        self.now.store(now.millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.elapsed.load(Ordering::SeqCst).max(0).cast_unsigned())
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn elapsed(&self) -> Duration {
        (**self).elapsed()
    }
}
