//! Time in the simulation: tokio's paused time, seen through a clock that may be off.

use std::time::Duration;

use tokio::time::Instant;
use zae_limiter_schema::Timestamp;

use crate::Clock;

/// The now at which every run starts, in epoch milliseconds.
pub(super) const START: i64 = 1_700_000_000_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct SimClock {
    pub(super) start: Instant,
    /// By how much this client's calendar is off, in milliseconds.
    pub(super) skew: i64,
}

impl SimClock {
    pub(super) fn millis(&self) -> i64 {
        START + self.skew + i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis())
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Runs in simulated time.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(work)
}
