//! One bucket as callers and its actor see it: the core behind a lock, and a way to wake the actor.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Attributes, BucketConfig, BucketKey, ClientTag, Decoded, Image};

use super::actor;
use super::amounts::{Amounts, amount_of};
use super::buckets::overloaded;
use super::core::request::{Outcome, Reply, Request, RequestKind, Taken};
use super::core::{Arrival, BucketCall, Completion, Core, CoreSettings, LastSeen, Now, Seen, Step};
use super::grant::Grant;
use super::origin::{Holdings, Origin};
use super::shared::Shared;
use super::wait_queue::{MAX_WAITING, WaitQueue};
use crate::{Error, Result};

/// At most this many calls wait for one bucket at a time.
const MAX_QUEUED: usize = 10_000;
/// With adjustments and refunds, at most this many requests.
const MAX_REQUESTS: usize = 20_000;
/// A caller restarts the actor of a runtime that has ended at most this many times.
const MAX_RESTARTS: usize = 3;

/// Everything that this process does to one bucket goes through its handle.
#[derive(Debug)]
pub(crate) struct BucketHandle {
    shared: Arc<Shared>,
    key: BucketKey,
    locked: Mutex<Locked>,
    waiters: Arc<WaitQueue>,
    /// Ends a pause of the actor.
    wake: Notify,
    /// The actor was dropped with its runtime.
    abandoned: Notify,
    /// Something was completed, or the actor has ended.
    progress: Notify,
    /// Permits were released.
    released: Notify,
}

#[derive(Debug)]
struct Locked {
    core: Core,
    /// A task carries out what the core decides.
    has_actor: bool,
}

/// The outcome of a call, now or later.
#[derive(Debug)]
pub(crate) enum Pending {
    /// It was decided from memory.
    Decided(Outcome<Grant>),
    /// The actor decides it.
    Queued(Arc<BucketHandle>, oneshot::Receiver<Outcome<Grant>>),
}

impl Pending {
    /// Waits for the outcome. If the runtime of the actor ends meanwhile, another one starts on the caller's. Nothing if
    /// no runtime is left.
    pub(crate) async fn outcome(self) -> Option<Outcome<Grant>> {
        let (bucket, mut outcome) = match self {
            Self::Decided(outcome) => return Some(outcome),
            Self::Queued(bucket, outcome) => (bucket, outcome),
        };
        for _ in 0..MAX_RESTARTS {
            let mut abandoned = pin!(bucket.abandoned.notified());
            abandoned.as_mut().enable();
            if bucket.is_left_undone() {
                bucket.start_actor();
            }
            tokio::select! {
                biased;
                outcome = &mut outcome => return outcome.ok(),
                () = abandoned => {}
            }
        }
        outcome.await.ok()
    }
}

impl BucketHandle {
    pub(crate) fn new(shared: Arc<Shared>, key: BucketKey) -> Self {
        let settings = CoreSettings {
            client: shared.client,
            refusal_cache_ttl: shared.settings.refusal_cache_ttl,
            // A little less than the caller waits, so that the error says why.
            patience: shared.settings.time_budget / 10 * 9,
            takes_chunks: shared.settings.chunks.allows(&key.resource),
            config_ttl: shared.cache.ttl(),
        };
        let core = Core::new(key.clone(), settings, shared.is_draining());
        Self {
            shared,
            key,
            locked: Mutex::new(Locked {
                core,
                has_actor: false,
            }),
            waiters: Arc::default(),
            wake: Notify::new(),
            abandoned: Notify::new(),
            progress: Notify::new(),
            released: Notify::new(),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn key(&self) -> &BucketKey {
        &self.key
    }

    /// The calls that wait for tokens of this bucket.
    pub(crate) fn waiters(&self) -> &Arc<WaitQueue> {
        &self.waiters
    }

    fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_locked<T>(&self, act: impl FnOnce(&mut Locked) -> T) -> T {
        let mut locked = self.lock();
        let before = locked.core.chunk_tokens();
        let result = act(&mut locked);
        let change = locked.core.chunk_tokens() - before;
        self.shared.counters().chunk_tokens_changed(change);
        result
    }

    pub(crate) fn with_core<T>(&self, act: impl FnOnce(&mut Core) -> T) -> T {
        self.with_locked(|locked| act(&mut locked.core))
    }

    /// Waits until a call of this process releases permits.
    pub(crate) async fn permits_released(&self) {
        self.released.notified().await;
    }

    /// True if forgetting it loses nothing but the image.
    pub(crate) fn can_be_forgotten(&self) -> bool {
        let nobody_waits = self.waiters.is_empty();
        let locked = self.lock();
        nobody_waits && !locked.has_actor && locked.core.can_be_forgotten()
    }

    /// The error for a call that finds the wait queue full.
    pub(crate) fn wait_queue_full(&self) -> Error {
        overloaded(&self.key, "calls waiting for tokens of this bucket", MAX_WAITING)
    }

    /// True if there is something to do and no actor: its runtime ended, or it panicked.
    pub(crate) fn is_left_undone(&self) -> bool {
        let locked = self.lock();
        !locked.has_actor && !locked.core.is_idle()
    }

    /// The last image, however old.
    pub(crate) fn image(&self) -> Option<Arc<Image>> {
        self.lock().core.image().cloned()
    }

    /// True if the bucket was never read.
    pub(crate) fn knows_nothing(&self) -> bool {
        self.lock().core.knows_nothing()
    }

    /// The bucket as it was read along with the configuration.
    pub(crate) fn read_along(&self, found: Option<&Attributes>) -> Result<()> {
        let now = self.shared.read_clock();
        let seen = decode(found, false, now)?;
        self.with_core(|core| core.read_along(seen, now));
        Ok(())
    }

    /// Takes what a call wants: from memory if that can decide, otherwise with the next write.
    pub(crate) fn acquire(self: &Arc<Self>, call: BucketCall) -> Result<Pending> {
        let (amounts, config) = (call.amounts.clone(), call.config.clone());
        let now = self.shared.read_clock();
        let arrived = self.with_locked(|locked| {
            if locked.core.waiting() >= MAX_QUEUED {
                return None;
            }
            Some(locked.core.call_arrived(call, !locked.has_actor, now))
        });
        let Some(arrived) = arrived else {
            return Err(overloaded(&self.key, "calls waiting for this bucket", MAX_QUEUED));
        };
        let pending = match arrived {
            Arrival::Granted(image) => {
                self.shared.counters().spent_from_chunk();
                let grant = Grant::new(self.clone(), config, amounts, from_chunk(image));
                Pending::Decided(Outcome::Granted(grant))
            }
            Arrival::Refused(statuses) => Pending::Decided(Outcome::Refused(statuses)),
            Arrival::Queued(outcome) => Pending::Queued(self.clone(), outcome),
        };
        self.start_or_wake_actor();
        Ok(pending)
    }

    /// Takes what a call wants from tokens taken ahead, if they cover it.
    pub(crate) fn spend_chunk(
        self: &Arc<Self>,
        amounts: &Amounts,
        config: &Arc<BucketConfig>,
    ) -> Option<Grant> {
        let now = self.shared.read_clock();
        let image = self.with_core(|core| core.spend_chunk(amounts, config, now));
        self.start_or_wake_actor();
        let image = image?;
        self.shared.counters().spent_from_chunk();
        Some(Grant::new(
            self.clone(),
            config.clone(),
            amounts.clone(),
            from_chunk(image),
        ))
    }

    /// Queues a change that must be written. What was taken under another tag than the present one is not given back: a copy
    /// of this process has taken the same, and may give it back too. That is reported.
    pub(crate) fn adjust(
        self: &Arc<Self>,
        mut changes: Amounts,
        origin: Origin,
        taken_by: ClientTag,
    ) -> oneshot::Receiver<Result<()>> {
        let (done, written) = oneshot::channel();
        let elapsed = self.shared.clock.elapsed();
        let copied = self.with_core(|core| (core.client() != taken_by).then(|| core.outcome_unknown()));
        if let Some(error) = copied {
            // Permits that a copy may release, too, are left to expire.
            for (limit, lot) in origin.lots() {
                lot.leave(-amount_of(&changes, limit));
            }
            let (given_back, used): (Amounts, Amounts) =
                changes.into_iter().partition(|(_, change)| *change < 0);
            changes = used;
            self.unwritten(&given_back, "a copy of this process may have written it", true);
            if changes.is_empty() {
                drop(done.send(Err(error)));
                return written;
            }
        }
        let full = self.with_core(|core| {
            if origin.holdings.is_empty() && core.absorbs(&changes, &origin.incarnation, elapsed) {
                drop(done.send(Ok(())));
                return None;
            }
            if core.waiting() >= MAX_REQUESTS {
                for (limit, lot) in origin.lots() {
                    lot.leave(-amount_of(&changes, limit));
                }
                return Some((done, changes));
            }
            core.change_arrived(changes, origin, done, elapsed);
            None
        });
        if let Some((done, changes)) = full {
            let error = overloaded(
                &self.key,
                "calls and changes waiting for this bucket",
                MAX_REQUESTS,
            );
            self.unwritten(&changes, &error.to_string(), false);
            drop(done.send(Err(error)));
            return written;
        }
        self.start_or_wake_actor();
        written
    }

    /// Books what was taken from the bucket, or given back to it, on this process's fraction of the limits too, if it has one.
    pub(crate) fn book_locally(&self, config: &BucketConfig, changes: &Amounts) {
        if let Some(fraction) = &self.shared.fraction {
            let elapsed = self.shared.clock.elapsed();
            let now = (elapsed, self.shared.now());
            fraction.book_counted(&self.key, config.limits(), changes, now);
        }
    }

    /// Starts the actor if there is something to do; wakes a running one.
    fn start_or_wake_actor(self: &Arc<Self>) {
        let starts = {
            let mut locked = self.lock();
            if locked.has_actor {
                None
            } else {
                locked.has_actor = !locked.core.is_idle();
                Some(locked.has_actor)
            }
        };
        match starts {
            Some(true) => self.shared.spawn(actor::run(self.clone())),
            Some(false) => {}
            None => self.wake(),
        }
    }

    /// Starts an actor unless there is one.
    pub(crate) fn start_actor(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.lock().has_actor, true) {
            self.shared.spawn(actor::run(self.clone()));
        }
    }

    /// Ends a pause of the actor.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until something has arrived since the last wait.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// The next step. After [`Step::Idle`] the actor ends.
    pub(crate) fn next(&self, now: Now) -> (Step, Vec<Completion>) {
        let (step, completions) = self.with_locked(|locked| {
            let (step, completions) = locked.core.next(now);
            locked.has_actor = !matches!(step, Step::Idle);
            (step, completions)
        });
        self.progress.notify_waiters();
        (step, completions)
    }

    /// True if there is nothing to do: the actor ends.
    pub(crate) fn ends_actor(&self) -> bool {
        let ends = {
            let mut locked = self.lock();
            locked.has_actor = !locked.core.is_idle();
            !locked.has_actor
        };
        self.progress.notify_waiters();
        ends
    }

    /// The number of the last request that arrived.
    pub(crate) fn last_request(&self) -> u64 {
        self.lock().core.last_request()
    }

    pub(crate) fn has_nothing_to_do(&self) -> bool {
        self.lock().core.has_nothing_to_do()
    }

    /// Waits until the requests up to this one are completed and, unless more have arrived, nothing is left to do.
    pub(crate) async fn settled(self: &Arc<Self>, last: u64) {
        let mut restarts = 0;
        loop {
            let mut progress = pin!(self.progress.notified());
            progress.as_mut().enable();
            if self.lock().core.is_settled(last) {
                return;
            }
            if self.is_left_undone() {
                if restarts == MAX_RESTARTS {
                    let error = self.shared.unavailable("the task of this bucket ends each time");
                    return self.give_up(&error);
                }
                restarts += 1;
                self.start_actor();
            }
            progress.await;
        }
    }

    /// The actor is gone, perhaps with a write in flight.
    pub(crate) fn abandon(self: &Arc<Self>) {
        let now = self.shared.read_clock();
        let completions = self.with_locked(|locked| {
            locked.has_actor = false;
            locked.core.interrupted(now)
        });
        self.complete(completions);
        self.abandoned.notify_waiters();
        self.progress.notify_waiters();
    }

    /// The bucket was read, consistently.
    pub(crate) fn reread(self: &Arc<Self>, found: Option<&Attributes>) -> Result<()> {
        let now = self.shared.read_clock();
        let seen = decode(found, true, now)?;
        self.complete(self.with_core(|core| core.reread(&seen, now)));
        Ok(())
    }

    /// The configuration and the bucket were read, consistently.
    pub(crate) fn reloaded(
        self: &Arc<Self>,
        config: &Arc<BucketConfig>,
        found: Option<&Attributes>,
    ) -> Result<()> {
        let now = self.shared.read_clock();
        let seen = decode(found, true, now)?;
        self.complete(self.with_core(|core| core.reloaded(config, &seen, now)));
        Ok(())
    }

    /// The limiter is shutting down: tokens taken ahead go back, or are reported if the table is unavailable.
    pub(crate) fn close(self: &Arc<Self>) {
        let outage = self.shared.breaker_error();
        let elapsed = self.shared.clock.elapsed();
        let left = self.with_core(|core| {
            core.search_again();
            core.close(outage.is_none(), elapsed)
        });
        if let (Some(changes), Some(error)) = (left, outage) {
            self.unwritten(&changes, &error.to_string(), false);
        }
        self.start_or_wake_actor();
    }

    /// Gives up what waits; it is reported.
    pub(crate) fn give_up(self: &Arc<Self>, error: &Error) {
        self.complete(self.with_core(|core| core.failed(error)));
        self.wake();
    }

    /// True if there is a change that is not written yet.
    pub(crate) fn has_changes(&self) -> bool {
        self.lock().core.has_changes()
    }

    /// Stops searching for unconfirmed writes if there is nothing else to do.
    pub(crate) fn stop_searching(&self) {
        self.with_core(Core::stop_searching);
        self.wake();
    }

    /// How long the next write waits for more calls to carry.
    pub(crate) fn pause_before_write(self: &Arc<Self>) -> Duration {
        let now = self.shared.read_clock();
        let (pause, refused) = self.with_core(|core| core.pause_before_write(now));
        self.complete(refused);
        pause
    }

    /// Sends callers the outcomes of their calls. Not under the lock: a grant that nobody takes goes back into the queue.
    pub(crate) fn complete(self: &Arc<Self>, completions: Vec<Completion>) {
        for completion in completions {
            match completion {
                Completion::Decided(request, outcome) => self.decided(request, outcome),
                Completion::Written(request) => {
                    if request.ends_holdings() {
                        self.released.notify_waiters();
                    }
                    let lost = self.without_a_limit(request.changes());
                    self.unwritten(&lost, "the bucket no longer has this limit", false);
                    report(request, Ok(()));
                }
                Completion::Postponed(done, error) => drop(done.send(Err(error))),
                Completion::Unwritten(request, error) => {
                    request.ends_holdings();
                    self.unwritten(request.changes(), &error.to_string(), request.maybe_written);
                    report(request, Err(error));
                }
                Completion::Gone(request) => {
                    request.ends_holdings();
                    let reason = "the bucket no longer exists";
                    self.unwritten(request.changes(), reason, request.maybe_written);
                    report(request, Ok(()));
                }
            }
        }
    }

    fn unwritten(&self, changes: &[(LimitName, i128)], reason: &str, maybe_written: bool) {
        self.shared.unwritten(&self.key, changes, reason, maybe_written);
    }

    /// Of changes that were just written those whose limit is not on the bucket, so that nothing was written.
    fn without_a_limit(&self, changes: &[(LimitName, i128)]) -> Amounts {
        let Some(image) = self.image() else {
            return Amounts::new();
        };
        let lost = changes.iter().filter(|(limit, _)| !image.has_limit(limit));
        lost.cloned().collect()
    }

    fn decided(self: &Arc<Self>, request: Request, outcome: Outcome<Taken>) {
        let calls = request.calls;
        let RequestKind::Acquire {
            amounts,
            config,
            reply,
            ..
        } = request.kind
        else {
            return;
        };
        let elapsed = self.shared.clock.elapsed();
        let caller = match reply {
            Reply::Caller(caller) => caller,
            Reply::Chunk => {
                self.with_core(|core| core.chunk_decided(calls, amounts, config, outcome, elapsed));
                return self.start_or_wake_actor();
            }
        };
        let outcome = match outcome {
            Outcome::Granted(taken) => Outcome::Granted(Grant::new(self.clone(), config, amounts, taken)),
            Outcome::Refused(statuses) => {
                self.with_core(|core| core.return_chunk_after_refusal(elapsed));
                Outcome::Refused(statuses)
            }
            Outcome::Failed(error) => Outcome::Failed(error),
        };
        // A caller that has gone meanwhile drops a grant here, which returns it.
        drop(caller.send(outcome));
    }
}

fn decode(found: Option<&Attributes>, consistent: bool, now: Now) -> Result<LastSeen> {
    let seen = Seen {
        at: now.elapsed,
        consistent,
    };
    Ok(match found.map(Attributes::decode).transpose()? {
        Some(Decoded::Bucket(image)) => LastSeen::Live(Arc::new(image), seen),
        Some(Decoded::Stub) | None => LastSeen::Absent(seen),
    })
}

/// Tokens that were taken ahead: all of them are of rates.
fn from_chunk(image: Arc<Image>) -> Taken {
    Taken {
        image,
        holdings: Holdings::new(),
    }
}

fn report(request: Request, result: Result<(), Error>) {
    if let RequestKind::Adjust { done: Some(done), .. } = request.kind {
        // The caller may have stopped waiting.
        drop(done.send(result));
    }
}

#[cfg(test)]
mod tests;
