//! What all requests share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use zae_limiter::audit::Principal;
use zae_limiter::{Admission, CapacityMeter, Clock, Error, Lease, RateLimiter};

use crate::api::{AcquireRequest, AcquireResponse, AdjustBucketRequest, AdjustBucketResponse};
use crate::auth::{BearerTokens, TokenSource};
use crate::idempotency::IdempotencyKeys;
use crate::leases::{LeaseId, Leases};
use crate::metrics::Metrics;
use crate::pools::Pools;
use crate::problem::{Problem, ProblemKind};
use crate::replicas::{Location, Replica};
use crate::settings::Settings;

/// For how long the result of a readiness check is reused, so that checks cost at most one read a second.
const READINESS_TTL: Duration = Duration::from_secs(1);
/// For how long a failed write makes the server report that it is not ready, unless a later write succeeds. Reads can work
/// where writes cannot, such as on a full disk.
const WRITE_FAILURE_TIME: Duration = Duration::from_secs(10);

/// A key belongs to the token that it came with.
pub(crate) type ScopedKey = (Option<Principal>, String);
/// The requests that had an idempotency key.
pub(crate) type Keys = IdempotencyKeys<ScopedKey, AcquireRequest, Arc<AcquireResponse>>;

/// The adjustments without a lease that had an idempotency key.
pub(crate) type AdjustKeys = IdempotencyKeys<ScopedKey, AdjustBucketRequest, AdjustBucketResponse>;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) limiter: RateLimiter,
    pub(crate) leases: Leases,
    pub(crate) keys: Mutex<Keys>,
    pub(crate) adjust_keys: Mutex<AdjustKeys>,
    tokens: TokenSource,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) pools: Pools,
    /// This server among others on the same table.
    pub(crate) replica: Option<Replica>,
    stopping: watch::Sender<bool>,
    /// The last result of a readiness check, and when it was made.
    readiness: tokio::sync::Mutex<Option<(Duration, bool)>>,
    /// When the last write failed, unless one has succeeded since.
    write_failed: Mutex<Option<Duration>>,
}

impl App {
    pub(crate) fn new(
        limiter: RateLimiter,
        tokens: TokenSource,
        settings: Settings,
        clock: Arc<dyn Clock>,
        meter: Option<CapacityMeter>,
        replica: Option<Replica>,
    ) -> Self {
        Self {
            leases: Leases::new(settings.max_leases, clock.clone()),
            keys: Mutex::new(IdempotencyKeys::new(
                settings.max_idempotency_keys,
                settings.idempotency_ttl,
            )),
            adjust_keys: Mutex::new(IdempotencyKeys::new(
                settings.max_idempotency_keys,
                settings.idempotency_ttl,
            )),
            pools: Pools::new(&settings),
            metrics: Metrics::new(meter),
            stopping: watch::Sender::new(false),
            readiness: tokio::sync::Mutex::default(),
            write_failed: Mutex::default(),
            limiter,
            tokens,
            settings,
            clock,
            replica,
        }
    }

    /// The bearer tokens as they are now. None if the server has no tokens.
    pub(crate) fn tokens(&self) -> Option<Arc<BearerTokens>> {
        self.tokens.current()
    }

    /// Reads the file of the tokens again. True if they have changed.
    pub(crate) fn reload_tokens(&self) -> Result<bool, crate::Error> {
        self.tokens.reload()
    }

    /// The id of a lease as its client knows it. With replicas it names this server.
    pub(crate) fn lease_name(&self, id: LeaseId) -> String {
        match &self.replica {
            Some(replica) => replica.lease_name(id),
            None => id.to_string(),
        }
    }

    /// Where the lease with this name is.
    pub(crate) fn locate_lease(&self, name: &str) -> Result<Location, Problem> {
        if let Ok(id) = name.parse() {
            return Ok(Location::Here(id));
        }
        let located = match &self.replica {
            Some(replica) => replica.locate(name)?,
            None => None,
        };
        located.ok_or_else(|| {
            let detail = if name.contains('-') && self.replica.is_none() {
                "another server granted the lease, and this one does not know others; start it with --advertise"
            } else {
                "the id must be the lease_id of a response to /v1/acquire"
            };
            Problem::new(ProblemKind::LeaseNotFound, detail)
        })
    }

    /// The lease with this name, which must be on this server.
    pub(crate) fn own_lease(&self, name: &str) -> Result<LeaseId, Problem> {
        match self.locate_lease(name)? {
            Location::Here(id) => Ok(id),
            Location::At(_) => {
                let detail = "the replicas do not agree on their addresses; check --advertise of each";
                Err(Problem::new(ProblemKind::LeaseNotFound, detail))
            }
        }
    }

    /// Notes whether a write succeeded, for the readiness of the server. Refusals and mistakes of clients are no failures.
    pub(crate) fn note_write<T>(&self, result: &Result<T, Error>) {
        match result {
            Ok(_) => self.set_write_failed(false),
            Err(error) if is_failure(error) => self.set_write_failed(true),
            Err(_) => {}
        }
    }

    /// Notes whether an acquire wrote. One that was admitted uncounted in an outage did not; one whose limits are not enforced
    /// need not.
    pub(crate) fn note_acquire(&self, result: &Result<Lease, Error>) {
        match result {
            Ok(lease) => match lease.admission() {
                Admission::Counted => self.set_write_failed(false),
                Admission::Observed | Admission::Bypassed => {}
                _ => self.set_write_failed(true),
            },
            Err(_) => self.note_write(result),
        }
    }

    fn set_write_failed(&self, failed: bool) {
        let failed = failed.then(|| self.clock.elapsed());
        *self.write_failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }

    fn writes_fail(&self) -> bool {
        let failed = *self.write_failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| self.clock.elapsed() < at + WRITE_FAILURE_TIME)
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

    /// Whether the server should get requests: it is not stopping, and the table can be used. Concurrent checks share one
    /// read of the table.
    pub(crate) async fn is_ready(&self) -> bool {
        if self.is_stopping() || self.writes_fail() {
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

/// True if the table, and not the request, is the cause.
fn is_failure(error: &Error) -> bool {
    let problem = crate::problem::kind_of(error);
    matches!(problem, ProblemKind::Unavailable | ProblemKind::Internal)
}
