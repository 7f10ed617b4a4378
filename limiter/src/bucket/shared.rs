//! What all buckets of one limiter share.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch};
use zae_limiter_dynamo::Entropy;
use zae_limiter_schema::bucket::{
    BucketConfig, BucketKey, BucketWrite, ClientTag, Decoded, Image, RefillClause, TtlRule,
};
use zae_limiter_schema::{LimitName, LimitSet, Timestamp};

use super::breaker::Breaker;
use super::core::Now;
use super::outage_fraction::OutageFraction;
use super::refusals::RefusalCounts;
use super::retry_pace::RetryPace;
use super::stats::{Counters, Unwritten};
use crate::builder::Settings;
use crate::config::bucket_configs::BucketConfigs;
use crate::config::cache::ConfigCache;
use crate::error::Unavailable;
use crate::metrics::Metrics;
use crate::store::Store;
use crate::{Clock, Error};

/// How many entries the report of what could not be written holds; the counter goes on.
const MAX_REPORTED: usize = 1_000;

/// At most this many buckets without callers are retried at a time.
pub(super) const MAX_BACKGROUND_RETRIES: usize = 8;

/// How far a limiter is shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Calls are admitted.
    Open,
    /// New calls fail; those in flight go on.
    Closed,
    /// Calls have ended. What cannot be written at once is given up.
    Draining,
}

/// What all buckets of a limiter share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cache: Arc<ConfigCache>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<Entropy>,
    pub(crate) settings: Settings,
    /// What this process may admit by itself in an outage.
    pub(crate) fraction: Option<Arc<OutageFraction>>,
    pub(super) table: String,
    pub(super) client: ClientTag,
    pub(super) runtime: Option<Handle>,
    /// Work goes to that runtime whatever the caller's is.
    pub(super) keeps_runtime: AtomicBool,
    pub(super) breaker: Mutex<Breaker>,
    /// Wakes the actors that wait for the breaker to close, in order, so that a simulation can be repeated.
    pub(super) breaker_closed: Notify,
    pub(super) background_retries: Arc<Semaphore>,
    pub(super) retry_pace: Mutex<RetryPace>,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) counters: Counters,
    pub(crate) metrics: Metrics,
    pub(super) refusals: RefusalCounts,
    pub(super) unwritten: Mutex<Vec<Unwritten>>,
}

impl Shared {
    /// One reading of clock and random for one decision.
    pub(crate) fn read_clock(&self) -> Now {
        Now {
            calendar: self.now(),
            latest: self.store.latest_time(),
            elapsed: self.clock.elapsed(),
            random: self.entropy.bits(),
        }
    }

    /// The calendar, corrected by the server's.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().plus_millis(self.store.clock_offset())
    }

    pub(crate) fn attempt_timeout(&self) -> Duration {
        self.settings.time_budget / 2
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// True once calls have ended and what cannot be written at once is given up.
    pub(super) fn is_draining(&self) -> bool {
        self.phase() == Phase::Draining
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn table_name(&self) -> String {
        self.table.clone()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn unavailable(&self, reason: &str) -> Error {
        Error::Unavailable(Unavailable::NoResponse {
            operation: "UpdateItem",
            table: self.table.clone(),
            reason: reason.to_owned(),
            within: self.settings.time_budget,
        })
    }

    /// The bucket configuration for a resolved configuration, or for limits that came with the call.
    pub(crate) fn config(
        &self,
        configs: &BucketConfigs,
        call_limits: Option<&LimitSet>,
    ) -> Arc<BucketConfig> {
        let expires = TtlRule::from_multiplier(self.settings.ttl_multiplier);
        match call_limits {
            Some(limits) => configs.for_call(limits, expires),
            None if configs.resolved.has_own_limits() => configs.stored(TtlRule::Never),
            None => configs.stored(expires),
        }
    }

    pub(super) fn chosen_runtime(&self) -> Option<Handle> {
        let (own, current) = (self.runtime.clone(), Handle::try_current().ok());
        if self.keeps_runtime.load(Ordering::Relaxed) {
            own.or(current)
        } else {
            current.or(own)
        }
    }

    /// Runs a task in the background, on the caller's runtime or, outside of any, on the one where the
    /// limiter was made; a limiter that [keeps](Buckets::keep_runtime) its runtime always uses that.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = self.chosen_runtime() {
            drop(runtime.spawn(work));
        } else {
            tracing::error!("no runtime is left to return tokens on");
        }
    }

    /// Reports changes that will never be written.
    pub(crate) fn unwritten(
        &self,
        key: &BucketKey,
        changes: &[(LimitName, i128)],
        reason: &str,
        maybe_written: bool,
    ) {
        if changes.is_empty() {
            return;
        }
        self.counters.unwritten.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(entity = %key.entity, resource = %key.resource, reason, "a change could not be written");
        let mut list = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= MAX_REPORTED {
            list.remove(0);
        }
        list.push(Unwritten {
            entity: key.entity.clone(),
            resource: key.resource.clone(),
            changes: changes.to_vec(),
            reason: reason.to_owned(),
            maybe_written,
        });
    }

    /// Reports that a bucket's last refill was in the future and has been set back.
    pub(crate) fn note_set_back(&self, write: &BucketWrite) {
        let RefillClause::Move { from, to, .. } = &write.refill else {
            return;
        };
        self.counters.refills_set_back.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(
            entity = %write.key.entity,
            resource = %write.key.resource,
            ahead_ms = from.since(*to),
            "the last refill of a bucket was in the future and has been set back; the clock of another client is or was ahead"
        );
    }

    /// Counts a refill time that went back: a client's clock is behind, or another client has set it back.
    pub(crate) fn note_refill(&self, before: Option<&Image>, after: Option<&Decoded>) {
        if let (Some(before), Some(Decoded::Bucket(after))) = (before, after)
            && after.refilled_at < before.refilled_at
            && after.incarnation() == before.incarnation()
        {
            self.counters.refill_went_back.fetch_add(1, Ordering::Relaxed);
        }
    }
}
