//! The time left of an invocation.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// The time that is left of an invocation.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    ends: Instant,
}

impl Budget {
    /// Reserved for the response to Lambda: no retry starts after it.
    pub const RESERVE: Duration = Duration::from_secs(3);
    /// The timeout of one call.
    pub const LONGEST_CALL: Duration = Duration::from_secs(5);
    /// The timeout of a call when no time is left: it may well succeed before Lambda ends the invocation.
    const SHORTEST_CALL: Duration = Duration::from_millis(200);

    /// This much time from now.
    pub fn of(time: Duration) -> Self {
        Self {
            ends: Instant::now() + time,
        }
    }

    /// The time until Lambda ends the invocation.
    pub fn until(deadline: SystemTime) -> Self {
        Self::of(deadline.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// What is left.
    pub fn remaining(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// True if there is time for this pause and another call.
    pub fn allows(&self, pause: Duration) -> bool {
        self.remaining() > Self::RESERVE + pause
    }

    /// The timeout of the next call.
    pub fn for_one_call(&self) -> Duration {
        self.remaining()
            .saturating_sub(Self::RESERVE / 3)
            .clamp(Self::SHORTEST_CALL, Self::LONGEST_CALL)
    }
}
