//! All buckets of one limiter.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use zae_limiter_dynamo::Entropy;
use zae_limiter_schema::bucket::{BucketConfig, BucketKey, ClientTag};

use super::bounded_map::{BoundedMap, Capacity};
use super::breaker::Breaker;
use super::in_flight::{InFlight, InFlightGuard};
use super::known_calls::KnownCalls;
use super::outage_share::OutageShare;
use super::queue::BucketQueue;
use super::refusals::RefusalCounts;
use super::shared::{MAX_BACKGROUND_RETRIES, Shared};
use super::size_warnings::SizeWarnings;
use super::state::IdleBucket;
use super::stats::{BreakerState, Counters, LimiterStats, Shutdown};
use crate::builder::Settings;
use crate::config::cache::ConfigCache;
use crate::metrics::Metrics;
use crate::store::Store;
use crate::{Clock, Error, Result};

/// Buckets in use are never folded or forgotten: each may have a write in doubt. A whole one takes two kilobytes, a folded one
/// a tenth of that. Forgetting a bucket costs its next acquire a read.
const CAPACITY: Capacity = Capacity {
    // In tests every bucket that nobody holds is folded as soon as another one is used.
    whole: if cfg!(test) { 0 } else { 256 },
    unfoldable: 10_000,
    max: 100_000,
    folded: 200_000,
};
/// How often work that its runtime left undone is taken up again before it is given up.
const MAX_REVIVALS: usize = 3;

type BucketMap = BoundedMap<BucketQueue, IdleBucket>;

/// The buckets of one limiter.
#[derive(Debug)]
pub(crate) struct Buckets {
    shared: Arc<Shared>,
    map: Mutex<BucketMap>,
    known_calls: KnownCalls,
    /// Calls that are under way.
    calls: Arc<InFlight>,
    arrivals: AtomicU64,
    closed: watch::Sender<bool>,
    /// The same, for those who only ask.
    is_closed: AtomicBool,
    size_warnings: SizeWarnings,
}

impl Buckets {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        cache: Arc<ConfigCache>,
        clock: Arc<dyn Clock>,
        entropy: Arc<Entropy>,
        settings: Settings,
        table: String,
    ) -> Self {
        let client = ClientTag::from_random(entropy.bits());
        let share = settings
            .processes
            .map(|processes| Arc::new(OutageShare::among(processes)));
        let shared = Shared {
            share,
            breaker: Mutex::new(Breaker::new(settings.time_budget)),
            breaker_is_open: AtomicBool::new(false),
            breaker_closed: Notify::new(),
            background_retries: Arc::new(Semaphore::new(MAX_BACKGROUND_RETRIES)),
            retry_pace: Mutex::default(),
            closing: AtomicBool::new(false),
            store,
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
            metrics: Metrics::default(),
            refusals: RefusalCounts::default(),
            unwritten: Mutex::new(Vec::new()),
        };
        Self {
            shared: Arc::new(shared),
            map: Mutex::new(BoundedMap::new(CAPACITY)),
            known_calls: KnownCalls::new(),
            calls: Arc::default(),
            arrivals: AtomicU64::new(0),
            closed: watch::Sender::new(false),
            is_closed: AtomicBool::new(false),
            size_warnings: SizeWarnings::default(),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn known_calls(&self) -> &KnownCalls {
        &self.known_calls
    }

    fn map(&self) -> MutexGuard<'_, BucketMap> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the runtime where it was made and on no other: callers' runtimes may come and go, or have no timers.
    #[cfg(feature = "blocking")]
    pub(crate) fn keep_runtime(&self) {
        self.shared.keeps_runtime.store(true, Ordering::Relaxed);
    }

    /// The queue of a bucket. There is one at a time: two would write under the same id without knowing of each other.
    pub(crate) fn queue(&self, key: &BucketKey, config: &BucketConfig) -> Result<Arc<BucketQueue>> {
        let mut map = self.map();
        if let Some(queue) = map.get(key, BucketQueue::folded) {
            return Ok(queue);
        }
        let mut is_new = true;
        let added = map.add(key, BucketQueue::folded, |key, idle| {
            let shared = self.shared.clone();
            let client = shared.client;
            is_new = idle.is_none();
            match idle {
                Some(idle) => BucketQueue::unfolded(shared, key, &idle),
                None => BucketQueue::new(shared, key, client),
            }
        });
        drop(map);
        let queue = added.ok_or_else(|| overloaded(key, "buckets in use", CAPACITY.max))?;
        if is_new {
            self.size_warnings.check(key, config);
        }
        Ok(queue)
    }

    /// Counts a call as under way, unless the limiter is shut down.
    pub(crate) fn enter(&self) -> Result<InFlightGuard> {
        // Counted before it looks: whoever closes sees the call, or the call sees that it is closed.
        let inside = self.calls.enter();
        self.check_open()?;
        Ok(inside)
    }

    /// The same for a call that ends here and now; nothing if the limiter is shut down.
    pub(crate) fn enter_briefly(&self) -> Option<InFlightGuard<&InFlight>> {
        let inside = self.calls.enter_briefly();
        (!self.is_closed()).then_some(inside)
    }

    /// True once the limiter is shut down.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// The next number in order of arrival, for those who wait for tokens.
    pub(crate) fn arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed)
    }

    /// An error once the limiter is shut down.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed() {
            return Err(self.shut());
        }
        Ok(())
    }

    /// Waits for the limiter to be shut down: the error for those who wait for something else.
    pub(crate) async fn closing(&self) -> Error {
        let mut closed = self.closed.subscribe();
        // It cannot end without a value: this one holds the sender.
        drop(closed.wait_for(|closed| *closed).await);
        self.shut()
    }

    fn shut(&self) -> Error {
        Error::ShutDown {
            table: self.shared.table.clone(),
        }
    }

    /// True if the table answers.
    pub(crate) async fn is_available(&self) -> bool {
        let ping = self.shared.store.ping();
        matches!(
            tokio::time::timeout(self.shared.settings.time_budget, ping).await,
            Ok(Ok(()))
        )
    }

    /// Refuses further acquires, waits until nothing is under way any more, and tells what could not be written. Calls
    /// have the time budget to end, changes after that at most the settle budget.
    pub(crate) async fn shut_down(&self) -> Shutdown {
        let (calls, settle) = (
            self.shared.settings.time_budget,
            self.shared.settings.settle_budget,
        );
        self.is_closed.store(true, Ordering::SeqCst);
        self.closed.send_replace(true);
        // None has more time than that; one that nobody polls any more is not waited for.
        let _ = tokio::time::timeout(calls, self.calls.none()).await;
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.hurry_probe();
        self.everywhere(BucketQueue::give_back_chunk);
        self.everywhere(BucketQueue::look_again);
        let end = Instant::now() + settle;
        let written = async {
            tokio::join!(self.settled(), self.shared.write_refusals());
            // What was left because the circuit breaker was open.
            self.shared.write_refusals().await;
        };
        if tokio::time::timeout(calls.min(settle), written).await.is_ok() {
            return self.report();
        }
        // Only what callers have changed is worth more time: everything else can do no harm but take too much.
        self.everywhere(BucketQueue::rest);
        let changed = !self.undone(BucketQueue::has_changes).is_empty();
        if !changed || tokio::time::timeout_at(end, self.settled()).await.is_err() {
            let error = self
                .shared
                .unavailable("the limiter was shut down before the table responded");
            self.everywhere(|queue| queue.give_up(&error));
        }
        self.report()
    }

    fn everywhere(&self, act: impl Fn(&Arc<BucketQueue>)) {
        let all = self.map().all();
        all.iter().for_each(act);
    }

    /// Waits until no queue is worked on any more and none is left undone.
    pub(crate) async fn settled(&self) {
        // Whether a caller is polled that works on a bucket itself is nobody's concern here.
        self.everywhere(|queue| queue.detach());
        let mut left = self.undone(BucketQueue::is_left_undone);
        for _ in 0..MAX_REVIVALS {
            left.iter().for_each(BucketQueue::work);
            self.shared.work.none().await;
            left = self.undone(BucketQueue::has_waiting);
            if left.is_empty() {
                return;
            }
        }
        let error = self
            .shared
            .unavailable("the work on this bucket breaks off each time");
        for queue in left {
            queue.give_up(&error);
        }
    }

    fn undone(&self, is_undone: impl Fn(&BucketQueue) -> bool) -> Vec<Arc<BucketQueue>> {
        let all = self.map().all();
        all.into_iter().filter(|queue| is_undone(queue)).collect()
    }

    pub(crate) fn report(&self) -> Shutdown {
        let unwritten = self
            .shared
            .unwritten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Shutdown {
            unwritten,
            unwritten_total: self.shared.counters.unwritten.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn stats(&self) -> LimiterStats {
        let (breaker, breaker_opened) = {
            let breaker = self.shared.breaker();
            let state = match breaker.open() {
                Some(_) => BreakerState::Open,
                None => BreakerState::Closed,
            };
            (state, breaker.opened())
        };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tokens = |millis: &AtomicI64| {
            let millis = millis.load(Ordering::Relaxed).max(0).cast_unsigned();
            millis.div_ceil(1000)
        };
        let counters = &self.shared.counters;
        LimiterStats {
            granted: count(&counters.granted),
            refused: count(&counters.refused),
            unavailable: count(&counters.unavailable),
            unwritten: count(&counters.unwritten),
            refill_went_back: count(&counters.refill_went_back),
            clock_offset_ms: self.shared.store.clock_offset(),
            buckets: self.map().len() as u64,
            chunk_grants: count(&counters.chunk_grants),
            chunk_tokens: tokens(&counters.chunk_tokens),
            chunk_tokens_peak: tokens(&counters.chunk_tokens_peak),
            breaker,
            breaker_opened,
        }
    }
}

pub(crate) fn overloaded(key: &BucketKey, what: &'static str, limit: usize) -> Error {
    Error::Overloaded {
        entity: key.entity.clone(),
        resource: key.resource.clone(),
        what,
        limit,
    }
}
