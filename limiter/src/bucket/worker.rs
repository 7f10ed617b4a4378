//! Carrying out what a queue's state decides, until nothing is left to do.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use zae_limiter_schema::bucket::{Attributes, BucketWrite};

use super::queue::BucketQueue;
use super::state::{Completion, QueueState, Step};
use super::write_pace::WritePace;
use crate::config::cache::BucketImage;
use crate::store::WriteOutcome;
use crate::{Error, Result};

const FIRST_OUTAGE_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_OUTAGE_PAUSE: Duration = Duration::from_secs(1);
/// Changes that nobody waits for pause at most this long between two attempts.
const LONGEST_BACKGROUND_PAUSE: Duration = Duration::from_secs(5);
/// When the table is back, buckets that nobody asks for come within this time, not all at once.
const RECOVERY_SPREAD: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// A write in doubt that nobody asks about is looked for after this time and up to as much again.
const PAUSE_BEFORE_LOOKING: Duration = Duration::from_millis(500);
/// A write without an answer is sent again at most this many times before its callers are told.
const RESENDS_WHEN_LOST: u32 = 1;

/// Works on a queue until its queue is empty and every write has been accounted for.
pub(crate) fn run(queue: Arc<BucketQueue>) -> impl Future<Output = ()> + Send + 'static {
    // Made before the first poll: a task that a runtime drops unpolled must give up the queue too.
    let mut worker = Worker {
        queue,
        outages: 0,
        waits_since: None,
        idle: false,
    };
    async move {
        while !worker.idle {
            worker.step().await;
        }
    }
}

struct Worker {
    queue: Arc<BucketQueue>,
    /// Calls without a usable answer in a row.
    outages: u32,
    /// Since when it waits for the circuit breaker, on the clock's time scale.
    waits_since: Option<Duration>,
    idle: bool,
}

/// A worker whose runtime is shut down leaves the queue to the next one.
impl Drop for Worker {
    fn drop(&mut self) {
        if !self.idle {
            self.queue.abandoned();
        }
    }
}

impl Worker {
    async fn step(&mut self) {
        if let Some(error) = self.queue.shared().breaker_error() {
            return self.wait_for_table(&error).await;
        }
        self.waits_since = None;
        let _permit = self.retry_permit().await;
        let (pause, refused) = self.queue.pause_before_write(self.queue.shared().moment());
        self.queue.finish(refused);
        if !pause.is_zero() && !self.queue.with_state(|state| state.is_idle()) {
            tokio::time::sleep(pause).await;
        }
        let (step, completions) = self.queue.next(self.queue.shared().moment());
        self.queue.finish(completions);
        match step {
            Step::Idle => self.idle = true,
            Step::Again => {}
            // Whoever asks ends the pause; otherwise tokens in hand go back then.
            Step::Later(pause) => drop(tokio::time::timeout(pause, self.queue.asked()).await),
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

    /// While the circuit breaker is open nothing is sent. Callers are told at once; changes wait for their settle
    /// budget, and so does the look for a write in doubt.
    async fn wait_for_table(&mut self, error: &Error) {
        let shared = self.queue.shared().clone();
        let now = shared.clock.elapsed();
        let since = *self.waits_since.get_or_insert(now);
        self.outages = self.outages.max(1);
        self.finish(|state| state.postpone(error));
        self.expire(error);
        if now.saturating_sub(since) >= shared.settings.settle_budget {
            self.queue.with_state(QueueState::rest);
        }
        if self.queue.stops() {
            self.idle = true;
            return;
        }
        tokio::select! {
            biased;
            () = shared.breaker_closes() => {
                // Whoever asks for the bucket does not wait, nor does a shutdown; all others do not come at once.
                if !shared.is_closing() {
                    self.sleep_unless_asked(shared.entropy.up_to(RECOVERY_SPREAD)).await;
                }
            }
            () = self.queue.asked() => {}
            () = tokio::time::sleep(shared.until_probe().max(SHORTEST_PAUSE)) => shared.probe_if_due().await,
        }
    }

    /// After a failure few buckets at a time are retried for nobody who waits, and few a second while the table fails. A
    /// shutdown waits for all of them.
    async fn retry_permit(&self) -> Option<OwnedSemaphorePermit> {
        if self.outages == 0 || self.goes_ahead() {
            return None;
        }
        let shared = self.queue.shared();
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
                () = self.queue.asked() => if self.goes_ahead() {
                    return None;
                },
            }
        }
    }

    /// True if somebody waits, a shutdown included, or there is nothing to send.
    fn goes_ahead(&self) -> bool {
        let wanted = |state: &mut QueueState| state.has_callers() || state.is_idle();
        self.queue.shared().is_closing() || self.queue.with_state(wanted)
    }

    async fn read(&self) -> Result<()> {
        let shared = self.queue.shared();
        let found = shared.store.read_bucket(self.queue.key(), true).await?;
        self.queue.reread(found.as_ref(), shared.moment())
    }

    async fn reload(&self) -> Result<()> {
        let (shared, key) = (self.queue.shared(), self.queue.key());
        let lookup = shared.cache.reload_consistent(&key.entity, &key.resource).await?;
        let config = shared.config(&lookup.configs, None);
        let found = match &lookup.bucket {
            BucketImage::Present(item) => Some(Attributes::from_item(item)),
            BucketImage::Absent | BucketImage::NotRead => None,
        };
        self.queue.reloaded(&config, found.as_ref(), shared.moment())
    }

    async fn after_reading(&mut self, result: Result<()>) {
        match result {
            Ok(()) => {
                self.queue.shared().responded();
                self.answered();
            }
            Err(error) if error.is_unavailable() => {
                self.queue.shared().no_read();
                if self.queue.with_state(QueueState::goes_on_unread) {
                    return;
                }
                self.finish(|state| state.unreadable(&error));
                self.queue.with_state(QueueState::rest);
                self.pause_for_outage(&error).await;
            }
            Err(error) => self.failed(&error).await,
        }
    }

    /// Sends a write until it is answered, or nobody waits for it any more.
    async fn send(&mut self, write: &BucketWrite) {
        let mut lost = 0;
        let started = self.queue.shared().clock.elapsed();
        loop {
            let shared = self.queue.shared().clone();
            let attempted = shared.clock.elapsed();
            self.queue.with_pace(WritePace::sent);
            let outcome = shared.store.send_write(write, shared.attempt_timeout()).await;
            let outcome = match outcome {
                WriteOutcome::NotSent(reason) if breaks!(shared.settings.mutation, RefusedIsInDoubt) => {
                    WriteOutcome::Lost(reason)
                }
                outcome => outcome,
            };
            shared.metrics.wrote(write, &outcome);
            match &outcome {
                WriteOutcome::Lost(reason) | WriteOutcome::NotSent(reason) => {
                    shared.no_response(Some(self.queue.key()), attempted, reason);
                }
                WriteOutcome::Throttled(reason)
                    if breaks!(shared.settings.mutation, ThrottlingOpensBreaker) =>
                {
                    shared.no_response(Some(self.queue.key()), attempted, reason);
                }
                _ => shared.responded(),
            }
            let (reason, again) = match outcome {
                WriteOutcome::Done(attributes) => return self.done(&attributes).await,
                WriteOutcome::Refused(attributes) => return self.refused(attributes.as_ref()).await,
                WriteOutcome::Failed(error) => return self.failed(&error).await,
                WriteOutcome::Lost(reason) => {
                    lost += 1;
                    let wanted = self.queue.with_state(|state| state.lost(shared.clock.elapsed()));
                    (reason, wanted && lost <= RESENDS_WHEN_LOST)
                }
                WriteOutcome::Throttled(reason) if self.combines_more(&shared.unavailable(&reason)) => {
                    return self.pause_for_outage(&shared.unavailable(&reason)).await;
                }
                WriteOutcome::NotSent(reason)
                | WriteOutcome::Throttled(reason)
                | WriteOutcome::Conflict(reason) => {
                    #[cfg(test)]
                    if breaks!(shared.settings.mutation, ConflictsAreRefusals) {
                        return self.finish(QueueState::refuse_current);
                    }
                    // After that whoever waited is gone; changes go back to the queue, where they expire.
                    let in_time =
                        shared.clock.elapsed().saturating_sub(started) < shared.settings.time_budget;
                    (
                        reason,
                        in_time && self.queue.with_state(|state| state.wants_resend()),
                    )
                }
            };
            if let Some(error) = shared.breaker_error() {
                return self.finish(|state| state.give_up_current(&error));
            }
            let error = shared.unavailable(&reason);
            if !again {
                self.finish(|state| state.give_up_current(&error));
                return self.pause_for_outage(&error).await;
            }
            self.pause_for_outage(&error).await;
            if !self.goes_ahead() {
                self.sleep_unless_asked(shared.until_retry()).await;
            }
            if !self.queue.with_state(|state| state.wants_resend()) {
                // Its callers have gone in the meantime.
                return self.finish(|state| state.give_up_current(&error));
            }
            shared.metrics.retried();
        }
    }

    async fn done(&mut self, attributes: &Attributes) {
        self.answered();
        match attributes.decode() {
            Ok(decoded) => {
                let moment = self.queue.shared().moment();
                self.finish(|state| state.done(decoded, moment));
            }
            Err(malformed) => {
                // It happened, and nobody can be told what is left: what was taken goes back once it can be read.
                let now = self.queue.shared().clock.elapsed();
                if !breaks!(self.queue.shared().settings.mutation, UnreadableIsForgotten) {
                    self.queue.with_state(|state| state.lost(now));
                }
                self.failed(&malformed.into()).await;
            }
        }
    }

    /// The answer is no transient failure. Acquires get the error; changes are tried again within their settle budget,
    /// unless the limiter is being shut down.
    async fn failed(&mut self, error: &Error) {
        if self.queue.shared().is_closing() {
            return self.finish(|state| state.failed(error));
        }
        self.finish(|state| state.postpone(error));
        self.queue.with_state(QueueState::rest);
        self.pause_for_outage(error).await;
    }

    async fn refused(&mut self, attributes: Option<&Attributes>) {
        self.answered();
        self.queue.with_pace(|pace, _| pace.refused());
        match attributes.map(Attributes::decode).transpose() {
            Ok(decoded) => {
                let moment = self.queue.shared().moment();
                self.queue
                    .shared()
                    .note_refill(self.queue.image().as_deref(), decoded.as_ref());
                self.finish(|state| state.refused(decoded, moment));
            }
            Err(malformed) => self.failed(&malformed.into()).await,
        }
    }

    fn answered(&mut self) {
        self.outages = 0;
        self.queue.with_pace(WritePace::answered);
    }

    /// The item was throttled: from now on each write carries more calls, those of the one that was turned away included,
    /// and tokens in hand cover more traffic. False if the write must be sent again as it is.
    fn combines_more(&mut self, error: &Error) -> bool {
        self.queue.with_pace(WritePace::throttled);
        self.queue.widen_chunks();
        let now = self.queue.shared().clock.elapsed();
        let Some(late) = self.queue.with_state(|state| state.throttled(now, error)) else {
            return false;
        };
        self.queue.finish(late);
        true
    }

    /// Gives up changes that have waited too long, and waits a little longer each time: not long for somebody who asks,
    /// longer for changes that nobody waits for.
    async fn pause_for_outage(&mut self, error: &Error) {
        let shared = self.queue.shared().clone();
        self.outages += 1;
        self.expire(error);
        if self.queue.with_state(|state| state.is_idle()) {
            return;
        }
        if self.queue.with_state(|state| state.has_only_doubt()) {
            // By then the circuit breaker knows whether it was this bucket alone.
            let pause = PAUSE_BEFORE_LOOKING + shared.entropy.up_to(PAUSE_BEFORE_LOOKING);
            return self.sleep_unless_asked(pause).await;
        }
        let most = FIRST_OUTAGE_PAUSE.saturating_mul(1 << self.outages.min(10));
        // Whoever comes at the end of the outage must not spend all its time in the pause.
        let short = most
            .min(LONGEST_OUTAGE_PAUSE)
            .min(shared.settings.time_budget / 4);
        tokio::time::sleep(shared.entropy.up_to(short)).await;
        let long = most.min(LONGEST_BACKGROUND_PAUSE).saturating_sub(short);
        if !self.queue.with_state(|state| state.has_callers()) {
            self.sleep_unless_asked(shared.entropy.up_to(long)).await;
        }
    }

    /// Sleeps until somebody wants tokens of the bucket or the limiter is shut down.
    async fn sleep_unless_asked(&self, pause: Duration) {
        let end = Instant::now() + pause;
        while tokio::time::timeout_at(end, self.queue.asked()).await.is_ok() {
            let asked = self.queue.with_state(|state| state.has_callers());
            if asked || self.queue.shared().is_closing() {
                return;
            }
        }
    }

    fn expire(&self, error: &Error) {
        let shared = self.queue.shared();
        let older_than = shared.clock.elapsed().checked_sub(shared.settings.settle_budget);
        if let Some(older_than) = older_than {
            self.finish(|state| state.expire(older_than, error));
        }
    }

    fn finish(&self, act: impl FnOnce(&mut QueueState) -> Vec<Completion>) {
        let completions = self.queue.with_state(act);
        self.queue.finish(completions);
    }
}
