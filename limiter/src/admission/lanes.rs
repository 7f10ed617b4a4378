//! All lanes of one limiter, and what they share.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use zae_limiter_schema::bucket::{
    BucketKey, ClientId, Decoded, Image, Terms, TtlRule, WRITE_UNIT_BYTES, estimated_bytes,
};
use zae_limiter_schema::{EntityId, LimitSet, Resource};

use super::desk::Moment;
use super::lane::Lane;
use super::ticket::{Ticket, Work};
use crate::backend::Backend;
use crate::builder::Settings;
use crate::cache::ConfigCache;
use crate::entropy::Entropy;
use crate::resolution::{Resolved, Source};
use crate::{Clock, Error};

/// Idle lanes beyond this number are forgotten.
const MOST_LANES: usize = 10_000;
/// The report of what could not be written holds so many entries; the counter counts on.
const MOST_REPORTED: usize = 1_000;
/// The warning about large items reckons with so many processes on a bucket.
const EXPECTED_SLOTS: usize = 8;

/// What all lanes of a limiter share.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) cache: Arc<ConfigCache>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<Entropy>,
    pub(super) settings: Settings,
    table: String,
    client: ClientId,
    runtime: Option<Handle>,
    active: AtomicUsize,
    idle: Notify,
    counters: Counters,
    unwritten: Mutex<Vec<Unwritten>>,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) granted: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) unavailable: AtomicU64,
    unwritten: AtomicU64,
    refill_went_back: AtomicU64,
}

/// What a limiter has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Acquires that were admitted and counted.
    pub granted: u64,
    /// Acquires that were refused because a limit was exceeded.
    pub refused: u64,
    /// Acquires for which the table could not be reached in time.
    pub unavailable: u64,
    /// Adjustments and refunds that could not be written and were given up.
    pub unwritten: u64,
    /// How often a bucket's moment of refill was seen to go back: another client's clock is behind.
    pub refill_went_back: u64,
    /// By how much this machine's clock is corrected, in milliseconds; 0 if it is right.
    pub clock_offset_ms: i64,
    /// Buckets that are kept in memory.
    pub buckets: u64,
}

/// A change that could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unwritten {
    /// Whose bucket.
    pub entity: EntityId,
    /// For what.
    pub resource: Resource,
    /// By limit, in millitokens: above zero was used and not booked, below zero was not given back.
    pub changes: Vec<(zae_limiter_schema::LimitName, i128)>,
    /// Why.
    pub reason: String,
}

/// What was left when a limiter was shut down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Shutdown {
    /// Changes that could not be written since the limiter was made, the latest thousand.
    pub unwritten: Vec<Unwritten>,
    /// How many there were in all.
    pub unwritten_total: u64,
}

impl Hub {
    /// One reading of clock and chance for one decision.
    pub(super) fn moment(&self) -> Moment {
        let offset = if self.backend.capabilities().server_time {
            self.backend.clock_offset()
        } else {
            0
        };
        let now = self.clock.now().plus_millis(offset);
        Moment {
            now,
            elapsed: self.clock.elapsed(),
            chance: self.entropy.bits(),
        }
    }

    pub(super) fn attempt_timeout(&self) -> Duration {
        self.settings.time_budget / 2
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn unavailable(&self, reason: &str) -> Error {
        Error::Unavailable {
            operation: "UpdateItem",
            table: self.table.clone(),
            reason: reason.to_owned(),
            within: self.settings.time_budget,
        }
    }

    /// The terms for a resolved configuration, or for limits that came with the call.
    pub(super) fn terms(&self, resolved: &Resolved, given: Option<&LimitSet>) -> Terms {
        let own =
            matches!(resolved.limits_from, Some(Source::Entity | Source::EntityDefault)) && given.is_none();
        let ttl = if own {
            TtlRule::Never
        } else {
            TtlRule::from_multiplier(self.settings.ttl_multiplier)
        };
        let limits = given.unwrap_or(&resolved.limits).clone();
        Terms::new(limits, resolved.parent.clone(), resolved.cascade, ttl)
            .with_tolerance(self.settings.tolerance)
    }

    /// Runs a lane's work in the background, on the caller's runtime or, outside of any, on the one where the
    /// limiter was made.
    pub(super) fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let Some(runtime) = Handle::try_current().ok().or_else(|| self.runtime.clone()) else {
            tracing::error!("no runtime is left to give tokens back on");
            return;
        };
        let active = Active::new(self.clone());
        runtime.spawn(async move {
            work.await;
            drop(active);
        });
    }

    pub(super) fn unwritten(&self, key: &BucketKey, ticket: &Ticket, reason: &str) {
        let Work::Settle { changes, .. } = &ticket.work else {
            return;
        };
        self.counters.unwritten.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(entity = %key.entity, resource = %key.resource, reason, "a change could not be written");
        let mut list = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= MOST_REPORTED {
            list.remove(0);
        }
        list.push(Unwritten {
            entity: key.entity.clone(),
            resource: key.resource.clone(),
            changes: changes.clone(),
            reason: reason.to_owned(),
        });
    }

    /// Notes a moment of refill that went back, which only a client with a clock behind can cause.
    pub(super) fn note_refill(&self, before: Option<&Image>, after: Option<&Decoded>) {
        if let (Some(before), Some(Decoded::Bucket(after))) = (before, after)
            && after.refilled_at < before.refilled_at
            && after.incarnation() == before.incarnation()
        {
            self.counters.refill_went_back.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Counts background work, also when it is cancelled with its runtime.
struct Active(Arc<Hub>);

impl Active {
    fn new(hub: Arc<Hub>) -> Self {
        hub.active.fetch_add(1, Ordering::AcqRel);
        Self(hub)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if self.0.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// The lanes of one limiter.
#[derive(Debug)]
pub(crate) struct Lanes {
    hub: Arc<Hub>,
    by_bucket: Mutex<BTreeMap<BucketKey, Arc<Lane>>>,
    closed: AtomicBool,
}

impl Lanes {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        cache: Arc<ConfigCache>,
        clock: Arc<dyn Clock>,
        entropy: Arc<Entropy>,
        settings: Settings,
        table: String,
    ) -> Self {
        let client = ClientId::from_random(entropy.bits());
        let hub = Hub {
            backend,
            cache,
            clock,
            entropy,
            settings,
            table,
            client,
            runtime: Handle::try_current().ok(),
            active: AtomicUsize::new(0),
            idle: Notify::new(),
            counters: Counters::default(),
            unwritten: Mutex::new(Vec::new()),
        };
        Self {
            hub: Arc::new(hub),
            by_bucket: Mutex::new(BTreeMap::new()),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The lane of a bucket. There is one at a time: two would write under the same id without knowing of each other.
    pub(super) fn lane(&self, key: &BucketKey, terms: &Terms) -> Arc<Lane> {
        let mut lanes = self.by_bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(key) {
            return lane.clone();
        }
        if lanes.len() >= MOST_LANES {
            forget_idle(&mut lanes);
        }
        warn_about_size(key, terms);
        let lane = Arc::new(Lane::new(
            self.hub.clone(),
            key.clone(),
            self.hub.client,
            self.hub.settings.memory,
        ));
        lanes.insert(key.clone(), lane.clone());
        lane
    }

    /// An error once the limiter is shut down.
    pub(super) fn check_open(&self) -> crate::Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::invalid("limiter", &self.hub.table, "it is shut down"));
        }
        Ok(())
    }

    /// True if the table answers.
    pub(crate) async fn is_available(&self) -> bool {
        let ping = self.hub.backend.ping();
        matches!(
            tokio::time::timeout(self.hub.settings.time_budget, ping).await,
            Ok(Ok(()))
        )
    }

    /// Refuses further acquires.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Waits until nothing is under way any more.
    pub(crate) async fn settled(&self) {
        loop {
            let idle = self.hub.idle.notified();
            if self.hub.active.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }

    pub(crate) fn report(&self) -> Shutdown {
        let unwritten = self
            .hub
            .unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Shutdown {
            unwritten,
            unwritten_total: self.hub.counters.unwritten.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn stats(&self) -> LimiterStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.hub.counters;
        LimiterStats {
            granted: count(&counters.granted),
            refused: count(&counters.refused),
            unavailable: count(&counters.unavailable),
            unwritten: count(&counters.unwritten),
            refill_went_back: count(&counters.refill_went_back),
            clock_offset_ms: self.hub.backend.clock_offset(),
            buckets: self
                .by_bucket
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .len() as u64,
        }
    }
}

/// Forgets a tenth of the lanes that nobody uses, so that this is rarely done.
fn forget_idle(lanes: &mut BTreeMap<BucketKey, Arc<Lane>>) {
    let idle = lanes
        .iter()
        .filter(|(_, lane)| Arc::strong_count(lane) == 1 && lane.is_idle());
    let forgotten: Vec<_> = idle.map(|(key, _)| key.clone()).take(MOST_LANES / 10).collect();
    for key in forgotten {
        lanes.remove(&key);
    }
}

fn warn_about_size(key: &BucketKey, terms: &Terms) {
    let bytes = estimated_bytes(
        &key.entity,
        &key.resource,
        terms.parent(),
        terms.limits().names(),
        EXPECTED_SLOTS,
    );
    if bytes > WRITE_UNIT_BYTES {
        tracing::warn!(
            entity = %key.entity, resource = %key.resource, bytes,
            "this bucket may grow beyond 1 KB, and each of its writes then costs two units: shorten ids or limit names"
        );
    }
}
