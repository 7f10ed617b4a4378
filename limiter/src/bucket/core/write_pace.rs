//! The gap between writes on a throttled item, so that each write carries more calls. Pure: no clock.

use std::time::Duration;

/// The gap after the first throttled write; it doubles with each further one,
const FIRST_GAP: Duration = Duration::from_millis(5);
/// up to this.
const LONGEST_GAP: Duration = Duration::from_millis(100);
/// The gap stays for this long after the last throttled write. Then every response makes it a little shorter.
const HOLD: Duration = Duration::from_secs(10);

/// The gap between writes: none unless the item was throttled. Times are on the clock's time scale.
#[derive(Debug, Default)]
pub(crate) struct WritePace {
    gap: Duration,
    /// Nothing if the next write follows at once.
    sent_at: Option<Duration>,
    /// The last write followed at once.
    followed_at_once: bool,
    throttled_at: Duration,
}

impl WritePace {
    /// True if the next write follows at once, whenever the last one was.
    pub(crate) fn is_free(&self) -> bool {
        self.gap.is_zero()
    }

    /// A write is sent now.
    pub(crate) fn sent(&mut self, now: Duration) {
        self.followed_at_once = self.sent_at.is_none();
        self.sent_at = Some(now);
    }

    /// The write was throttled.
    pub(crate) fn throttled(&mut self, now: Duration) {
        self.gap = (self.gap * 2).clamp(FIRST_GAP, LONGEST_GAP);
        self.throttled_at = now;
    }

    /// The write got a response.
    pub(crate) fn responded(&mut self, now: Duration) {
        if now.saturating_sub(self.throttled_at) > HOLD {
            let shorter = self.gap / 32 * 31;
            self.gap = if shorter < FIRST_GAP {
                Duration::ZERO
            } else {
                shorter
            };
        }
    }

    /// The write was refused and shows the bucket. The next one is made from that at once, since after a pause the bucket
    /// would promise what others have taken meanwhile. Not twice in a row.
    pub(crate) fn refused(&mut self) {
        if !self.followed_at_once {
            self.sent_at = None;
        }
    }

    /// How long the next write has to wait.
    pub(crate) fn wait(&self, now: Duration) -> Duration {
        let next = self.sent_at.map(|sent_at| sent_at + self.gap);
        next.map_or(Duration::ZERO, |next| next.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn writes_follow_each_other_at_once_unless_the_item_is_throttled() {
        let mut pace = WritePace::default();
        pace.sent(millis(7));
        pace.responded(millis(8));
        assert_eq!(pace.wait(millis(8)), Duration::ZERO);
    }

    #[test]
    fn the_gap_grows_with_each_throttled_write_up_to_a_tenth_of_a_second() {
        let mut pace = WritePace::default();
        let mut waits = Vec::new();
        for _ in 0..7 {
            pace.sent(millis(0));
            pace.throttled(millis(1));
            waits.push(pace.wait(millis(0)).as_millis());
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 100, 100]);
        assert_eq!(pace.wait(millis(30)), millis(70));
    }

    #[test]
    fn after_a_refused_write_one_follows_at_once() {
        let mut pace = WritePace::default();
        (0..7).for_each(|_| pace.throttled(millis(0)));
        pace.sent(millis(0));
        pace.sent(millis(100));
        pace.refused();
        assert_eq!(pace.wait(millis(107)), Duration::ZERO);
        pace.sent(millis(107));
        pace.refused();
        assert_eq!(pace.wait(millis(114)), millis(93));
    }

    #[test]
    fn the_gap_holds_for_a_while_and_then_shrinks_to_nothing() {
        let mut pace = WritePace::default();
        (0..7).for_each(|_| pace.throttled(millis(0)));
        (0..1_000).for_each(|_| pace.responded(HOLD));
        pace.sent(HOLD);
        assert_eq!(pace.wait(HOLD), LONGEST_GAP);
        let later = HOLD + millis(1);
        (0..200).for_each(|_| pace.responded(later));
        pace.sent(later);
        assert_eq!(pace.wait(later), Duration::ZERO);
    }
}
