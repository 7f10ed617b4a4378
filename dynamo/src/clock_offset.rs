//! How far this machine's clock is off, judged by the `Date` headers of several responses. Pure: no clock, no I/O.

use std::collections::VecDeque;
use std::time::Duration;

use zae_limiter_schema::Timestamp;

/// A clock that is certainly off by more than this is corrected.
const CORRECT_BEYOND_MILLIS: i64 = 2_000;
/// A correction ends once the clock may be right to within this. Less than the above, so that a clock close to one of the
/// two bounds is not corrected and released in turn.
const RELEASE_WITHIN_MILLIS: i64 = 1_000;
/// A `Date` header has whole seconds: the server's time lies less than this after it.
const DATE_PRECISION_MILLIS: i64 = 1_000;
/// A response that took longer says less about the time than the header's own precision.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);
/// The best of this many responses decides.
const SAMPLES: usize = 8;
/// A response older than this counts no more: clocks drift.
const SAMPLE_LIFETIME: Duration = Duration::from_mins(1);

/// What this machine's clocks say at one moment.
#[derive(Debug, Clone, Copy)]
pub struct LocalTime {
    /// The calendar, which may be wrong and may be set at any time.
    pub now: Timestamp,
    /// Time since some fixed start, which never goes back.
    pub elapsed: Duration,
}

/// What one response says: the server's time minus [`LocalTime::elapsed`] lies between the two, in milliseconds. Setting
/// the calendar does not change that.
#[derive(Debug, Clone, Copy)]
struct Sample {
    earliest: i64,
    latest: i64,
    round_trip: Duration,
    read_at: Duration,
}

/// What must be added to this machine's calendar.
#[derive(Debug, Default)]
pub(crate) struct ClockOffset {
    samples: VecDeque<Sample>,
    offset: i64,
}

impl ClockOffset {
    /// A response with this date, in epoch milliseconds, to a request that was sent at `sent`, is read now. The offset
    /// after it, in milliseconds.
    pub(crate) fn observe(&mut self, date: i64, sent: Duration, now: LocalTime) -> i64 {
        let round_trip = now.elapsed.saturating_sub(sent);
        if round_trip > LONGEST_ROUND_TRIP {
            return self.offset;
        }
        let sample = Sample {
            earliest: date - millis(now.elapsed),
            latest: date + DATE_PRECISION_MILLIS - millis(sent),
            round_trip,
            read_at: now.elapsed,
        };
        self.samples.retain(|other| {
            // One that contradicts the latest is from before this machine slept.
            let agrees = other.earliest <= sample.latest && sample.earliest <= other.latest;
            agrees && now.elapsed.saturating_sub(other.read_at) <= SAMPLE_LIFETIME
        });
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        let best = self.samples.iter().min_by_key(|sample| sample.round_trip);
        let best = best.copied().unwrap_or(sample);
        let calendar = now.now.millis() - millis(now.elapsed);
        self.offset = judge(self.offset, best.earliest - calendar, best.latest - calendar);
        self.offset
    }
}

/// The offset, given the one so far and that the true one lies between `earliest` and `latest`.
fn judge(offset: i64, earliest: i64, latest: i64) -> i64 {
    let may_be_within = |bound: i64| earliest <= bound && latest >= -bound;
    let is_right = may_be_within(if offset == 0 {
        CORRECT_BEYOND_MILLIS
    } else {
        RELEASE_WITHIN_MILLIS
    });
    if is_right {
        return 0;
    }
    // A correction that the evidence allows stays, and one that it contradicts by little moves no further than it must: so
    // it comes closer and closer, and does not follow the seconds of the header.
    let nearest = offset.clamp(earliest, latest);
    if offset != 0 && (nearest - offset).abs() <= DATE_PRECISION_MILLIS {
        nearest
    } else {
        earliest.midpoint(latest)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose calendar is off by this much, and a server whose calendar is right.
    struct Machine {
        offset: ClockOffset,
        off_by: i64,
        elapsed: i64,
    }

    const START: i64 = 1_700_000_000_000;

    fn machine(off_by: i64) -> Machine {
        Machine {
            offset: ClockOffset::default(),
            off_by,
            elapsed: 0,
        }
    }

    impl Machine {
        /// Some time passes; then the server answers after `there`, and the answer is read after `back`.
        fn call(&mut self, pause: i64, there: i64, back: i64) -> i64 {
            let sent = self.elapsed + pause;
            let date = (START + sent + there) / 1000 * 1000;
            self.elapsed = sent + there + back;
            let now = LocalTime {
                now: Timestamp::from_millis(START + self.elapsed + self.off_by),
                elapsed: time(self.elapsed),
            };
            self.offset.observe(date, time(sent), now)
        }
    }

    fn time(millis: i64) -> Duration {
        Duration::from_millis(millis.max(0).cast_unsigned())
    }

    #[test]
    fn a_clock_within_two_seconds_is_never_corrected() {
        for off_by in [-2_000, -1_999, -1_000, 0, 700, 1_500, 2_000] {
            let mut machine = machine(off_by);
            for call in 0..200 {
                let offset = machine.call(37 * call % 1_100, call % 500, 13 * call % 500);
                assert_eq!(offset, 0, "off by {off_by}, call {call}");
            }
        }
    }

    #[test]
    fn a_clock_that_is_certainly_wrong_is_corrected_by_the_first_response() {
        for off_by in [-3_600_000, -3_100, 3_100, 120_000] {
            let offset = machine(off_by).call(0, 5, 5);
            assert!((offset + off_by).abs() <= 505, "{off_by}: {offset}");
        }
    }

    #[test]
    fn a_correction_does_not_follow_the_seconds_of_the_header() {
        for start in (0..1_000).step_by(90) {
            let mut machine = machine(60_000);
            let mut distance = (machine.call(start, 5, 5) + 60_000).abs();
            assert!(distance <= 505);
            for call in 0..100 {
                let next = (machine.call(70, 5, 5) + 60_000).abs();
                assert!(next <= distance, "call {call}: from {distance} to {next}");
                distance = next;
            }
            assert!(distance <= 90, "{distance}");
        }
    }

    #[test]
    fn a_clock_near_the_bound_is_not_corrected_and_released_in_turn() {
        let mut machine = machine(2_700);
        let mut changes = 0;
        let mut corrected = false;
        for call in 0..500 {
            let offset = machine.call(311, call % 300, call % 200);
            changes += u32::from((offset != 0) != corrected);
            corrected = offset != 0;
        }
        assert!(corrected && changes == 1, "{changes}");
    }

    #[test]
    fn a_response_that_is_read_late_is_no_evidence() {
        let mut machine = machine(0);
        for _ in 0..20 {
            assert_eq!(machine.call(10, 5, 4_000), 0);
        }
        assert!(machine.offset.samples.is_empty());
    }

    #[test]
    fn the_response_with_the_shortest_round_trip_decides() {
        let mut machine = machine(10_000);
        machine.call(0, 450, 450);
        let good = machine.call(0, 1, 1);
        assert!((good + 10_000).abs() <= 501, "{good}");
        for _ in 1..SAMPLES {
            assert_eq!(machine.call(300, 10, 900), good);
        }
        let best = machine
            .offset
            .samples
            .iter()
            .map(|sample| sample.round_trip)
            .min();
        assert_eq!(best, Some(time(2)));
    }

    #[test]
    fn a_calendar_that_is_set_right_is_released_by_the_next_response() {
        let mut machine = machine(60_000);
        assert_ne!(machine.call(0, 5, 5), 0);
        machine.off_by = 0;
        assert_eq!(machine.call(100, 5, 5), 0);
        machine.off_by = -90_000;
        let offset = machine.call(100, 5, 5);
        assert!((offset - 90_000).abs() <= 505, "{offset}");
    }

    #[test]
    fn a_machine_that_slept_forgets_what_it_knew() {
        let mut machine = machine(0);
        machine.call(0, 1, 1);
        // Its other clock stood still for an hour, and its calendar with it.
        let date = START + 3_600_000;
        let now = LocalTime {
            now: Timestamp::from_millis(START + machine.elapsed + 20),
            elapsed: time(machine.elapsed + 20),
        };
        let offset = machine.offset.observe(date, time(machine.elapsed), now);
        assert!((offset - 3_600_000).abs() <= 1_000, "{offset}");
    }
}
