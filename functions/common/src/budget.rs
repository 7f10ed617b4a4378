//! How long an invocation may still take.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// The time that is left of an invocation.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    ends: Instant,
}

impl Budget {
    /// Kept back from retries, so that the answer to Lambda is always in time.
    pub const RESERVE: Duration = Duration::from_secs(3);
    /// The longest that one call may take.
    pub const LONGEST_CALL: Duration = Duration::from_secs(5);
    /// What a call gets even when nothing is left: it may well be answered before Lambda ends the invocation.
    const SHORTEST_CALL: Duration = Duration::from_millis(200);

    /// This much from now on.
    pub fn of(time: Duration) -> Self {
        Self {
            ends: Instant::now() + time,
        }
    }

    /// What is left until Lambda ends the invocation.
    pub fn until(deadline: SystemTime) -> Self {
        Self::of(deadline.duration_since(SystemTime::now()).unwrap_or_default())
    }

    /// What is left.
    pub fn remaining(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// True if there is time to wait so long and call again.
    pub fn allows(&self, pause: Duration) -> bool {
        self.remaining() > Self::RESERVE + pause
    }

    /// How long the next call may take.
    pub fn for_one_call(&self) -> Duration {
        self.remaining()
            .saturating_sub(Self::RESERVE / 3)
            .clamp(Self::SHORTEST_CALL, Self::LONGEST_CALL)
    }
}
