//! The queue of one bucket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Attributes, BucketKey, ClientId, Decoded, Image, Terms};

use super::desk::{Completion, Desk, Known, Moment, Sight, Step};
use super::drive;
use super::grant::Grant;
use super::lanes::{self, Hub};
use super::line::Line;
use super::ticket::{Answer, Changes, Reply, Ticket, Work};
use crate::{Error, Result};

/// More calls than this do not wait for one bucket at a time.
const MOST_WAITING: usize = 10_000;

/// Everything this process does to one bucket goes through its lane: one write in flight, in order of arrival.
#[derive(Debug)]
pub(crate) struct Lane {
    hub: Arc<Hub>,
    key: BucketKey,
    state: Mutex<State>,
    line: Arc<Line>,
    asked: tokio::sync::Notify,
}

#[derive(Debug)]
struct State {
    desk: Desk,
    /// A task is at work on this lane.
    driven: bool,
    /// Something was booked since the bucket's life was looked at last.
    booked: bool,
}

impl Lane {
    pub(super) fn new(hub: Arc<Hub>, key: BucketKey, client: ClientId, memory: Duration) -> Self {
        #[cfg_attr(not(test), expect(unused_mut, reason = "only tests break the rules"))]
        let mut desk = Desk::new(key.clone(), client, memory);
        #[cfg(test)]
        {
            desk.mutation = hub.settings.mutation;
        }
        let state = State {
            desk,
            driven: false,
            booked: false,
        };
        Self {
            hub,
            key,
            state: Mutex::new(state),
            line: Arc::default(),
            asked: tokio::sync::Notify::new(),
        }
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(super) fn key(&self) -> &BucketKey {
        &self.key
    }

    /// Those who wait for tokens of this bucket.
    pub(super) fn line(&self) -> &Arc<Line> {
        &self.line
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if forgetting it loses nothing but the image.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        !state.driven && state.desk.is_idle()
    }

    /// True if there is something to do and nobody does it: the task that did was dropped with its runtime, or broke.
    pub(super) fn is_left_undone(&self) -> bool {
        let state = self.state();
        !state.driven && !state.desk.is_idle()
    }

    /// True if calls or changes wait in the queue and nobody works on it.
    pub(super) fn has_waiting(&self) -> bool {
        let state = self.state();
        !state.driven && state.desk.waiting() > 0
    }

    /// The last image, however old.
    pub(super) fn image(&self) -> Option<Arc<Image>> {
        self.state().desk.image().cloned()
    }

    /// True if the bucket was never looked at.
    pub(super) fn knows_nothing(&self) -> bool {
        self.state().desk.knows_nothing()
    }

    /// What reading the configuration brought along about the bucket.
    pub(super) fn saw(&self, found: Option<&Attributes>, proven: bool) -> Result<()> {
        let known = self.known(found, proven)?;
        self.state().desk.saw(known);
        Ok(())
    }

    fn known(&self, found: Option<&Attributes>, proven: bool) -> Result<Known> {
        let sight = Sight {
            at: self.hub.clock.elapsed(),
            proven,
        };
        Ok(match found.map(Attributes::decode).transpose()? {
            Some(Decoded::Bucket(image)) => Known::Live(Arc::new(image), sight),
            Some(Decoded::Stub) | None => Known::Absent(sight),
        })
    }

    /// Queues an acquire.
    pub(super) fn acquire(
        self: &Arc<Self>,
        amounts: Changes,
        terms: Arc<Terms>,
        given: bool,
        anew: bool,
    ) -> Result<oneshot::Receiver<Answer>> {
        let (reply, answer) = oneshot::channel();
        if self.state().desk.waiting() >= MOST_WAITING {
            return Err(lanes::overloaded(
                &self.key,
                "calls waiting for this bucket",
                MOST_WAITING,
            ));
        }
        self.push(Work::Acquire {
            amounts,
            terms,
            given,
            anew,
            reply,
        });
        Ok(answer)
    }

    /// Queues a change that must be booked.
    pub(super) fn settle(
        self: &Arc<Self>,
        changes: Changes,
        incarnation: Arc<str>,
    ) -> oneshot::Receiver<Result<()>> {
        let (done, answer) = oneshot::channel();
        self.push(Work::Settle {
            changes,
            incarnation,
            done: Some(done),
        });
        answer
    }

    fn push(self: &Arc<Self>, work: Work) {
        let elapsed = self.hub.clock.elapsed();
        self.state().desk.push(work, elapsed);
        self.asked.notify_one();
        self.drive();
    }

    /// Sees to it that somebody works on it.
    pub(super) fn drive(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.state().driven, true) {
            self.hub.spawn(drive::drive(self.clone()));
        }
    }

    /// Gives up what waits; it is reported.
    pub(super) fn give_up(self: &Arc<Self>, error: &Error) {
        self.finish(self.with_desk(|desk| desk.failed(error)));
    }

    // What the driver calls.

    /// Somebody has asked for the bucket since this was last waited for.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// The next step. After [`Step::Idle`] nobody drives the lane any more.
    pub(super) fn next(&self, moment: Moment) -> (Step, Vec<Completion>) {
        let mut state = self.state();
        let (mut step, mut completions) = state.desk.next(moment);
        if matches!(step, Step::Idle) && state.owes_a_longer_life(moment) {
            // A write that carries nothing lets the bucket live until it is full.
            let nothing = Work::Settle {
                changes: Vec::new(),
                incarnation: "".into(),
                done: None,
            };
            state.desk.push(nothing, moment.elapsed);
            let (next, more) = state.desk.next(moment);
            step = next;
            completions.extend(more);
        }
        if matches!(step, Step::Idle) {
            state.driven = false;
        }
        (step, completions)
    }

    /// The task that worked on it is gone, perhaps with a write under way.
    pub(super) fn abandoned(self: &Arc<Self>) {
        let completions = {
            let mut state = self.state();
            state.driven = false;
            state.desk.interrupted(self.hub.clock.elapsed())
        };
        self.finish(completions);
    }

    pub(super) fn with_desk<T>(&self, act: impl FnOnce(&mut Desk) -> T) -> T {
        act(&mut self.state().desk)
    }

    pub(super) fn reread(self: &Arc<Self>, found: Option<&Attributes>, moment: Moment) -> Result<()> {
        let known = self.known(found, true)?;
        self.finish(self.with_desk(|desk| desk.reread(&known, moment)));
        Ok(())
    }

    pub(super) fn reloaded(
        self: &Arc<Self>,
        terms: &Arc<Terms>,
        found: Option<&Attributes>,
        moment: Moment,
    ) -> Result<()> {
        let known = self.known(found, true)?;
        self.finish(self.with_desk(|desk| desk.reloaded(terms, &known, moment)));
        Ok(())
    }

    /// Tells callers what became of their calls. Not under the lock: a grant that nobody takes goes back into the
    /// queue.
    pub(super) fn finish(self: &Arc<Self>, completions: Vec<Completion>) {
        for completion in completions {
            match completion {
                Completion::Answer(ticket, reply) => self.answer(ticket, reply),
                Completion::Booked(ticket) => {
                    let lost = self.without_a_limit(changes(&ticket));
                    self.unwritten(&lost, "the bucket no longer has this limit", false);
                    self.state().booked |= !changes(&ticket).is_empty();
                    booked(ticket, Ok(()));
                }
                Completion::Unwritten(ticket, error) => {
                    self.unwritten(changes(&ticket), &error.to_string(), ticket.in_doubt);
                    booked(ticket, Err(error));
                }
                Completion::Gone(ticket) => {
                    self.unwritten(changes(&ticket), "the bucket no longer exists", ticket.in_doubt);
                    booked(ticket, Ok(()));
                }
            }
        }
    }

    fn unwritten(&self, changes: &[(LimitName, i128)], reason: &str, in_doubt: bool) {
        self.hub.unwritten(&self.key, changes, reason, in_doubt);
    }

    /// Of changes that were just booked those whose limit is not on the bucket, so that nothing was booked on it.
    fn without_a_limit(&self, changes: &[(LimitName, i128)]) -> Changes {
        let Some(image) = self.image() else {
            return Changes::new();
        };
        let lost = changes
            .iter()
            .filter(|(limit, _)| !image.limits.contains_key(limit));
        lost.cloned().collect()
    }

    fn answer(self: &Arc<Self>, ticket: Ticket, reply: Reply) {
        let Work::Acquire {
            amounts,
            reply: caller,
            ..
        } = ticket.work
        else {
            return;
        };
        let answer = match reply {
            Reply::Granted(image) => Answer::Granted(Grant::new(self.clone(), amounts, image)),
            Reply::Refused(statuses) => Answer::Refused(statuses),
            Reply::Failed(error) => Answer::Failed(error),
        };
        // A caller that has gone meanwhile drops a grant here, which gives it back.
        drop(caller.send(answer));
    }
}

impl State {
    /// True, once, if what was booked last makes debt beyond the bucket's life. A write reckons with the image that it
    /// was made from; only the bucket afterwards shows what others have taken meanwhile.
    fn owes_a_longer_life(&mut self, moment: Moment) -> bool {
        let booked = std::mem::take(&mut self.booked);
        booked
            && self
                .desk
                .image()
                .is_some_and(|image| image.expires_before_full(moment.now))
    }
}

fn changes(ticket: &Ticket) -> &[(LimitName, i128)] {
    match &ticket.work {
        Work::Settle { changes, .. } => changes,
        Work::Acquire { .. } => &[],
    }
}

fn booked(ticket: Ticket, result: Result<(), Error>) {
    if let Work::Settle { done: Some(done), .. } = ticket.work {
        // Nobody needs to wait for it.
        drop(done.send(result));
    }
}
