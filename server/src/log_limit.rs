//! At most one line of a kind per interval in the log: an outage fails thousands of calls a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);

/// Decides whether a line is logged.
#[derive(Debug)]
pub(crate) struct LogLimit(Mutex<State>);

#[derive(Debug)]
struct State {
    last: Option<Instant>,
    suppressed: u64,
}

impl LogLimit {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State {
            last: None,
            suppressed: 0,
        }))
    }

    /// How many lines were left out since the last one, if a line may be logged now.
    pub(crate) fn permit(&self) -> Option<u64> {
        self.permit_at(Instant::now())
    }

    fn permit_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < INTERVAL)
        {
            state.suppressed = state.suppressed.saturating_add(1);
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_interval_says_how_many_were_left_out() {
        let limit = LogLimit::new();
        let start = Instant::now();
        assert_eq!(limit.permit_at(start), Some(0));
        assert_eq!(limit.permit_at(start), None);
        assert_eq!(limit.permit_at(start + INTERVAL / 2), None);
        assert_eq!(limit.permit_at(start + INTERVAL), Some(2));
        assert_eq!(limit.permit_at(start + INTERVAL * 2), Some(0));
    }
}
