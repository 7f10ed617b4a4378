//! What all buckets of one limiter share.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use zae_limiter_dynamo::Entropy;
use zae_limiter_schema::bucket::{BucketConfig, BucketKey, ClientTag, Decoded, Image, TtlRule};
use zae_limiter_schema::{LimitName, LimitSet, Timestamp};

use super::breaker::Breaker;
use super::in_flight::InFlight;
use super::outage_share::OutageShare;
use super::refusals::RefusalCounts;
use super::retry_pace::RetryPace;
use super::state::Moment;
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

/// At most this many buckets are retried at a time when nobody waits for them.
pub(super) const MAX_BACKGROUND_RETRIES: usize = 8;

/// What all buckets of a limiter share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cache: Arc<ConfigCache>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<Entropy>,
    pub(crate) settings: Settings,
    /// What this process may admit by itself.
    pub(crate) share: Option<Arc<OutageShare>>,
    pub(super) table: String,
    pub(super) client: ClientTag,
    pub(super) runtime: Option<Handle>,
    /// Work goes to that runtime whatever the caller's is.
    pub(super) keeps_runtime: AtomicBool,
    /// Buckets that are worked on.
    pub(super) work: Arc<InFlight>,
    pub(super) breaker: Mutex<Breaker>,
    /// Whether it is open, for those who ask nothing else. Set under its lock.
    pub(super) breaker_is_open: AtomicBool,
    /// For those who wait for the breaker to close. They wake in order, so that a simulation can be repeated.
    pub(super) breaker_closed: Notify,
    pub(super) background_retries: Arc<Semaphore>,
    pub(super) retry_pace: Mutex<RetryPace>,
    /// The limiter is being shut down: what cannot be written at once is given up.
    pub(super) closing: AtomicBool,
    pub(super) counters: Counters,
    pub(crate) metrics: Metrics,
    pub(super) refusals: RefusalCounts,
    pub(super) unwritten: Mutex<Vec<Unwritten>>,
}

impl Shared {
    /// One reading of clock and random for one decision.
    pub(crate) fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
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

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
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
    pub(crate) fn config(&self, configs: &BucketConfigs, given: Option<&LimitSet>) -> Arc<BucketConfig> {
        let expires = TtlRule::from_multiplier(self.settings.ttl_multiplier);
        match given {
            Some(limits) if breaks!(self.settings.mutation, CallLimitsNeverExpire) => {
                configs.for_call(limits, TtlRule::Never)
            }
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

    /// Runs a queue's work in the background, on the caller's runtime or, outside of any, on the one where the
    /// limiter was made; a limiter that [keeps](Buckets::keep_runtime) its runtime always uses that.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = self.chosen_runtime() {
            drop(runtime.spawn(self.counted(work)));
        } else {
            tracing::error!("no runtime is left to give tokens back on");
        }
    }

    /// The same work, counted as under way until it ends or is dropped.
    pub(super) fn counted<W>(&self, work: W) -> impl Future<Output = ()> + Send + 'static + use<W>
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let under_way = self.work.enter();
        async move {
            work.await;
            drop(under_way);
        }
    }

    /// The runtime of a caller that may work on a bucket on its own task: work need not go to another runtime.
    pub(super) fn caller_runtime(&self) -> Option<Handle> {
        let keeps_runtime = self.keeps_runtime.load(Ordering::Relaxed);
        (!keeps_runtime).then(Handle::try_current)?.ok()
    }

    /// Notes changes that will never be booked.
    pub(crate) fn unwritten(
        &self,
        key: &BucketKey,
        changes: &[(LimitName, i128)],
        reason: &str,
        in_doubt: bool,
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
            in_doubt,
        });
    }

    /// Notes a moment of refill that went back, which only a client with a clock behind can cause.
    pub(crate) fn note_refill(&self, before: Option<&Image>, after: Option<&Decoded>) {
        if let (Some(before), Some(Decoded::Bucket(after))) = (before, after)
            && after.refilled_at < before.refilled_at
            && after.incarnation() == before.incarnation()
        {
            self.counters.refill_went_back.fetch_add(1, Ordering::Relaxed);
        }
    }
}
