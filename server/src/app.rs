//! What all requests share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use zae_limiter::audit::Principal;
use zae_limiter::{CapacityMeter, Clock, RateLimiter};

use crate::api::{AcquireRequest, AcquireResponse};
use crate::auth::BearerTokens;
use crate::idempotency::IdempotencyKeys;
use crate::leases::Leases;
use crate::metrics::Metrics;
use crate::settings::Settings;

/// For how long the result of a readiness check is reused, so that checks cost at most one read a second.
const READINESS_TTL: Duration = Duration::from_secs(1);

/// A key belongs to the token that it came with.
pub(crate) type ScopedKey = (Option<Principal>, String);
/// The requests that had an idempotency key.
pub(crate) type Keys = IdempotencyKeys<ScopedKey, AcquireRequest, Arc<AcquireResponse>>;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) limiter: RateLimiter,
    pub(crate) leases: Leases,
    pub(crate) keys: Mutex<Keys>,
    pub(crate) tokens: Option<BearerTokens>,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) requests: Arc<Semaphore>,
    stopping: AtomicBool,
    /// The last result of a readiness check, and when it was made.
    readiness: Mutex<Option<(Duration, bool)>>,
}

impl App {
    pub(crate) fn new(
        limiter: RateLimiter,
        tokens: Option<BearerTokens>,
        settings: Settings,
        clock: Arc<dyn Clock>,
        meter: Option<CapacityMeter>,
    ) -> Self {
        Self {
            leases: Leases::new(settings.max_leases, clock.clone()),
            keys: Mutex::new(IdempotencyKeys::new(
                settings.max_idempotency_keys,
                settings.idempotency_ttl,
            )),
            requests: Arc::new(Semaphore::new(most_requests(&settings))),
            metrics: Metrics::new(meter),
            stopping: AtomicBool::new(false),
            readiness: Mutex::new(None),
            limiter,
            tokens,
            settings,
            clock,
        }
    }

    /// How many requests under `/v1` and `/ui` are being served.
    pub(crate) fn requests_in_progress(&self) -> usize {
        most_requests(&self.settings) - self.requests.available_permits()
    }

    /// From now on, the server reports that it is not ready.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the server was told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether the server should get requests: it is not stopping, and the table can be used.
    pub(crate) async fn is_ready(&self) -> bool {
        if self.is_stopping() {
            return false;
        }
        let now = self.clock.elapsed();
        let known = *self.readiness.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ready)) = known.filter(|(at, _)| now < *at + READINESS_TTL) {
            return ready;
        }
        let ready = self.limiter.is_available().await;
        *self.readiness.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, ready));
        ready
    }
}

fn most_requests(settings: &Settings) -> usize {
    settings.max_requests.min(Semaphore::MAX_PERMITS)
}
