//! Whether the table is available: the circuit breaker of a limiter, kept up to date, and its probes.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::BucketKey;

use super::breaker::{Breaker, FailedRequest, MAX_RESPONSES, Operation, Suspicion};
use super::retry_pace::RetryPace;
use super::shared::Shared;
use crate::{Error, Result};

/// A probe under way. Dropped with its runtime, it counts as failed.
struct Probe {
    shared: Arc<Shared>,
    /// When the first request without a response was sent.
    since: Duration,
    /// It decides whether the breaker opens; otherwise whether it closes.
    opens: bool,
    operation: Operation,
    responded: bool,
}

impl Shared {
    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing is sent, if the breaker is open. This is the one check of the breaker.
    pub(crate) fn breaker_error(&self) -> Option<Error> {
        let breaker = self.breaker();
        let open = breaker.open()?;
        let reason = format!(
            "the circuit breaker is open since {}: {}",
            open.since, open.reason
        );
        drop(breaker);
        Some(self.unavailable(&reason))
    }

    /// An error while the breaker is open. A caller for whom a probe is due waits for it.
    pub(crate) async fn check_breaker(self: &Arc<Self>) -> Result<()> {
        if self.breaker_error().is_none() {
            return Ok(());
        }
        self.probe_if_due().await;
        self.breaker_error().map_or(Ok(()), Err)
    }

    /// The table responded, be it with an error.
    pub(super) fn responded(&self, operation: Operation) {
        let now = self.clock.elapsed();
        self.retry_pace().responded();
        let closed = self.breaker().responded(operation, now);
        if closed {
            self.breaker_closed.notify_waiters();
            tracing::info!(table = %self.table, "the table responds again: the circuit breaker is closed");
        }
    }

    fn retry_pace(&self) -> MutexGuard<'_, RetryPace> {
        self.retry_pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a retry that no caller waits for is put off.
    pub(super) fn until_retry(&self) -> Duration {
        self.retry_pace().reserve(self.clock.elapsed())
    }

    /// A read had no response.
    pub(super) fn no_read(&self) {
        self.retry_pace().failed();
    }

    /// A request had no response.
    pub(super) fn no_response(&self, bucket: Option<&BucketKey>, sent: Duration, reason: &str) {
        self.retry_pace().failed();
        let (now, calendar) = (self.clock.elapsed(), self.now());
        let request = FailedRequest { bucket, sent, reason };
        let jitter = |most| self.entropy.up_to(most);
        let opened = self.breaker().failed(request, now, calendar, jitter);
        if opened {
            self.breaker_opened(reason);
        }
    }

    fn breaker_opened(&self, reason: &str) {
        tracing::warn!(
            table = %self.table, reason,
            "the table does not respond: the circuit breaker is open, and calls follow their policy at once"
        );
    }

    /// A call that began then found the table unavailable.
    pub(crate) fn suspect(self: &Arc<Self>, sent: Duration) {
        let (now, calendar) = (self.clock.elapsed(), self.now());
        let request = FailedRequest {
            bucket: None,
            sent,
            reason: "no response in time",
        };
        let jitter = |most| self.entropy.up_to(most);
        let suspicion = self.breaker().suspects(request, now, calendar, jitter);
        match suspicion {
            Suspicion::None => {}
            Suspicion::Probe => drop(self.probe(sent, true, Operation::Read, self.attempt_timeout())),
            Suspicion::Opened => self.breaker_opened(request.reason),
        }
    }

    /// Makes the probe if one is due and waits for its end. If it takes more responses to close the breaker, the next one is
    /// due at once. All of them are waited for no longer than one attempt takes.
    pub(super) async fn probe_if_due(self: &Arc<Self>) {
        let started = self.clock.elapsed();
        for _ in 0..MAX_RESPONSES {
            let now = self.clock.elapsed();
            let patience = self.attempt_timeout().saturating_sub(now.saturating_sub(started));
            let operation = {
                let mut breaker = self.breaker();
                let writes_failed = breaker.open().is_some_and(|open| open.writes_failed);
                if patience.is_zero() || !breaker.claims_probe(now, now + self.attempt_timeout()) {
                    return;
                }
                if writes_failed {
                    Operation::Write
                } else {
                    Operation::Read
                }
            };
            // A probe that is dropped with its runtime has reported to the breaker.
            drop(self.probe(now, false, operation, patience).await);
        }
    }

    /// Sends a small request in a task of its own, so that it completes even if its caller is dropped or runs out of time. The
    /// caller's thread may have no timers.
    fn probe(
        self: &Arc<Self>,
        since: Duration,
        opens: bool,
        operation: Operation,
        patience: Duration,
    ) -> oneshot::Receiver<()> {
        let (caller, over) = oneshot::channel();
        let mut probe = Probe {
            shared: self.clone(),
            since,
            opens,
            operation,
            responded: false,
        };
        self.spawn(async move {
            let shared = probe.shared.clone();
            let response = tokio::time::timeout(shared.attempt_timeout(), async {
                match operation {
                    Operation::Write => shared.store.accepts_writes().await,
                    Operation::Read => shared.store.responds().await,
                }
            });
            tokio::pin!(response);
            let in_time = tokio::time::timeout(patience, &mut response).await;
            // Dropped, it lets the caller go.
            let caller = in_time.is_ok().then_some(caller);
            let responded = match in_time {
                Ok(responded) => responded,
                Err(_) => response.await,
            };
            probe.responded = responded.unwrap_or(false);
            drop(probe);
            drop(caller);
        });
        over
    }

    /// Waits until the breaker is closed.
    pub(super) async fn breaker_closes(&self) {
        loop {
            // Made before it looks: what happens in between is not missed.
            let closed = self.breaker_closed.notified();
            if self.breaker().open().is_none() {
                return;
            }
            closed.await;
        }
    }

    /// How long until the next probe is due; no time at all if the breaker is closed.
    pub(super) fn until_probe(&self) -> Duration {
        self.breaker()
            .until_probe(self.clock.elapsed())
            .unwrap_or_default()
    }

    /// Makes the next probe due now.
    pub(super) fn probe_now(&self) {
        self.breaker().probe_now(self.clock.elapsed());
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let shared = &self.shared;
        if self.responded {
            shared.responded(self.operation);
        } else if self.opens {
            shared.no_response(None, self.since, "no response in time");
        }
        let now = shared.clock.elapsed();
        let jitter = |most| shared.entropy.up_to(most);
        shared.breaker().probed(self.responded, now, jitter);
    }
}
