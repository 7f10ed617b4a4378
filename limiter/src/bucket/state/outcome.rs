//! What the answer to a write, or its absence, means.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Decoded, Image, SlotBefore};

use super::super::request::{Outcome, Request, RequestKind};
use super::slots::{Ownership, Trace};
use super::{Completion, LastSeen, Moment, QueueState, SentWrite, Sighting};
use crate::Error;
use crate::error::Conflict;

impl QueueState {
    /// The write happened; the bucket is like this now.
    pub(crate) fn done(&mut self, decoded: Decoded, moment: Moment) -> Vec<Completion> {
        let Some(current) = self.current.take() else {
            return Vec::new();
        };
        self.see(decoded, moment);
        #[cfg(test)]
        self.count_tries(false);
        if self.guess.under_way {
            self.guess.wrong_at = None;
        }
        self.confirm(current)
    }

    /// The condition did not hold; the bucket is like this, if there is one.
    pub(crate) fn refused(&mut self, decoded: Option<Decoded>, moment: Moment) -> Vec<Completion> {
        let Some(current) = self.current.take() else {
            return Vec::new();
        };
        self.see(decoded.unwrap_or(Decoded::Stub), moment);
        self.refused_at = Some(moment.elapsed);
        #[cfg(test)]
        self.count_tries(true);
        if self.guess.under_way {
            self.guess.wrong_at = Some(moment.elapsed);
        }
        let LastSeen::Live(image, _) = self.known.clone() else {
            if current.lost.is_some() {
                self.remember(&current);
            }
            let completions = self.requeue(current, moment.elapsed);
            self.nothing_there();
            return completions;
        };
        let number = current.write.slot.number;
        let lost = current.lost.is_some().then_some(&*current.write);
        match self.trace(&image, lost, moment) {
            Trace::Happened(happened) if happened == number => self.confirm(current),
            Trace::Happened(happened) => {
                let mut completions = self.requeue(current, moment.elapsed);
                completions.extend(self.happened(happened));
                completions
            }
            Trace::NoneYet => {
                if current.lost.is_some() {
                    self.remember(&current);
                }
                self.requeue(current, moment.elapsed)
            }
            Trace::Untraceable => {
                if current.lost.is_some() {
                    self.remember(&current);
                }
                let mut completions = self.requeue(current, moment.elapsed);
                completions.extend(self.drop_untraceable());
                completions
            }
        }
    }

    /// Nobody answered: a copy of the write may be applied at any time. True if somebody still waits for it, so that
    /// it is to be sent again as it is.
    pub(crate) fn lost(&mut self, elapsed: Duration) -> bool {
        if let Some(current) = &mut self.current {
            current.lost = Some(elapsed);
            // A copy on a slot that somebody else may take in between could land twice, and must not give back twice.
            if current.write.slot.before == SlotBefore::Any && current.write.batch.gives_back() {
                return false;
            }
        }
        self.wants_resend()
    }

    /// The write was turned away before it was looked at. True if it is to be sent again as it is.
    pub(crate) fn wants_resend(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.requests.iter().any(Request::is_wanted))
    }

    /// Stops sending the current write. Acquires that it carries get the error, changes go back to the queue.
    pub(crate) fn give_up_current(&mut self, error: &Error) -> Vec<Completion> {
        let Some(current) = self.current.take() else {
            return Vec::new();
        };
        if current.lost.is_some() {
            self.remember(&current);
        }
        // A write that only looks for others is tried once; after that somebody must ask for the bucket.
        self.resting |= current.requests.is_empty();
        let (acquires, changes): (Vec<_>, Vec<_>) =
            current.requests.into_iter().partition(Request::is_acquire);
        for request in changes.into_iter().rev() {
            self.queue.push_front(request);
        }
        acquires
            .into_iter()
            .map(|request| fail(request, error.clone()))
            .collect()
    }

    /// The current write was turned away because of too many requests. What it carries goes into the next one, together with
    /// whatever comes until then; acquires that have waited too long get the error. Nothing if a copy of it may still happen,
    /// so that it must be sent again as it is.
    pub(crate) fn throttled(&mut self, elapsed: Duration, error: &Error) -> Option<Vec<Completion>> {
        let current = self.current.take_if(|current| current.lost.is_none())?;
        let patience = self.patience;
        let (late, kept): (Vec<_>, Vec<_>) = current
            .requests
            .into_iter()
            .partition(|request| request.is_acquire() && elapsed.saturating_sub(request.since) >= patience);
        for request in kept.into_iter().rev() {
            self.queue.push_front(request);
        }
        Some(
            late.into_iter()
                .map(|request| fail(request, error.clone()))
                .collect(),
        )
    }

    /// Whoever waited for the answer is gone: the write may have been sent or not.
    pub(crate) fn interrupted(&mut self, elapsed: Duration) -> Vec<Completion> {
        let Some(mut current) = self.current.take() else {
            return Vec::new();
        };
        current.lost = Some(elapsed);
        self.remember(&current);
        self.requeue(current, elapsed)
    }

    /// Breaks a rule on purpose: calls are refused because of a conflict.
    #[cfg(test)]
    pub(crate) fn refuse_current(&mut self) -> Vec<Completion> {
        let requests = self
            .current
            .take()
            .map(|current| current.requests)
            .unwrap_or_default();
        let (acquires, changes): (Vec<_>, Vec<_>) = requests.into_iter().partition(Request::is_acquire);
        self.queue.extend(changes);
        acquires
            .into_iter()
            .map(|request| Completion::Answer(request, Outcome::Refused(Vec::new())))
            .collect()
    }

    /// Counts refused writes in a row, for a rule that is broken on purpose: calls give up after eight of them.
    #[cfg(test)]
    fn count_tries(&mut self, refused: bool) {
        self.refused_in_a_row = if refused { self.refused_in_a_row + 1 } else { 0 };
    }

    #[cfg(test)]
    fn is_tired(&self) -> bool {
        breaks!(self.mutation, EightTries) && self.refused_in_a_row >= 8
    }

    /// Acquires that wait get the error: the bucket or its configuration cannot be read. Changes stay.
    pub(crate) fn unreadable(&mut self, error: &Error) -> Vec<Completion> {
        self.take_out(Request::is_acquire)
            .into_iter()
            .map(|request| fail(request, error.clone()))
            .collect()
    }

    /// Nothing can be written for now: acquires get the error, and so do those who wait for changes, which stay in the
    /// queue.
    pub(crate) fn postpone(&mut self, error: &Error) -> Vec<Completion> {
        let mut completions = self.give_up_current(error);
        completions.extend(self.unreadable(error));
        let waiting = self.queue.iter_mut().filter_map(Request::take_done);
        completions.extend(waiting.map(|done| Completion::Postponed(done, error.clone())));
        completions
    }

    /// Nothing will be written any more: everybody gets the error. A write under way is in doubt from now on.
    pub(crate) fn failed(&mut self, error: &Error) -> Vec<Completion> {
        let current = self.current.take();
        if let Some(current) = &current {
            self.remember(current);
        }
        self.resting = true;
        let carried = self.carried();
        let requests = current
            .into_iter()
            .flat_map(|current| current.requests)
            .chain(std::mem::take(&mut self.queue));
        requests
            .map(|request| fail_in_doubt(request, &carried, error))
            .collect()
    }

    /// Deltas that have waited too long are given up; they are reported, not refunded.
    pub(crate) fn expire(&mut self, older_than: Duration, error: &Error) -> Vec<Completion> {
        let carried = self.carried();
        let expired = self.take_out(|request| !request.is_acquire() && request.since <= older_than);
        expired
            .into_iter()
            .map(|request| fail_in_doubt(request, &carried, error))
            .collect()
    }

    fn see(&mut self, decoded: Decoded, moment: Moment) {
        self.looked();
        let sighting = Sighting {
            at: moment.elapsed,
            proven: true,
        };
        self.known = match decoded {
            Decoded::Bucket(image) => LastSeen::Live(Arc::new(image), sighting),
            Decoded::Stub => LastSeen::Absent(sighting),
        };
    }

    /// The current write is on the item: nothing older can land any more.
    fn confirm(&mut self, current: SentWrite) -> Vec<Completion> {
        let slot = current.write.slot;
        self.ownership = Ownership::Owned(slot.index, slot.number);
        self.unresolved.clear();
        self.unresolved_overflowed = false;
        let image = self.image().cloned();
        current
            .requests
            .into_iter()
            .map(|request| complete(request, image.as_ref()))
            .collect()
    }

    /// Puts the calls back at the head of the queue, in order.
    fn requeue(&mut self, current: SentWrite, elapsed: Duration) -> Vec<Completion> {
        let mut completions = Vec::new();
        for mut request in current.requests.into_iter().rev() {
            request.looked();
            let late = elapsed.saturating_sub(request.since) >= self.patience;
            #[cfg(test)]
            let late = late || self.is_tired();
            if request.is_acquire() && late {
                let error = Error::Conflict(Conflict::Concurrent { what: self.what() });
                completions.push(fail(request, error));
            } else {
                self.queue.push_front(request);
            }
        }
        completions
    }

    /// The bucket, in the words of an error message.
    pub(super) fn what(&self) -> String {
        format!("the bucket of {} on {}", self.key.entity, self.key.resource)
    }
}

pub(super) fn complete(request: Request, image: Option<&Arc<Image>>) -> Completion {
    match (&request.work, image) {
        (RequestKind::Acquire { .. }, Some(image)) => {
            Completion::Answer(request, Outcome::Granted(image.clone()))
        }
        (RequestKind::Acquire { .. }, None) => {
            let error = Error::invalid("bucket", "", "the answer to its write holds no bucket");
            Completion::Answer(request, Outcome::Failed(error))
        }
        (RequestKind::Adjust { .. }, _) => Completion::Booked(request),
    }
}

fn fail(request: Request, error: Error) -> Completion {
    match &request.work {
        RequestKind::Acquire { .. } => Completion::Answer(request, Outcome::Failed(error)),
        RequestKind::Adjust { .. } => Completion::Unwritten(request, error),
    }
}

pub(super) fn fail_in_doubt(mut request: Request, carried: &HashSet<u64>, error: &Error) -> Completion {
    request.in_doubt |= carried.contains(&request.id);
    fail(request, error.clone())
}
