//! All buckets of one limiter.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;
use zae_limiter_dynamo::Entropy;
use zae_limiter_schema::bucket::{BucketConfig, BucketKey, ClientTag, Image};

use super::breaker::Breaker;
use super::handle::BucketHandle;
use super::in_flight::{InFlight, InFlightGuard};
use super::outage_fraction::OutageFraction;
use super::refusals::RefusalCounts;
use super::shared::{MAX_BACKGROUND_RETRIES, Phase, Shared};
use super::size_warnings::SizeWarnings;
use super::stats::{BreakerState, Counters, LimiterStats, Shutdown};
use crate::builder::Settings;
use crate::config::cache::ConfigCache;
use crate::metrics::Metrics;
use crate::store::Store;
use crate::{Clock, Error, Result};

/// At most this many buckets are in use at a time.
const MAX_IN_USE: usize = 100_000;
/// A new bucket replaces an idle one among this many that were not used for longest.
const CANDIDATES: usize = 8;
/// Calls that end while others are waited for return tokens, and so do searches after that: each is one more round.
const SETTLE_ROUNDS: usize = 3;

/// The buckets of one limiter.
#[derive(Debug)]
pub(crate) struct Buckets {
    pub(super) shared: Arc<Shared>,
    cache: Mutex<LruCache<BucketKey, Arc<BucketHandle>>>,
    /// Calls in flight.
    calls: Arc<InFlight>,
    arrivals: AtomicU64,
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
        let fraction = settings
            .processes
            .map(|processes| Arc::new(OutageFraction::among(processes)));
        let shared = Shared {
            fraction,
            breaker: Mutex::new(Breaker::new(settings.time_budget)),
            breaker_closed: Notify::new(),
            background_retries: Arc::new(Semaphore::new(MAX_BACKGROUND_RETRIES)),
            retry_pace: Mutex::default(),
            phase: watch::Sender::new(Phase::Open),
            store,
            cache,
            clock,
            entropy,
            settings,
            table,
            client,
            runtime: Handle::try_current().ok(),
            keeps_runtime: AtomicBool::new(false),
            counters: Counters::default(),
            metrics: Metrics::default(),
            refusals: RefusalCounts::default(),
            unwritten: Mutex::new(Vec::new()),
        };
        Self {
            shared: Arc::new(shared),
            cache: Mutex::new(LruCache::unbounded()),
            calls: Arc::default(),
            arrivals: AtomicU64::new(0),
            size_warnings: SizeWarnings::default(),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The last image of a bucket that is in use.
    pub(crate) fn known_image(&self, key: &BucketKey) -> Option<Arc<Image>> {
        let bucket = self.cache().peek(key).cloned();
        bucket.and_then(|bucket| bucket.image())
    }

    pub(super) fn cache(&self) -> MutexGuard<'_, LruCache<BucketKey, Arc<BucketHandle>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs all tasks on the runtime where it was made: callers' runtimes may come and go, or have no timers.
    #[cfg(feature = "blocking")]
    pub(crate) fn keep_runtime(&self) {
        self.shared.keeps_runtime.store(true, Ordering::Relaxed);
    }

    /// The handle of a bucket. There is one at a time: two would write under the same tag without knowing of each other.
    pub(crate) fn bucket(&self, key: &BucketKey, config: &BucketConfig) -> Result<Arc<BucketHandle>> {
        let mut cache = self.cache();
        if let Some(bucket) = cache.get(key) {
            return Ok(bucket.clone());
        }
        let forgets = cache.len() >= self.shared.settings.buckets;
        if forgets && !forget_one(&mut cache) && cache.len() >= MAX_IN_USE {
            return Err(overloaded(key, "buckets in use", MAX_IN_USE));
        }
        let bucket = Arc::new(BucketHandle::new(self.shared.clone(), key.clone()));
        cache.put(key.clone(), bucket.clone());
        drop(cache);
        self.size_warnings.check(key, config);
        Ok(bucket)
    }

    /// Counts a call as in flight, unless the limiter is shut down.
    pub(crate) fn enter(&self) -> Result<InFlightGuard> {
        // Counted before it looks: either the shutdown sees the call, or the call sees the shutdown.
        let inside = self.calls.enter();
        self.check_open()?;
        Ok(inside)
    }

    /// The next number in order of arrival, for calls that wait for tokens.
    pub(crate) fn arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed)
    }

    /// An error once the limiter is shut down.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.shared.phase() {
            Phase::Open => Ok(()),
            Phase::Closed | Phase::Draining => Err(self.shut()),
        }
    }

    /// Waits for the limiter to be shut down: the error for those who wait for something else.
    pub(crate) async fn closing(&self) -> Error {
        let mut phase = self.shared.phase.subscribe();
        // It cannot end without a value: this one holds the sender.
        drop(phase.wait_for(|phase| *phase != Phase::Open).await);
        self.shut()
    }

    fn shut(&self) -> Error {
        Error::ShutDown {
            table: self.shared.table.clone(),
        }
    }

    /// True if the table responds.
    pub(crate) async fn is_available(&self) -> bool {
        let ping = self.shared.store.ping();
        matches!(
            tokio::time::timeout(self.shared.settings.time_budget, ping).await,
            Ok(Ok(()))
        )
    }

    /// Refuses further acquires, waits until nothing is in flight any more, and reports what could not be written. Calls
    /// have the time budget to end, changes after that at most the settle budget.
    pub(crate) async fn shut_down(&self) -> Shutdown {
        let (calls, settle) = (
            self.shared.settings.time_budget,
            self.shared.settings.settle_budget,
        );
        self.shared.phase.send_replace(Phase::Closed);
        // No call has more time than that. One that is no longer polled is not waited for.
        let _ = tokio::time::timeout(calls, self.calls.none()).await;
        self.shared.phase.send_replace(Phase::Draining);
        self.shared.probe_now();
        for bucket in self.all() {
            bucket.close();
        }
        let end = Instant::now() + settle;
        let written = async {
            tokio::join!(self.drained(), self.shared.write_refusals());
            // What was left because the circuit breaker was open.
            self.shared.write_refusals().await;
        };
        if tokio::time::timeout(calls.min(settle), written).await.is_ok() {
            return self.report();
        }
        // Only changes of callers are worth more time: everything else can at most have taken too much.
        let all = self.all();
        for bucket in &all {
            bucket.stop_searching();
        }
        let changed = all.iter().any(|bucket| bucket.has_changes());
        if !changed || tokio::time::timeout_at(end, self.drained()).await.is_err() {
            let error = self
                .shared
                .unavailable("the limiter was shut down before the table responded");
            for bucket in self.all() {
                bucket.give_up(&error);
            }
        }
        self.report()
    }

    pub(super) fn all(&self) -> Vec<Arc<BucketHandle>> {
        self.cache()
            .iter()
            .rev()
            .map(|(_, bucket)| bucket.clone())
            .collect()
    }

    /// Waits until everything that waits now is written or was given up. Traffic that arrives meanwhile is not waited for.
    pub(crate) async fn settled(&self) {
        for _ in 0..SETTLE_ROUNDS {
            let waiting = self
                .all()
                .into_iter()
                .map(|bucket| (bucket.last_request(), bucket));
            for (last, bucket) in waiting.collect::<Vec<_>>() {
                bucket.settled(last).await;
            }
        }
    }

    /// Waits until no bucket has anything to do.
    async fn drained(&self) {
        loop {
            self.settled().await;
            if self.all().iter().all(|bucket| bucket.has_nothing_to_do()) {
                return;
            }
        }
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
            observed: count(&counters.observed),
            disabled: count(&counters.disabled),
            unavailable: count(&counters.unavailable),
            unwritten: count(&counters.unwritten),
            rolled_back: count(&counters.rolled_back),
            refill_went_back: count(&counters.refill_went_back),
            refills_set_back: count(&counters.refills_set_back),
            clock_offset_ms: self.shared.store.clock_offset(),
            buckets: self.cache().len() as u64,
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

/// Forgets an idle bucket that was not used for long. False if there is none among the oldest, which then count as used.
fn forget_one(cache: &mut LruCache<BucketKey, Arc<BucketHandle>>) -> bool {
    for _ in 0..CANDIDATES {
        let Some((key, bucket)) = cache.pop_lru() else {
            return false;
        };
        // Nobody can get hold of it while the cache is locked.
        if Arc::strong_count(&bucket) == 1 && bucket.can_be_forgotten() {
            return true;
        }
        cache.put(key, bucket);
    }
    false
}
