//! The queue of one bucket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Attributes, BucketKey, ClientId, Decoded, Image, Terms};

use super::desk::{Completion, Desk, Known, Moment, Sight, Step};
use super::drive;
use super::grant::Grant;
use super::lanes::Hub;
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
    /// Held by the one who is first in line to wait for tokens.
    pub(super) patience: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    desk: Desk,
    /// A task is at work on this lane.
    driven: bool,
}

impl Lane {
    pub(super) fn new(hub: Arc<Hub>, key: BucketKey, client: ClientId, memory: Duration) -> Self {
        #[cfg_attr(not(test), expect(unused_mut, reason = "only tests break the rules"))]
        let mut desk = Desk::new(key.clone(), client, memory);
        #[cfg(test)]
        {
            desk.mutation = hub.settings.mutation;
        }
        let state = State { desk, driven: false };
        Self {
            hub,
            key,
            state: Mutex::new(state),
            patience: tokio::sync::Mutex::new(()),
        }
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(super) fn key(&self) -> &BucketKey {
        &self.key
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if forgetting it loses nothing but the image.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        !state.driven && state.desk.is_idle()
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
            return Err(self
                .hub
                .unavailable("more calls wait for this bucket than it can serve"));
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
        let mut state = self.state();
        state.desk.push(work, elapsed);
        if !std::mem::replace(&mut state.driven, true) {
            drop(state);
            self.hub.spawn(drive::drive(self.clone()));
        }
    }

    // What the driver calls.

    /// The next step. After [`Step::Idle`] nobody drives the lane any more.
    pub(super) fn next(&self, moment: Moment) -> (Step, Vec<Completion>) {
        let mut state = self.state();
        let (step, completions) = state.desk.next(moment);
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
            state.desk.interrupted()
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
                Completion::Booked(ticket) => booked(ticket, Ok(())),
                Completion::Unwritten(ticket, error) => {
                    self.hub.unwritten(&self.key, &ticket, &error.to_string());
                    booked(ticket, Err(error));
                }
                Completion::Gone(ticket) => {
                    self.hub
                        .unwritten(&self.key, &ticket, "the bucket no longer exists");
                    booked(ticket, Ok(()));
                }
            }
        }
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

fn booked(ticket: Ticket, result: Result<(), Error>) {
    if let Work::Settle { done: Some(done), .. } = ticket.work {
        // Nobody needs to wait for it.
        drop(done.send(result));
    }
}
