//! The queue of one bucket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Attributes, BucketConfig, BucketKey, ClientTag, Decoded, Image};

use super::buckets;
use super::chunk::Chunks;
use super::grant::Grant;
use super::pace::Pace;
use super::request::{Deltas, Outcome, Reply, Request, RequestKind};
use super::shared::Shared;
use super::state::{BucketState, Completion, LastSeen, Moment, Sighting, Step};
use super::wait_queue::{MAX_WAITING, WaitQueue};
use super::worker;
use crate::{Error, Result};

/// At most this many calls wait for one bucket at a time.
const MOST_WAITING: usize = 10_000;
/// Beside them this many adjustments and refunds.
const MOST_CHANGES: usize = 10_000;
/// A caller takes up the work of runtimes that have ended at most this many times.
const MAX_TAKEOVERS: usize = 3;

/// Everything this process does to one bucket goes through its queue: one write in flight, in order of arrival.
#[derive(Debug)]
pub(crate) struct BucketQueue {
    shared: Arc<Shared>,
    key: BucketKey,
    locked: Mutex<Locked>,
    line: Arc<WaitQueue>,
    asked: tokio::sync::Notify,
    /// The task that worked on it is gone.
    abandoned: tokio::sync::Notify,
}

/// The answer to an acquire, which is still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    queue: Arc<BucketQueue>,
    outcome: oneshot::Receiver<Outcome<Grant>>,
}

impl Answer {
    /// Waits for it. If the runtime of whoever works on the queue ends meanwhile, the work goes on on the caller's.
    pub(crate) async fn outcome(mut self) -> Option<Outcome<Grant>> {
        for _ in 0..MAX_TAKEOVERS {
            let abandoned = self.queue.abandoned.notified();
            tokio::pin!(abandoned);
            abandoned.as_mut().enable();
            if self.queue.has_waiting() {
                self.queue.work();
            }
            tokio::select! {
                biased;
                outcome = &mut self.outcome => return outcome.ok(),
                () = abandoned => {}
            }
        }
        self.outcome.await.ok()
    }
}

#[derive(Debug)]
pub(super) struct Locked {
    pub(super) state: BucketState,
    /// Tokens in hand, where they are allowed.
    pub(super) chunks: Option<Chunks>,
    pub(super) pace: Pace,
    /// A task is at work on this queue.
    pub(super) has_worker: bool,
    /// Something was booked since the bucket's life was looked at last.
    booked: bool,
}

impl BucketQueue {
    pub(crate) fn new(shared: Arc<Shared>, key: BucketKey, client: ClientTag) -> Self {
        let settings = &shared.settings;
        // A little less than the caller waits, so that the answer says why.
        let patience = settings.time_budget / 10 * 9;
        #[cfg_attr(not(test), expect(unused_mut, reason = "only tests break the rules"))]
        let mut state = BucketState::new(key.clone(), client, settings.memory, patience);
        let allowed = shared.settings.chunks.allows(&key.resource);
        #[cfg_attr(not(test), expect(unused_mut, reason = "only tests break the rules"))]
        let mut chunks = allowed.then(Chunks::new);
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
            pace: Pace::default(),
            has_worker: false,
            booked: false,
        };
        Self {
            shared,
            key,
            locked: Mutex::new(locked),
            line: Arc::default(),
            asked: tokio::sync::Notify::new(),
            abandoned: tokio::sync::Notify::new(),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn key(&self) -> &BucketKey {
        &self.key
    }

    /// Those who wait for tokens of this bucket.
    pub(crate) fn line(&self) -> &Arc<WaitQueue> {
        &self.line
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if forgetting it loses nothing but the image.
    pub(crate) fn is_idle(&self) -> bool {
        let nobody_waits = self.line.is_empty();
        let locked = self.lock();
        nobody_waits && !locked.has_worker && locked.is_idle()
    }

    /// The error for one who finds the line full.
    pub(crate) fn wait_queue_full(&self) -> Error {
        buckets::overloaded(&self.key, "calls waiting for tokens of this bucket", MAX_WAITING)
    }

    /// True if there is something to do and nobody does it: the task that did was dropped with its runtime, or broke.
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

    /// What reading the configuration brought along about the bucket.
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
    ) -> Result<Answer> {
        let (reply, outcome) = oneshot::channel();
        if let Some(grant) = (!given).then(|| self.spend(&amounts, &config)).flatten() {
            // A caller that has gone meanwhile drops the grant, which gives it back.
            drop(reply.send(Outcome::Granted(grant)));
            return Ok(Answer {
                queue: self.clone(),
                outcome,
            });
        }
        if self.lock().state.waiting() >= MOST_WAITING {
            return Err(buckets::overloaded(
                &self.key,
                "calls waiting for this bucket",
                MOST_WAITING,
            ));
        }
        self.push(RequestKind::Acquire {
            amounts,
            config,
            given,
            anew,
            reply: Reply::Caller(reply),
        });
        Ok(Answer {
            queue: self.clone(),
            outcome,
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
        if self.lock().state.waiting() >= MOST_WAITING + MOST_CHANGES {
            let error = buckets::overloaded(&self.key, "changes waiting for this bucket", MOST_CHANGES);
            self.unwritten(&changes, &error.to_string(), false);
            drop(done.send(Err(error)));
            return answer;
        }
        self.push(RequestKind::Adjust {
            changes,
            incarnation,
            done: Some(done),
        });
        answer
    }

    fn push(self: &Arc<Self>, work: RequestKind) {
        let elapsed = self.shared.clock.elapsed();
        self.lock().state.push(work, elapsed);
        self.asked.notify_one();
        self.work();
    }

    /// Sees to it that somebody works on it.
    pub(crate) fn work(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.lock().has_worker, true) {
            self.shared.spawn(worker::run(self.clone()));
        }
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
        self.with_state(BucketState::look_again);
        self.hurry();
    }

    /// True if there is a change that is not booked yet.
    pub(crate) fn has_changes(&self) -> bool {
        self.lock().state.has_changes()
    }

    /// Stops looking for writes in doubt if there is nothing else to do.
    pub(crate) fn rest(self: &Arc<Self>) {
        self.with_state(BucketState::rest);
        self.hurry();
    }

    // What the worker calls.

    /// Somebody has asked for the bucket since this was last waited for.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// How long the next write waits for more calls to carry. Calls that need no write for their refusal do not wait.
    pub(crate) fn pause_before_write(&self, moment: Moment) -> (Duration, Vec<Completion>) {
        let mut locked = self.lock();
        let pause = locked.pace.wait(moment.elapsed);
        if pause.is_zero() {
            return (pause, Vec::new());
        }
        let refused = locked.state.refuse_hopeless(moment);
        (pause, refused)
    }

    pub(crate) fn with_pace(&self, act: impl FnOnce(&mut Pace, Duration)) {
        let now = self.shared.clock.elapsed();
        act(&mut self.lock().pace, now);
    }

    /// The next step. After [`Step::Idle`] nobody drives the queue any more.
    pub(crate) fn next(&self, moment: Moment) -> (Step, Vec<Completion>) {
        let mut locked = self.lock();
        self.tend(&mut locked, moment);
        let (mut step, mut completions) = locked.state.next(moment);
        if matches!(step, Step::Idle) && locked.owes_a_longer_life(moment) {
            // A write that carries nothing lets the bucket live until it is full.
            let nothing = RequestKind::Adjust {
                changes: Vec::new(),
                incarnation: "".into(),
                done: None,
            };
            locked.state.push_counting(nothing, 0, moment.elapsed);
            let (next, more) = locked.state.next(moment);
            step = next;
            completions.extend(more);
        }
        if matches!(step, Step::Idle) {
            match locked.chunks.as_ref().and_then(Chunks::idle_at) {
                Some(idle_at) => step = Step::Later(idle_at.saturating_sub(moment.elapsed)),
                None => locked.has_worker = false,
            }
        }
        (step, completions)
    }

    /// True if there is nothing to do: nobody works on the queue any more.
    pub(crate) fn stops(&self) -> bool {
        let mut locked = self.lock();
        let idle = locked.is_idle();
        if idle {
            locked.has_worker = false;
        }
        idle
    }

    /// The task that worked on it is gone, perhaps with a write under way.
    pub(crate) fn abandoned(self: &Arc<Self>) {
        let completions = {
            let mut locked = self.lock();
            locked.has_worker = false;
            locked.state.interrupted(self.shared.clock.elapsed())
        };
        self.finish(completions);
        self.abandoned.notify_waiters();
    }

    pub(crate) fn with_state<T>(&self, act: impl FnOnce(&mut BucketState) -> T) -> T {
        act(&mut self.lock().state)
    }

    pub(crate) fn reread(self: &Arc<Self>, found: Option<&Attributes>, moment: Moment) -> Result<()> {
        let known = self.known(found, true)?;
        self.finish(self.with_state(|state| state.reread(&known, moment)));
        Ok(())
    }

    pub(crate) fn reloaded(
        self: &Arc<Self>,
        config: &Arc<BucketConfig>,
        found: Option<&Attributes>,
        moment: Moment,
    ) -> Result<()> {
        let known = self.known(found, true)?;
        self.finish(self.with_state(|state| state.reloaded(config, &known, moment)));
        Ok(())
    }

    /// Tells callers what became of their calls. Not under the lock: a grant that nobody takes goes back into the
    /// queue.
    pub(crate) fn finish(self: &Arc<Self>, completions: Vec<Completion>) {
        for completion in completions {
            match completion {
                Completion::Answer(request, reply) => self.answer(request, reply),
                Completion::Booked(request) => {
                    let lost = self.without_a_limit(changes(&request));
                    self.unwritten(&lost, "the bucket no longer has this limit", false);
                    self.lock().booked |= !changes(&request).is_empty();
                    booked(request, Ok(()));
                }
                Completion::Postponed(done, error) => drop(done.send(Err(error))),
                Completion::Unwritten(request, error) => {
                    self.unwritten(changes(&request), &error.to_string(), request.in_doubt);
                    booked(request, Err(error));
                }
                Completion::Gone(request) => {
                    self.unwritten(changes(&request), "the bucket no longer exists", request.in_doubt);
                    booked(request, Ok(()));
                }
            }
        }
    }

    pub(super) fn unwritten(&self, changes: &[(LimitName, i128)], reason: &str, in_doubt: bool) {
        self.shared.unwritten(&self.key, changes, reason, in_doubt);
    }

    /// Of changes that were just booked those whose limit is not on the bucket, so that nothing was booked on it.
    fn without_a_limit(&self, changes: &[(LimitName, i128)]) -> Deltas {
        let Some(image) = self.image() else {
            return Deltas::new();
        };
        let lost = changes
            .iter()
            .filter(|(limit, _)| !image.limits.contains_key(limit));
        lost.cloned().collect()
    }

    fn answer(self: &Arc<Self>, request: Request, reply: Outcome<Arc<Image>>) {
        let RequestKind::Acquire {
            amounts,
            config,
            reply: to,
            ..
        } = request.work
        else {
            return;
        };
        let caller = match to {
            Reply::Caller(caller) => caller,
            Reply::Chunk => return self.chunk_answered(request.calls, amounts, config, reply),
        };
        if matches!(reply, Outcome::Refused(_)) {
            self.chunk_short();
        }
        let answer = match reply {
            Outcome::Granted(image) => Outcome::Granted(Grant::new(self.clone(), amounts, image)),
            Outcome::Refused(statuses) => Outcome::Refused(statuses),
            Outcome::Failed(error) => Outcome::Failed(error),
        };
        // A caller that has gone meanwhile drops a grant here, which gives it back.
        drop(caller.send(answer));
    }
}

impl Locked {
    fn is_idle(&self) -> bool {
        self.state.is_idle() && !self.chunks.as_ref().is_some_and(Chunks::is_held)
    }

    /// True, once, if what was booked last makes debt beyond the bucket's life. A write reckons with the image that it
    /// was made from; only the bucket afterwards shows what others have taken meanwhile.
    fn owes_a_longer_life(&mut self, moment: Moment) -> bool {
        let booked = std::mem::take(&mut self.booked);
        booked
            && self
                .state
                .image()
                .is_some_and(|image| image.expires_before_full(moment.now))
    }
}

fn changes(request: &Request) -> &[(LimitName, i128)] {
    match &request.work {
        RequestKind::Adjust { changes, .. } => changes,
        RequestKind::Acquire { .. } => &[],
    }
}

fn booked(request: Request, result: Result<(), Error>) {
    if let RequestKind::Adjust { done: Some(done), .. } = request.work {
        // Nobody needs to wait for it.
        drop(done.send(result));
    }
}
