//! What all requests share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
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
    stopping: watch::Sender<bool>,
    /// The last result of a readiness check, and when it was made.
    readiness: tokio::sync::Mutex<Option<(Duration, bool)>>,
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
            stopping: watch::Sender::new(false),
            readiness: tokio::sync::Mutex::default(),
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
        self.stopping.send_replace(true);
    }

    /// Whether the server was told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Ready when the server was told to stop.
    pub(crate) async fn stopped(&self) {
        // The sender lives as long as this.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// Whether the server should get requests: it is not stopping, and the table can be used. Whoever asks while the table
    /// is being asked waits for that result, so that checks never make more than one call at a time.
    pub(crate) async fn is_ready(&self) -> bool {
        if self.is_stopping() {
            return false;
        }
        let mut last = self.readiness.lock().await;
        let now = self.clock.elapsed();
        if let Some((_, ready)) = last.filter(|(at, _)| now < *at + READINESS_TTL) {
            return ready;
        }
        let ready = self.limiter.is_available().await;
        *last = Some((self.clock.elapsed(), ready));
        ready
    }
}

fn most_requests(settings: &Settings) -> usize {
    settings.max_requests.min(Semaphore::MAX_PERMITS)
}
