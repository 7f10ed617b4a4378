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
mod tests;
