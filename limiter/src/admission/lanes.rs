//! All lanes of one limiter, and what they share.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use zae_limiter_schema::bucket::{
    BucketKey, ClientId, Decoded, Image, Terms, TtlRule, WRITE_UNIT_BYTES, estimated_bytes,
};
use zae_limiter_schema::{LimitName, LimitSet};

use super::desk::Moment;
use super::lane::Lane;
use super::report::{Counters, LimiterStats, Shutdown, Unwritten};
use super::roster::{Room, Roster};
use super::share::Share;
use super::tally::{Counted, Tally};
use crate::backend::Backend;
use crate::builder::Settings;
use crate::cache::ConfigCache;
use crate::entropy::Entropy;
use crate::resolution::{Resolved, Source};
use crate::{Clock, Error, Result};

/// How many lanes there are. Those that are in use cannot be forgotten: each may have a write in doubt.
const ROOM: Room = Room {
    idle: 10_000,
    most: 100_000,
};
/// Work that its runtime left undone is taken up again so many times before it is given up.
const MOST_REVIVALS: usize = 3;
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
    /// What this process may admit by itself.
    pub(super) share: Option<Arc<Share>>,
    table: String,
    client: ClientId,
    runtime: Option<Handle>,
    /// Work goes to that runtime whatever the caller's is.
    keeps_runtime: AtomicBool,
    /// Lanes that are worked on.
    work: Arc<Tally>,
    counters: Counters,
    unwritten: Mutex<Vec<Unwritten>>,
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
    /// limiter was made; a limiter that [keeps](Lanes::keep_runtime) its runtime always uses that.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let (own, current) = (self.runtime.clone(), Handle::try_current().ok());
        let chosen = if self.keeps_runtime.load(Ordering::Relaxed) {
            own.or(current)
        } else {
            current.or(own)
        };
        let Some(runtime) = chosen else {
            tracing::error!("no runtime is left to give tokens back on");
            return;
        };
        let under_way = self.work.enter();
        runtime.spawn(async move {
            work.await;
            drop(under_way);
        });
    }

    /// Notes changes that will never be booked.
    pub(super) fn unwritten(
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
        if list.len() >= MOST_REPORTED {
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
    pub(super) fn note_refill(&self, before: Option<&Image>, after: Option<&Decoded>) {
        if let (Some(before), Some(Decoded::Bucket(after))) = (before, after)
            && after.refilled_at < before.refilled_at
            && after.incarnation() == before.incarnation()
        {
            self.counters.refill_went_back.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The lanes of one limiter.
#[derive(Debug)]
pub(crate) struct Lanes {
    hub: Arc<Hub>,
    roster: Mutex<Roster<Lane>>,
    /// Calls that are under way.
    calls: Arc<Tally>,
    arrivals: AtomicU64,
    closed: watch::Sender<bool>,
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
        let share = settings
            .processes
            .map(|processes| Arc::new(Share::among(processes)));
        let hub = Hub {
            share,
            backend,
            cache,
            clock,
            entropy,
            settings,
            table,
            client,
            runtime: Handle::try_current().ok(),
            keeps_runtime: AtomicBool::new(false),
            work: Arc::default(),
            counters: Counters::default(),
            unwritten: Mutex::new(Vec::new()),
        };
        Self {
            hub: Arc::new(hub),
            roster: Mutex::new(Roster::new(ROOM)),
            calls: Arc::default(),
            arrivals: AtomicU64::new(0),
            closed: watch::Sender::new(false),
        }
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    fn roster(&self) -> MutexGuard<'_, Roster<Lane>> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the runtime where it was made and on no other: callers' runtimes may come and go, or have no timers.
    #[cfg(feature = "blocking")]
    pub(crate) fn keep_runtime(&self) {
        self.hub.keeps_runtime.store(true, Ordering::Relaxed);
    }

    /// The lane of a bucket. There is one at a time: two would write under the same id without knowing of each other.
    pub(super) fn lane(&self, key: &BucketKey, terms: &Terms) -> Result<Arc<Lane>> {
        let mut roster = self.roster();
        if let Some(lane) = roster.get(key) {
            return Ok(lane);
        }
        let (client, memory) = (self.hub.client, self.hub.settings.memory);
        let lane = Arc::new(Lane::new(self.hub.clone(), key.clone(), client, memory));
        if !roster.add(key.clone(), lane.clone(), Lane::is_idle) {
            return Err(overloaded(key, "buckets in use", ROOM.most));
        }
        drop(roster);
        warn_about_size(key, terms);
        Ok(lane)
    }

    /// Counts a call as under way, unless the limiter is shut down.
    pub(super) fn enter(&self) -> Result<Counted> {
        // Counted before it looks: whoever closes sees the call, or the call sees that it is closed.
        let inside = self.calls.enter();
        self.check_open()?;
        Ok(inside)
    }

    /// The next number in order of arrival, for those who wait for tokens.
    pub(super) fn arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed)
    }

    /// An error once the limiter is shut down.
    pub(super) fn check_open(&self) -> Result<()> {
        if *self.closed.borrow() {
            return Err(self.shut());
        }
        Ok(())
    }

    /// Waits for the limiter to be shut down: the error for those who wait for something else.
    pub(super) async fn closing(&self) -> Error {
        let mut closed = self.closed.subscribe();
        // It cannot end without a value: this one holds the sender.
        drop(closed.wait_for(|closed| *closed).await);
        self.shut()
    }

    fn shut(&self) -> Error {
        Error::invalid("limiter", &self.hub.table, "it is shut down")
    }

    /// True if the table answers.
    pub(crate) async fn is_available(&self) -> bool {
        let ping = self.hub.backend.ping();
        matches!(
            tokio::time::timeout(self.hub.settings.time_budget, ping).await,
            Ok(Ok(()))
        )
    }

    /// Refuses further acquires, waits until nothing is under way any more, and tells what could not be written.
    pub(crate) async fn shut_down(&self) -> Shutdown {
        self.closed.send_replace(true);
        // None has more time than that; one that nobody polls any more is not waited for.
        let _ = tokio::time::timeout(self.hub.settings.time_budget, self.calls.none()).await;
        self.settled().await;
        self.report()
    }

    /// Waits until no lane is worked on any more and none is left undone.
    pub(crate) async fn settled(&self) {
        let mut left = self.undone(Lane::is_left_undone);
        for _ in 0..MOST_REVIVALS {
            left.iter().for_each(Lane::drive);
            self.hub.work.none().await;
            left = self.undone(Lane::has_waiting);
            if left.is_empty() {
                return;
            }
        }
        let error = self
            .hub
            .unavailable("the work on this bucket breaks off each time");
        for lane in left {
            lane.give_up(&error);
        }
    }

    fn undone(&self, is_undone: impl Fn(&Lane) -> bool) -> Vec<Arc<Lane>> {
        let all = self.roster().all();
        all.into_iter().filter(|lane| is_undone(lane)).collect()
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
            buckets: self.roster().len() as u64,
        }
    }
}

pub(super) fn overloaded(key: &BucketKey, what: &'static str, most: usize) -> Error {
    Error::Overloaded {
        entity: key.entity.clone(),
        resource: key.resource.clone(),
        what,
        most,
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
