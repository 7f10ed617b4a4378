//! The queue of one bucket.

mod answer;
mod at_once;
mod completions;
mod idle;
mod steps;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Attributes, BucketConfig, BucketKey, ClientTag, Decoded, Image};

use super::buckets;
use super::chunk::Chunks;
use super::deltas::Deltas;
use super::inline_worker::{InlineWorker, Work, WorkerId};
use super::request::{Outcome, Reply, RequestKind};
use super::shared::Shared;
use super::state::{LastSeen, QueueState, Sighting};
use super::wait_queue::{MAX_WAITING, WaitQueue};
use super::worker;
use super::write_pace::WritePace;
use crate::{Error, Result};

pub(crate) use answer::Answer;
pub(crate) use at_once::AtOnce;

/// At most this many calls wait for one bucket at a time.
const MAX_QUEUED: usize = 10_000;
/// With adjustments and refunds, at most this many requests.
const MAX_REQUESTS: usize = 20_000;

/// Everything this process does to one bucket goes through its queue: one write in flight, in order of arrival.
#[derive(Debug)]
pub(crate) struct BucketQueue {
    shared: Arc<Shared>,
    key: BucketKey,
    /// Tokens may be in hand, so that memory can admit a call.
    pub(super) takes_chunks: bool,
    locked: Mutex<Locked>,
    waiters: Arc<WaitQueue>,
    asked: tokio::sync::Notify,
    /// Whoever worked on it is gone.
    abandoned: tokio::sync::Notify,
    inline_worker: InlineWorker,
}

/// Who works on a bucket that nobody works on yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// The caller, while it waits for the answer.
    Caller,
    /// A task: nobody waits, or waits for another bucket first.
    Task,
}

#[derive(Debug)]
pub(super) struct Locked {
    pub(super) state: QueueState,
    /// Tokens in hand, where they are allowed.
    pub(super) chunks: Option<Chunks>,
    pub(super) pace: WritePace,
    /// A task or a caller is at work on this queue.
    pub(super) has_worker: bool,
    /// Something was booked since the bucket's expiry was last checked.
    booked: bool,
}

impl BucketQueue {
    pub(crate) fn new(shared: Arc<Shared>, key: BucketKey, client: ClientTag) -> Self {
        let settings = &shared.settings;
        // A little less than the caller waits, so that the answer says why.
        let patience = settings.time_budget / 10 * 9;
        #[cfg_attr(not(test), expect(unused_mut, reason = "only tests break the rules"))]
        let mut state = QueueState::new(key.clone(), client, settings.memory, patience);
        let takes_chunks = shared.settings.chunks.allows(&key.resource);
        #[cfg_attr(not(test), expect(unused_mut, reason = "only tests break the rules"))]
        let mut chunks = takes_chunks.then(Chunks::new);
        #[cfg(test)]
        {
            state.mutation = shared.settings.mutation;
            if let Some(chunks) = &mut chunks {
                chunks.mutation = shared.settings.mutation;
            }
        }
        let locked = Locked {
            state,
            chunks,
            pace: WritePace::default(),
            has_worker: false,
            booked: false,
        };
        Self {
            shared,
            key,
            takes_chunks,
            locked: Mutex::new(locked),
            waiters: Arc::default(),
            asked: tokio::sync::Notify::new(),
            abandoned: tokio::sync::Notify::new(),
            inline_worker: InlineWorker::default(),
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

    pub(super) fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if forgetting it loses nothing but the image.
    pub(crate) fn is_idle(&self) -> bool {
        let nobody_waits = self.waiters.is_empty();
        let locked = self.lock();
        nobody_waits && !locked.has_worker && locked.is_idle()
    }

    /// The error for a call that finds the wait queue full.
    pub(crate) fn wait_queue_full(&self) -> Error {
        buckets::overloaded(&self.key, "calls waiting for tokens of this bucket", MAX_WAITING)
    }

    /// True if there is something to do and nobody does it: the task that did was dropped with its runtime, or panicked.
    pub(crate) fn is_left_undone(&self) -> bool {
        let locked = self.lock();
        !locked.has_worker && !locked.is_idle()
    }

    /// True if calls or changes wait in the queue and nobody works on it.
    pub(crate) fn has_waiting(&self) -> bool {
        let locked = self.lock();
        !locked.has_worker && locked.state.waiting() > 0
    }

    /// The last image, however old.
    pub(crate) fn image(&self) -> Option<Arc<Image>> {
        self.lock().state.image().cloned()
    }

    /// True if the bucket was never looked at.
    pub(crate) fn knows_nothing(&self) -> bool {
        self.lock().state.knows_nothing()
    }

    /// The bucket as it was read along with the configuration.
    pub(crate) fn saw(&self, found: Option<&Attributes>, proven: bool) -> Result<()> {
        let known = self.known(found, proven)?;
        self.lock().state.saw(known);
        Ok(())
    }

    fn known(&self, found: Option<&Attributes>, proven: bool) -> Result<LastSeen> {
        let sighting = Sighting {
            at: self.shared.clock.elapsed(),
            proven,
        };
        Ok(match found.map(Attributes::decode).transpose()? {
            Some(Decoded::Bucket(image)) => LastSeen::Live(Arc::new(image), sighting),
            Some(Decoded::Stub) | None => LastSeen::Absent(sighting),
        })
    }

    /// Queues an acquire.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        amounts: Deltas,
        config: Arc<BucketConfig>,
        given: bool,
        anew: bool,
        driver: Driver,
    ) -> Result<Answer> {
        let (reply, outcome) = oneshot::channel();
        if let Some(grant) = (!given).then(|| self.spend_now(&amounts, &config)).flatten() {
            // A caller that has gone meanwhile drops the grant, which gives it back.
            drop(reply.send(Outcome::Granted(grant)));
            return Ok(Answer {
                queue: self.clone(),
                outcome,
                drives: None,
            });
        }
        if self.lock().state.waiting() >= MAX_QUEUED {
            return Err(buckets::overloaded(
                &self.key,
                "calls waiting for this bucket",
                MAX_QUEUED,
            ));
        }
        let request = RequestKind::Acquire {
            amounts,
            config,
            given,
            anew,
            reply: Reply::Caller(reply),
        };
        Ok(Answer {
            queue: self.clone(),
            outcome,
            drives: self.push(request, driver),
        })
    }

    /// Queues a change that must be booked.
    pub(crate) fn adjust(
        self: &Arc<Self>,
        changes: Deltas,
        incarnation: Arc<str>,
    ) -> oneshot::Receiver<Result<()>> {
        let (done, answer) = oneshot::channel();
        if self.settle(&changes, &incarnation) {
            drop(done.send(Ok(())));
            return answer;
        }
        if self.lock().state.waiting() >= MAX_REQUESTS {
            let error = buckets::overloaded(
                &self.key,
                "calls and changes waiting for this bucket",
                MAX_REQUESTS,
            );
            self.unwritten(&changes, &error.to_string(), false);
            drop(done.send(Err(error)));
            return answer;
        }
        let request = RequestKind::Adjust {
            changes,
            incarnation,
            done: Some(done),
        };
        self.push(request, Driver::Task);
        answer
    }

    /// Queues a request. Returns the worker that its caller has to drive, if any.
    fn push(self: &Arc<Self>, request: RequestKind, driver: Driver) -> Option<WorkerId> {
        let elapsed = self.shared.clock.elapsed();
        let mut locked = self.lock();
        locked.state.push(request, elapsed);
        if std::mem::replace(&mut locked.has_worker, true) {
            drop(locked);
            self.asked.notify_one();
            self.detach();
            return None;
        }
        let caller = (driver == Driver::Caller)
            .then(|| self.shared.caller_runtime())
            .flatten();
        let Some(runtime) = caller else {
            drop(locked);
            self.shared.spawn(worker::run(self.clone()));
            return None;
        };
        // Parked before anybody else can see that there is a worker: whoever needs the bucket must find it.
        let work = self.shared.counted(worker::run(self.clone()));
        Some(self.inline_worker.park(Work::after_others(work, runtime)))
    }

    /// Makes sure that a task works on it.
    pub(crate) fn work(self: &Arc<Self>) {
        if std::mem::replace(&mut self.lock().has_worker, true) {
            self.detach();
        } else {
            self.shared.spawn(worker::run(self.clone()));
        }
    }

    /// A worker that its caller drives becomes a task: somebody else needs the bucket, or the caller has gone.
    pub(crate) fn detach(&self) {
        if let Some(work) = self.inline_worker.take() {
            work.into_task();
        }
    }

    /// Polls the worker for its caller. Ready once the caller has nothing to drive any more.
    fn poll_worker(&self, worker_id: WorkerId, context: &mut Context<'_>) -> Poll<()> {
        self.inline_worker.poll(worker_id, context, Work::into_task)
    }

    /// Gives up what waits; it is reported.
    pub(crate) fn give_up(self: &Arc<Self>, error: &Error) {
        self.finish(self.with_state(|state| state.failed(error)));
        self.hurry();
    }

    /// Ends a pause of whoever works on it.
    pub(crate) fn hurry(self: &Arc<Self>) {
        self.asked.notify_one();
    }

    /// Looks for writes in doubt once more.
    pub(crate) fn look_again(self: &Arc<Self>) {
        self.with_state(QueueState::look_again);
        self.hurry();
    }

    /// True if there is a change that is not booked yet.
    pub(crate) fn has_changes(&self) -> bool {
        self.lock().state.has_changes()
    }

    /// Stops looking for writes in doubt if there is nothing else to do.
    pub(crate) fn rest(self: &Arc<Self>) {
        self.with_state(QueueState::rest);
        self.hurry();
    }
}

impl Locked {
    fn is_idle(&self) -> bool {
        self.state.is_idle() && !self.chunks.as_ref().is_some_and(Chunks::is_held)
    }
}
