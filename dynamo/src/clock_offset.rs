//! Which time to trust: this machine's calendar, its monotonic clock, or the `Date` headers of responses. Pure: no clock, no I/O.
//!
//! The calendar is used as long as it moves with the monotonic clock and responses do not contradict it. Where it jumps, or is
//! certainly wrong, the monotonic clock is used from a point that responses or the calendar before the jump have given.

use std::collections::VecDeque;
use std::time::Duration;

use zae_limiter_schema::Timestamp;

/// A clock that is certainly off by more than this is corrected.
const CORRECT_BEYOND_MILLIS: i64 = 2_000;
/// A correction ends once the clock may be right to within this. Less than the above, so that a clock close to one of the
/// two bounds is not corrected and released in turn.
const RELEASE_WITHIN_MILLIS: i64 = 1_000;
/// A clock that is off by more than this cannot sign requests, so the first response corrects it.
const CORRECT_AT_ONCE_BEYOND_MILLIS: i64 = 5 * 60 * 1_000;
/// A `Date` header has whole seconds: the server's time lies less than this after it.
const DATE_PRECISION_MILLIS: i64 = 1_000;
/// A response that took longer tells less about the time than the header's own precision.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);
/// This many responses in a row must agree before the time changes.
const AGREEING: usize = 3;
/// The best of this many responses decides.
const SAMPLES: usize = 8;
/// A response older than this counts no more: clocks drift. So does a calendar that jumped and that no response has judged.
const LIFETIME: Duration = Duration::from_mins(10);

/// What this machine's clocks show at one point in time.
#[derive(Debug, Clone, Copy)]
pub struct LocalTime {
    /// The calendar, which may be wrong and may be set at any time.
    pub now: Timestamp,
    /// Time since some fixed start, which never goes back.
    pub elapsed: Duration,
}

impl LocalTime {
    /// The calendar's time at the start of the monotonic clock. It changes only when the calendar is set.
    fn start(self) -> i64 {
        self.now.millis() - millis(self.elapsed)
    }
}

/// What one response tells: the server's time at the start of the monotonic clock lies between the two, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Sample {
    earliest: i64,
    latest: i64,
    round_trip: Duration,
    read_at: Duration,
}

impl Sample {
    fn agrees(&self, other: &Self) -> bool {
        other.earliest <= self.latest && self.earliest <= other.latest
    }
}

/// The time that is used instead of the calendar's, as that at the start of the monotonic clock.
#[derive(Debug, Clone, Copy)]
struct Held {
    start: i64,
    since: Duration,
    /// Whether responses have shown it. Otherwise it is the calendar before a jump.
    confirmed: bool,
}

/// Decides what must be added to this machine's calendar.
#[derive(Debug, Default)]
pub(crate) struct ClockOffset {
    samples: VecDeque<Sample>,
    held: Option<Held>,
    /// The start that the calendar had at the last reading.
    calendar: Option<i64>,
}

impl ClockOffset {
    /// What must be added to the calendar at this reading, in milliseconds.
    pub(crate) fn read(&mut self, local: LocalTime) -> i64 {
        let start = local.start();
        let is_stale = |held: &Held| !held.confirmed && local.elapsed.saturating_sub(held.since) > LIFETIME;
        if self.held.as_ref().is_some_and(is_stale) {
            self.follow(start);
        }
        if self.held.is_none() {
            match self.calendar {
                Some(before) if (start - before).abs() > CORRECT_BEYOND_MILLIS => {
                    self.held = Some(Held {
                        start: before,
                        since: local.elapsed,
                        confirmed: false,
                    });
                }
                _ => self.calendar = Some(start),
            }
        }
        self.held.map_or(0, |held| held.start - start)
    }

    fn follow(&mut self, calendar: i64) {
        self.held = None;
        self.calendar = Some(calendar);
    }

    /// A response with this date, in epoch milliseconds, to a request that was sent at `sent`, is read now. The offset
    /// after it, in milliseconds.
    pub(crate) fn observe(&mut self, date: i64, sent: Duration, now: LocalTime) -> i64 {
        let offset = self.read(now);
        let round_trip = now.elapsed.saturating_sub(sent);
        if round_trip > LONGEST_ROUND_TRIP {
            return offset;
        }
        let sample = Sample {
            earliest: date - millis(now.elapsed),
            latest: date + DATE_PRECISION_MILLIS - millis(sent),
            round_trip,
            read_at: now.elapsed,
        };
        let is_first = self.samples.is_empty();
        self.samples
            .retain(|other| now.elapsed.saturating_sub(other.read_at) <= LIFETIME);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);

        let agreeing = || {
            self.samples
                .iter()
                .rev()
                .take_while(|other| other.agrees(&sample))
        };
        let start = now.start();
        let far = |bound: i64| sample.earliest - start > bound || sample.latest - start < -bound;
        if agreeing().count() < AGREEING && !(is_first && far(CORRECT_AT_ONCE_BEYOND_MILLIS)) {
            return offset;
        }
        let best = agreeing().min_by_key(|sample| sample.round_trip);
        let best = best.copied().unwrap_or(sample);
        match judge(offset, best.earliest - start, best.latest - start) {
            0 => self.follow(start),
            offset => {
                self.held = Some(Held {
                    start: start + offset,
                    since: now.elapsed,
                    confirmed: true,
                });
            }
        }
        self.held.map_or(0, |held| held.start - start)
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
    // A correction that the responses allow stays, and one that they contradict by little moves no further than it must: so
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
mod tests;
