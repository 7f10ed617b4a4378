//! The task of a busy bucket: it carries out what the [core](super::core) decides, until nothing is left to do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use zae_limiter_schema::bucket::{Attributes, BucketWrite};

use super::backoff;
use super::breaker::Operation;
use super::core::{Completion, Core, Step};
use super::handle::BucketHandle;
use crate::config::cache::BucketImage;
use crate::store::WriteOutcome;
use crate::{Error, Result};

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// A write without a response is sent again at most this many times before its callers get the error.
const RESENDS_WHEN_LOST: u32 = 1;

/// Works on a bucket until its queue is empty and every write has been accounted for.
pub(super) fn run(bucket: Arc<BucketHandle>) -> impl Future<Output = ()> + Send + 'static {
    // Made before the first poll: a task that a runtime drops unpolled must give up the bucket too.
    let mut actor = Actor {
        bucket,
        outages: 0,
        waits_since: None,
        idle: false,
    };
    async move {
        while !actor.idle {
            actor.step().await;
        }
    }
}

struct Actor {
    bucket: Arc<BucketHandle>,
    /// Requests without a usable response in a row.
    outages: u32,
    /// Since when it waits for the breaker to close, on the clock's time scale.
    waits_since: Option<Duration>,
    idle: bool,
}

/// An actor whose runtime is shut down leaves the bucket to the next one.
impl Drop for Actor {
    fn drop(&mut self) {
        if !self.idle {
            self.bucket.abandon();
        }
    }
}

impl Actor {
    async fn step(&mut self) {
        let mut _permit = None;
        match self.bucket.shared().breaker_error() {
            None => {
                self.waits_since = None;
                _permit = self.retry_permit().await;
            }
            Some(error) => return self.wait_for_table(&error).await,
        }
        let pause = self.bucket.pause_before_write();
        if !pause.is_zero() && !self.bucket.with_core(|core| core.has_nothing_to_do()) {
            tokio::time::sleep(pause).await;
        }
        let (step, completions) = self.bucket.next(self.bucket.shared().read_clock());
        self.bucket.complete(completions);
        match step {
            Step::Idle => self.idle = true,
            Step::Again => {}
            // A call that arrives ends the pause; otherwise tokens taken ahead go back then.
            Step::Later(pause) => drop(tokio::time::timeout(pause, self.bucket.woken()).await),
            Step::Read => {
                let result = self.read().await;
                self.after_reading(result).await;
            }
            Step::Reload => {
                let result = self.reload().await;
                self.after_reading(result).await;
            }
            Step::Send(write) => self.send(&write).await,
        }
    }

    /// While the circuit breaker is open nothing is sent. Callers get the error at once; changes wait for their settle
    /// budget, and so does the search for unconfirmed writes.
    async fn wait_for_table(&mut self, error: &Error) {
        let shared = self.bucket.shared().clone();
        let now = shared.clock.elapsed();
        let since = *self.waits_since.get_or_insert(now);
        self.outages = self.outages.max(1);
        self.complete(|core| core.postpone(error));
        self.expire(error);
        let calendar = shared.now();
        self.bucket.with_core(|core| core.expire_permits(calendar));
        if now.saturating_sub(since) >= shared.settings.settle_budget {
            self.bucket.with_core(Core::stop_searching);
        }
        if self.bucket.ends_actor() {
            self.idle = true;
            return;
        }
        tokio::select! {
            biased;
            () = shared.breaker_closes() => {
                // A caller does not wait, nor does a shutdown; all other buckets do not come at once.
                if !shared.is_draining() {
                    self.sleep_unless_woken(backoff::after_recovery(&shared.entropy)).await;
                }
            }
            () = self.bucket.woken() => {}
            () = tokio::time::sleep(shared.until_probe().max(SHORTEST_PAUSE)) => {
                shared.probe_if_due().await;
            }
        }
    }

    /// After a failure few buckets without callers are retried at a time, and few a second while the table fails. A
    /// shutdown waits for all of them.
    async fn retry_permit(&self) -> Option<OwnedSemaphorePermit> {
        if self.outages == 0 || self.goes_ahead() {
            return None;
        }
        let shared = self.bucket.shared();
        let permit = async {
            let permit = shared.background_retries.clone().acquire_owned().await;
            tokio::time::sleep(shared.until_retry()).await;
            permit.ok()
        };
        tokio::pin!(permit);
        loop {
            tokio::select! {
                biased;
                permit = &mut permit => return permit,
                () = self.bucket.woken() => if self.goes_ahead() {
                    return None;
                },
            }
        }
    }

    /// True if a caller or a shutdown waits, or there is nothing to send.
    fn goes_ahead(&self) -> bool {
        let wanted = |core: &mut Core| core.has_callers() || core.has_nothing_to_do();
        self.bucket.shared().is_draining() || self.bucket.with_core(wanted)
    }

    async fn read(&self) -> Result<()> {
        let shared = self.bucket.shared();
        let found = shared.store.read_bucket(self.bucket.key(), true).await?;
        self.bucket.reread(found.as_ref())
    }

    async fn reload(&self) -> Result<()> {
        let (shared, key) = (self.bucket.shared(), self.bucket.key());
        let lookup = shared.cache.reload_consistent(&key.entity, &key.resource).await?;
        let config = shared.config(&lookup.configs, None);
        let found = match &lookup.bucket {
            BucketImage::Present(item) => Some(Attributes::from_item(item)),
            BucketImage::Absent | BucketImage::NotRead => None,
        };
        self.bucket.reloaded(&config, found.as_ref())
    }

    async fn after_reading(&mut self, result: Result<()>) {
        match result {
            Ok(()) => {
                self.bucket.shared().responded(Operation::Read);
                self.outages = 0;
            }
            Err(error) if error.is_unavailable() => {
                self.bucket.shared().no_read();
                if self.bucket.with_core(Core::goes_on_unread) {
                    return;
                }
                self.complete(|core| core.unreadable(&error));
                self.bucket.with_core(Core::stop_searching);
                self.pause_for_outage(&error).await;
            }
            Err(error) => self.failed(&error).await,
        }
    }

    /// Sends a write until there is a response, or nobody waits for it any more.
    async fn send(&mut self, write: &BucketWrite) {
        let mut lost = 0;
        let started = self.bucket.shared().clock.elapsed();
        loop {
            let shared = self.bucket.shared().clone();
            let attempted = shared.clock.elapsed();
            self.bucket.with_core(|core| core.sending(attempted));
            let wanted = self.bucket.with_core(|core| core.wants_resend());
            let outcome = match shared.store.ready().await {
                Ok(_) if wanted && !self.bucket.with_core(|core| core.wants_resend()) => {
                    // Its callers have gone while it waited for other writes.
                    let error = shared.unavailable("no response within the time budget");
                    return self.complete(|core| core.give_up_current(&error));
                }
                Ok(_slot) => shared.store.send_write(write, shared.attempt_timeout()).await,
                Err(outcome) => outcome,
            };
            shared.metrics.wrote(write, &outcome);
            match &outcome {
                WriteOutcome::Lost(reason) | WriteOutcome::NotSent(reason) => {
                    shared.no_response(Some(self.bucket.key()), attempted, reason);
                }
                _ => shared.responded(Operation::Write),
            }
            let (reason, again) = match outcome {
                WriteOutcome::Done(attributes) => {
                    if write.sets_refill_back() {
                        shared.note_set_back(write);
                    }
                    return self.done(&attributes).await;
                }
                WriteOutcome::Refused(attributes) => return self.refused(attributes.as_ref()).await,
                WriteOutcome::Failed(error) => return self.failed(&error).await,
                WriteOutcome::Lost(reason) => {
                    lost += 1;
                    let wanted = self.bucket.with_core(Core::lost);
                    (reason, wanted && lost <= RESENDS_WHEN_LOST)
                }
                WriteOutcome::Throttled(reason) if self.combines_more(&shared.unavailable(&reason)) => {
                    return self.pause_for_outage(&shared.unavailable(&reason)).await;
                }
                WriteOutcome::NotSent(reason)
                | WriteOutcome::Throttled(reason)
                | WriteOutcome::Conflict(reason) => {
                    // After that its callers are gone; changes go back to the queue, where they expire.
                    let in_time =
                        shared.clock.elapsed().saturating_sub(started) < shared.settings.time_budget;
                    (
                        reason,
                        in_time && self.bucket.with_core(|core| core.wants_resend()),
                    )
                }
            };
            if let Some(error) = shared.breaker_error() {
                return self.complete(|core| core.give_up_current(&error));
            }
            let error = shared.unavailable(&reason);
            if !again {
                self.complete(|core| core.give_up_current(&error));
                return self.pause_for_outage(&error).await;
            }
            self.pause_for_outage(&error).await;
            if !self.goes_ahead() {
                self.sleep_unless_woken(shared.until_retry()).await;
            }
            if !self.bucket.with_core(|core| core.wants_resend()) {
                // Its callers have gone in the meantime.
                return self.complete(|core| core.give_up_current(&error));
            }
            shared.metrics.retried();
        }
    }

    async fn done(&mut self, attributes: &Attributes) {
        self.outages = 0;
        match attributes.decode() {
            Ok(decoded) => {
                let now = self.bucket.shared().read_clock();
                self.complete(|core| core.done(decoded, now));
            }
            Err(malformed) => {
                // It happened, and what is left is unknown: what was taken goes back once it can be read.
                self.bucket.with_core(Core::lost);
                self.failed(&malformed.into()).await;
            }
        }
    }

    /// The failure is not transient. Acquires get the error; changes are tried again within their settle budget,
    /// unless the limiter is being shut down.
    async fn failed(&mut self, error: &Error) {
        if self.bucket.shared().is_draining() {
            return self.complete(|core| core.failed(error));
        }
        self.complete(|core| core.postpone(error));
        self.bucket.with_core(Core::stop_searching);
        self.pause_for_outage(error).await;
    }

    async fn refused(&mut self, attributes: Option<&Attributes>) {
        self.outages = 0;
        match attributes.map(Attributes::decode).transpose() {
            Ok(decoded) => {
                let now = self.bucket.shared().read_clock();
                self.bucket
                    .shared()
                    .note_refill(self.bucket.image().as_deref(), decoded.as_ref());
                self.complete(|core| core.refused(decoded, now));
            }
            Err(malformed) => self.failed(&malformed.into()).await,
        }
    }

    /// The item was throttled: from now on each write carries more calls, those of the one that was throttled
    /// included, and more tokens are taken ahead. False if the write must be sent again as it is.
    fn combines_more(&mut self, error: &Error) -> bool {
        let now = self.bucket.shared().clock.elapsed();
        let Some(late) = self.bucket.with_core(|core| core.throttled(now, error)) else {
            return false;
        };
        self.bucket.complete(late);
        true
    }

    /// Gives up changes that have waited too long, and pauses a little longer each time: not long while a caller waits,
    /// longer for changes that nobody waits for.
    async fn pause_for_outage(&mut self, error: &Error) {
        let shared = self.bucket.shared().clone();
        self.outages += 1;
        self.expire(error);
        if self
            .bucket
            .with_core(|core| core.has_nothing_to_do() && !core.is_renewing())
        {
            return;
        }
        if self.bucket.with_core(|core| core.only_searches()) {
            return self
                .sleep_unless_woken(backoff::before_search(&shared.entropy))
                .await;
        }
        let pause = backoff::retry(self.outages, shared.settings.time_budget, &shared.entropy);
        tokio::time::sleep(pause.short).await;
        if !self.bucket.with_core(|core| core.has_callers()) {
            self.sleep_unless_woken(pause.background).await;
        }
    }

    /// Sleeps until a caller waits for the bucket or the limiter is shut down.
    async fn sleep_unless_woken(&self, pause: Duration) {
        let end = Instant::now() + pause;
        while tokio::time::timeout_at(end, self.bucket.woken()).await.is_ok() {
            let asked = self.bucket.with_core(|core| core.has_callers());
            if asked || self.bucket.shared().is_draining() {
                return;
            }
        }
    }

    fn expire(&self, error: &Error) {
        let shared = self.bucket.shared();
        let older_than = shared.clock.elapsed().checked_sub(shared.settings.settle_budget);
        if let Some(older_than) = older_than {
            self.complete(|core| core.expire(older_than, error));
        }
    }

    fn complete(&self, act: impl FnOnce(&mut Core) -> Vec<Completion>) {
        let completions = self.bucket.with_core(act);
        self.bucket.complete(completions);
    }
}
