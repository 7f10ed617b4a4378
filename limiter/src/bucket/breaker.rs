//! The circuit breaker of one limiter: whether the table is known to be unavailable. Pure: no I/O, no waiting, no clock.
//!
//! Closed, requests flow, and failures in a row are counted: no connection, no response in time, a server error. A
//! response of any other kind, throttling and failed conditions included, proves that the table is there and ends the
//! streak. Open, nothing is sent except for one probe at a time, after pauses that grow; normally the first response closes
//! it. If it has to open again soon, it takes more responses in a row to close it: most requests fail, though some do not.
//!
//! What opened it closes it. If writes failed, a response to a read proves nothing, and the probe is a write that
//! changes nothing.

use std::time::Duration;

use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::BucketKey;

use super::backoff;

/// Opens after this many failures in a row, on at least two buckets.
const FAILURES: u32 = 5;
/// Failures in a row count only if they last this long: connections that a server closes all at once are no outage.
const SHORTEST_OUTAGE: Duration = Duration::from_millis(100);
/// Opens after this time without any response, whatever the number of buckets.
const SILENCE: Duration = Duration::from_secs(1);
/// One that opens within this time after it was closed was closed too early.
const RELAPSE: Duration = Duration::from_secs(10);
/// At most this many responses in a row close it.
pub(super) const MAX_RESPONSES: u32 = 4;

/// What a request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Write,
}

/// Decides whether requests are sent. All times are on the clock's scale that never goes back.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// After this time without a response it opens.
    silence: Duration,
    streak: Option<Streak>,
    open: Option<Open>,
    opened: u64,
    closed_at: Option<Duration>,
    /// How many responses in a row close it.
    responses_to_close: u32,
    last_response: Option<Duration>,
    /// A probe is in flight and counts as lost at this time.
    probing_until: Option<Duration>,
}

/// Failures without a response in between.
#[derive(Debug)]
struct Streak {
    /// When the first request of the streak was sent.
    since: Duration,
    last: Duration,
    failures: u32,
    bucket: Option<BucketKey>,
    several_buckets: bool,
    /// A call found the table unavailable, and a probe finds out.
    suspected: bool,
}

/// What is to be done about a call that found the table unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suspicion {
    /// Nothing.
    None,
    /// The caller probes.
    Probe,
    /// It was enough to open the breaker.
    Opened,
}

/// Why and since when nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Open {
    /// On the calendar, for messages.
    pub(crate) since: Timestamp,
    /// The failure that opened it.
    pub(crate) reason: String,
    /// Writes failed. Only a response to a write closes it.
    pub(crate) writes_failed: bool,
    next_probe: Duration,
    probes: u32,
    /// Without a failure in between.
    responses: u32,
}

/// A request that failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedRequest<'a> {
    /// The bucket that it concerned, if any.
    pub(crate) bucket: Option<&'a BucketKey>,
    /// When it was sent.
    pub(crate) sent: Duration,
    /// What happened.
    pub(crate) reason: &'a str,
}

impl Breaker {
    /// With a time budget longer than a second, silence must last that long.
    pub(crate) fn new(time_budget: Duration) -> Self {
        Self {
            silence: SILENCE.max(time_budget),
            streak: None,
            open: None,
            opened: 0,
            closed_at: None,
            responses_to_close: 1,
            last_response: None,
            probing_until: None,
        }
    }

    /// Why it is open; nothing while it is closed.
    pub(crate) fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    /// How often it has opened.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// The table responded. True if that closes the breaker.
    pub(crate) fn responded(&mut self, operation: Operation, now: Duration) -> bool {
        self.last_response = Some(now);
        let writes_failed = self.streak.as_ref().is_some_and(|streak| streak.bucket.is_some());
        if operation == Operation::Write || !writes_failed {
            self.streak = None;
        }
        let Some(open) = &mut self.open else {
            return false;
        };
        if operation == Operation::Read && open.writes_failed {
            return false;
        }
        open.responses += 1;
        let closes = open.responses >= self.responses_to_close;
        if closes {
            self.open = None;
            self.closed_at = Some(now);
        }
        closes
    }

    /// The table did not respond to a request. True if that opens the breaker.
    pub(crate) fn failed(
        &mut self,
        request: FailedRequest<'_>,
        now: Duration,
        calendar: Timestamp,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> bool {
        let silence = self.silence;
        let streak = self.streak_at(request.sent, now);
        streak.failures += 1;
        match (&streak.bucket, request.bucket) {
            (Some(first), Some(bucket)) => streak.several_buckets |= first != bucket,
            (None, Some(bucket)) => streak.bucket = Some(bucket.clone()),
            (_, None) => {}
        }
        let lasted = now.saturating_sub(streak.since);
        let many = streak.failures >= FAILURES && streak.several_buckets && lasted >= SHORTEST_OUTAGE;
        // One failure alone may be a process that was suspended with a request under way.
        let silent = (streak.failures >= 2 || streak.suspected) && lasted >= silence;
        if let Some(open) = &mut self.open {
            open.responses = 0;
            return false;
        }
        if !many && !silent {
            return false;
        }
        self.opens(request.reason, now, calendar, jitter);
        true
    }

    fn opens(
        &mut self,
        reason: &str,
        now: Duration,
        calendar: Timestamp,
        jitter: impl FnOnce(Duration) -> Duration,
    ) {
        let relapse = self.closed_at.is_some_and(|at| now.saturating_sub(at) <= RELAPSE);
        self.responses_to_close = if relapse {
            (self.responses_to_close * 2).min(MAX_RESPONSES)
        } else {
            1
        };
        self.open = Some(Open {
            since: calendar,
            reason: reason.to_owned(),
            writes_failed: self.streak.as_ref().is_some_and(|streak| streak.bucket.is_some()),
            next_probe: now + backoff::probe(0, jitter),
            probes: 0,
            responses: 0,
        });
        self.opened += 1;
    }

    /// A call that began at `request.sent` found the table unavailable. After a second without any response that is
    /// enough to open the breaker if a request has failed since. Otherwise the reason may be a response, such as
    /// throttled reads, and a probe finds out.
    pub(crate) fn suspects(
        &mut self,
        request: FailedRequest<'_>,
        now: Duration,
        calendar: Timestamp,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> Suspicion {
        if self.open.is_some() || self.last_response.is_some_and(|at| at > request.sent) {
            return Suspicion::None;
        }
        let silence = self.silence;
        let streak = self.streak_at(request.sent, now);
        if now.saturating_sub(streak.since) < silence {
            return Suspicion::None;
        }
        if streak.failures > 0 {
            self.opens(request.reason, now, calendar, jitter);
            return Suspicion::Opened;
        }
        streak.suspected = true;
        if self.claim(now, now + silence) {
            Suspicion::Probe
        } else {
            Suspicion::None
        }
    }

    /// True if a probe is due and nobody makes one: the caller makes it, before the given time.
    pub(crate) fn claims_probe(&mut self, now: Duration, until: Duration) -> bool {
        self.open.as_ref().is_some_and(|open| open.next_probe <= now) && self.claim(now, until)
    }

    fn claim(&mut self, now: Duration, until: Duration) -> bool {
        let free = self.probing_until.is_none_or(|lost| lost <= now);
        if free {
            self.probing_until = Some(until);
        }
        free
    }

    /// The probe is over. One that failed makes the pause before the next one longer.
    pub(crate) fn probed(
        &mut self,
        responded: bool,
        now: Duration,
        jitter: impl FnOnce(Duration) -> Duration,
    ) {
        self.probing_until = None;
        if let Some(open) = &mut self.open {
            if responded {
                // It takes more of them to close it.
                open.next_probe = now;
            } else {
                open.probes += 1;
                open.responses = 0;
                open.next_probe = now + backoff::probe(open.probes, jitter);
            }
        }
    }

    /// How long until the next probe is due.
    pub(crate) fn until_probe(&self, now: Duration) -> Option<Duration> {
        let open = self.open.as_ref()?;
        let under_way = self.probing_until.unwrap_or_default();
        Some(open.next_probe.max(under_way).saturating_sub(now))
    }

    /// Makes the next probe due now and lets the pauses grow from the start.
    pub(crate) fn probe_now(&mut self, now: Duration) {
        if let Some(open) = &mut self.open {
            (open.next_probe, open.probes) = (now, 0);
        }
    }

    /// The streak that a failure belongs to: a new one if there was no request for long.
    fn streak_at(&mut self, sent: Duration, now: Duration) -> &mut Streak {
        let silence = self.silence;
        let streak = self.streak.take().filter(|streak| sent <= streak.last + silence);
        let streak = streak.unwrap_or(Streak {
            since: sent,
            last: now,
            failures: 0,
            bucket: None,
            several_buckets: false,
            suspected: false,
        });
        self.streak.insert(Streak {
            since: streak.since.min(sent),
            last: now,
            ..streak
        })
    }
}

#[cfg(test)]
mod tests;
