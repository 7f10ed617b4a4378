//! The gap between retries that no caller waits for. Pure: no clock.

use std::time::Duration;

/// The gap after the first request without a response. It doubles with each further one.
const FIRST_GAP: Duration = Duration::from_millis(5);
/// No gap is longer: five requests a second, however many buckets have something to write.
const LONGEST_GAP: Duration = Duration::from_millis(200);
/// No retry waits longer than this, so that all of them go on soon after the table is back.
const LONGEST_WAIT: Duration = LONGEST_GAP.saturating_mul(8);

/// From this many responses in a row on, each halves the gap: the table is back.
const BACK_AFTER: u32 = 3;

/// The gap between two such retries: none while the table responds. A response alone makes it a little shorter, so that it
/// stays long while only a share of the requests gets one.
#[derive(Debug, Default)]
pub(crate) struct RetryPace {
    gap: Duration,
    /// Responses without a failure in between.
    responses: u32,
    /// When the next one may be sent, on the clock's time scale.
    next: Duration,
}

impl RetryPace {
    /// A request of this limiter had no response.
    pub(crate) fn failed(&mut self) {
        self.responses = 0;
        self.gap = (self.gap * 2).clamp(FIRST_GAP, LONGEST_GAP);
    }

    /// A request of this limiter had a response.
    pub(crate) fn responded(&mut self) {
        self.responses = self.responses.saturating_add(1);
        let shorter = if self.responses >= BACK_AFTER {
            self.gap / 2
        } else {
            self.gap / 16 * 15
        };
        self.gap = if shorter < FIRST_GAP {
            Duration::ZERO
        } else {
            shorter
        };
    }

    /// How long the caller waits before it sends its retry; the next caller waits longer. While the table responds there is no
    /// wait, whatever was reserved before.
    pub(crate) fn reserve(&mut self, now: Duration) -> Duration {
        if self.gap.is_zero() {
            self.next = now;
            return Duration::ZERO;
        }
        let at = self.next.max(now).min(now + LONGEST_WAIT);
        self.next = at + self.gap;
        at - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(7);

    fn waits(pace: &mut RetryPace, count: usize) -> Vec<u128> {
        (0..count).map(|_| pace.reserve(NOW).as_millis()).collect()
    }

    #[test]
    fn retries_follow_each_other_at_once_while_the_table_responds() {
        assert_eq!(waits(&mut RetryPace::default(), 3), [0, 0, 0]);
    }

    #[test]
    fn retries_are_up_to_200_ms_apart_while_it_does_not() {
        let mut pace = RetryPace::default();
        pace.failed();
        assert_eq!(waits(&mut pace, 3), [0, 5, 10]);
        (0..9).for_each(|_| pace.failed());
        assert_eq!(waits(&mut pace, 3), [15, 215, 415]);
    }

    #[test]
    fn the_gap_stays_long_while_a_third_of_the_requests_succeeds_and_ends_when_all_do() {
        let mut pace = RetryPace::default();
        for _ in 0..100 {
            (0..2).for_each(|_| pace.failed());
            pace.responded();
        }
        assert!(pace.gap > LONGEST_GAP / 10 * 9);
        (0..10).for_each(|_| pace.responded());
        assert_eq!(pace.gap, Duration::ZERO);
    }

    #[test]
    fn reservations_that_nobody_used_delay_nobody_once_the_table_is_back() {
        let mut pace = RetryPace::default();
        for _ in 0..1_000 {
            pace.failed();
            assert!(pace.reserve(NOW) <= LONGEST_WAIT);
        }
        assert_eq!(pace.reserve(NOW), LONGEST_WAIT);
        (0..10).for_each(|_| pace.responded());
        assert_eq!(waits(&mut pace, 3), [0, 0, 0]);
    }
}
