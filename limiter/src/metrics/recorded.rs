//! What is recorded as it happens.

use std::sync::Mutex;
use std::time::Duration;

use metrics::{SharedString, counter, histogram};
use zae_limiter_schema::Resource;
use zae_limiter_schema::bucket::BucketWrite;

use super::bounded::ResourceLabels;
use super::list;
use super::publish::Published;
use crate::bucket::Buckets;
use crate::error::{Invalid, NotFound};
use crate::status::LimitStatus;
use crate::store::WriteOutcome;
use crate::{Admission, Clock, Error, Lease};

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    resources: ResourceLabels,
    pub(super) published: Mutex<Published>,
}

/// The start of an acquire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timer(Duration);

impl Metrics {
    #[expect(clippy::unused_self, reason = "the shape of its twin that does nothing")]
    pub(crate) fn timer(&self, clock: &dyn Clock) -> Timer {
        Timer(clock.elapsed())
    }

    /// Records an acquire that was asked for correctly.
    pub(crate) fn acquired(
        &self,
        buckets: &Buckets,
        resource: &Resource,
        result: Result<&Lease, &Error>,
        started: Timer,
    ) {
        let Some(outcome) = outcome(result.map(Lease::admission)) else {
            return;
        };
        let now = buckets.shared().clock.elapsed();
        let resource = self.resources.of(resource.as_str());
        counter!(list::ACQUIRES, "resource" => resource, "outcome" => outcome).increment(1);
        histogram!(list::ACQUIRE_DURATION, "outcome" => outcome).record(now.saturating_sub(started.0));
        let count = |name: &'static str, status: &LimitStatus| {
            let limit = SharedString::from_shared(status.limit.name().as_str().into());
            let resource = self.resources.of(status.resource.as_str());
            counter!(name, "resource" => resource, "limit" => limit).increment(1);
        };
        match result {
            Err(Error::Refused(refusal)) => {
                for status in refusal.refused_limits() {
                    count(list::REFUSALS, status);
                }
            }
            Ok(lease) if lease.admission() == Admission::Observed => {
                for status in lease.observed_limits() {
                    count(list::OBSERVED, &status);
                }
            }
            Ok(lease) => {
                if let Some(admission) = degraded(lease.admission()) {
                    counter!(list::DEGRADED, "admission" => admission).increment(1);
                }
            }
            Err(_) => {}
        }
        self.publish_if_due(buckets, now);
    }

    #[expect(clippy::unused_self, reason = "the shape of its twin that does nothing")]
    pub(crate) fn wrote(&self, write: &BucketWrite, outcome: &WriteOutcome) {
        let label = match outcome {
            WriteOutcome::Done(_) => "done",
            WriteOutcome::Refused(_) => "condition_failed",
            WriteOutcome::Lost(_) => "lost",
            WriteOutcome::NotSent(_) => "not_sent",
            WriteOutcome::Throttled(_) => "throttled",
            WriteOutcome::Conflict(_) => "conflict",
            WriteOutcome::Failed(_) => "failed",
        };
        counter!(list::WRITES, "outcome" => label).increment(1);
        if matches!(outcome, WriteOutcome::Done(_)) {
            histogram!(list::ACQUIRES_PER_WRITE).record(write.batch.acquires);
        }
    }

    #[expect(clippy::unused_self, reason = "the shape of its twin that does nothing")]
    pub(crate) fn retried(&self) {
        counter!(list::RETRIES).increment(1);
    }
}

/// The same words as those of the server. Mistakes of the program are no acquires.
fn outcome(result: Result<Admission, &Error>) -> Option<&'static str> {
    Some(match result {
        Ok(admission) if degraded(admission).is_some() => "uncounted",
        Ok(Admission::Observed) => "observed",
        Ok(Admission::Bypassed) => "bypassed",
        Ok(_) => "granted",
        Err(Error::Refused(_)) => "refused",
        Err(Error::Disabled { .. }) => "disabled",
        Err(
            Error::Invalid(Invalid::Name(_) | Invalid::Argument { .. })
            | Error::NotFound(NotFound::Limits { .. }),
        ) => return None,
        Err(error) if error.is_unavailable() => "unavailable",
        Err(_) => "failed",
    })
}

const fn degraded(admission: Admission) -> Option<&'static str> {
    match admission {
        Admission::Local => Some("local"),
        Admission::AllowedWhileUnavailable => Some("allowed_while_unavailable"),
        Admission::Counted | Admission::PartlyCounted | Admission::Observed | Admission::Bypassed => None,
    }
}
