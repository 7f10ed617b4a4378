//! What the response to a write, or its absence, means.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Decoded, Held, Image, SlotBefore};

use super::request::{Outcome, Request, RequestKind, Taken};
use super::slots::{Ownership, Trace};
use super::{Completion, Core, LastSeen, Now, Seen, SentWrite};
use crate::Error;

impl Core {
    /// The write happened; the bucket is like this now.
    pub(crate) fn done(&mut self, decoded: Decoded, now: Now) -> Vec<Completion> {
        let Some(current) = self.current.take() else {
            return Vec::new();
        };
        self.see(decoded, now);
        self.pace.responded(now.elapsed);
        if current.write.sets_refill_back() {
            self.refill_set_back_at = Some(now.elapsed);
        }
        if self.guess.under_way {
            self.guess.wrong_at = None;
        }
        self.confirm(current)
    }

    /// The condition did not hold; the bucket is like this, if there is one.
    pub(crate) fn refused(&mut self, decoded: Option<Decoded>, now: Now) -> Vec<Completion> {
        let Some(current) = self.current.take() else {
            return Vec::new();
        };
        self.see(decoded.unwrap_or(Decoded::Stub), now);
        self.pace.responded(now.elapsed);
        self.pace.refused();
        self.contention.refused_at = Some(now.elapsed);
        if self.guess.under_way {
            self.guess.wrong_at = Some(now.elapsed);
        }
        let LastSeen::Live(image, _) = self.known.clone() else {
            if current.lost {
                self.remember(&current);
            }
            let mut completions = self.requeue(current, now);
            completions.extend(self.nothing_there());
            return completions;
        };
        let number = current.write.slot.number;
        match self.trace(&image, Some(&current), now) {
            Trace::Happened(happened) if happened == number => self.confirm(current),
            Trace::Happened(happened) => {
                let mut completions = self.requeue(current, now);
                completions.extend(self.happened(happened));
                completions
            }
            Trace::NoneYet => {
                self.remember(&current);
                self.requeue(current, now)
            }
            Trace::Untraceable => {
                self.remember(&current);
                let mut completions = self.requeue(current, now);
                completions.extend(self.drop_untraceable());
                completions
            }
            Trace::Copied => {
                let mut completions = self.requeue(current, now);
                completions.extend(self.drop_shared_with_copy());
                completions
            }
        }
    }

    /// There was no response: a copy of the write may be applied at any time. True if a caller still waits for it, so
    /// that it is to be sent again as it is.
    pub(crate) fn lost(&mut self) -> bool {
        if let Some(current) = &mut self.current {
            current.lost = true;
            // A copy on a slot that another client may take in between could land twice, and must not return tokens twice.
            if current.write.slot.before == SlotBefore::Any && current.write.batch.gives_back() {
                return false;
            }
        }
        self.wants_resend()
    }

    /// The write was refused before its condition was checked. True if it is to be sent again as it is.
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
        if current.lost {
            self.remember(&current);
        }
        // A write that only searches for others is tried once; after that a call must arrive.
        self.search_stopped |= current.requests.is_empty();
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

    /// The current write was throttled. What it carries goes into the next one, together with
    /// whatever comes until then; acquires that have waited too long get the error. Nothing if a copy of it may still happen,
    /// so that it must be sent again as it is.
    pub(crate) fn throttled(&mut self, elapsed: Duration, error: &Error) -> Option<Vec<Completion>> {
        self.pace.throttled(elapsed);
        if let Some(chunks) = &mut self.chunks {
            chunks.widen();
        }
        let current = self.current.take_if(|current| !current.lost)?;
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

    /// The task that waited for the response is gone: the write may have been sent or not.
    pub(crate) fn interrupted(&mut self, now: Now) -> Vec<Completion> {
        let Some(mut current) = self.current.take() else {
            return Vec::new();
        };
        current.lost = true;
        self.remember(&current);
        self.requeue(current, now)
    }

    /// The write is about to be sent, perhaps once more.
    pub(crate) fn sending(&mut self, elapsed: Duration) {
        self.pace.sent(elapsed);
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

    /// Nothing will be written any more: all callers get the error. A write under way is unconfirmed from now on.
    pub(crate) fn failed(&mut self, error: &Error) -> Vec<Completion> {
        let mut current = self.current.take();
        if let Some(current) = &mut current {
            current.lost = true;
            self.remember(current);
        }
        self.search_stopped = true;
        let carried = self.carried();
        let requests = current
            .into_iter()
            .flat_map(|current| current.requests)
            .chain(std::mem::take(&mut self.queue));
        requests
            .map(|request| fail_unconfirmed(request, &carried, error))
            .collect()
    }

    /// Amounts that have waited too long are given up; they are reported, not refunded.
    pub(crate) fn expire(&mut self, older_than: Duration, error: &Error) -> Vec<Completion> {
        let carried = self.carried();
        let expired = self.take_out(|request| !request.is_acquire() && request.since <= older_than);
        expired
            .into_iter()
            .map(|request| fail_unconfirmed(request, &carried, error))
            .collect()
    }

    fn see(&mut self, decoded: Decoded, now: Now) {
        self.fresh_image_seen();
        let before = self.image().cloned();
        let seen = Seen {
            at: now.elapsed,
            consistent: true,
        };
        self.known = match decoded {
            Decoded::Bucket(image) => {
                self.lose_permits_of_others(image.incarnation());
                LastSeen::Live(Arc::new(image), seen)
            }
            Decoded::Stub => LastSeen::Absent(seen),
        };
        self.observe_others(before.as_deref(), now);
    }

    /// Notes who else writes the bucket that was just seen.
    pub(super) fn observe_others(&mut self, before: Option<&Image>, now: Now) {
        let Some(image) = self.image().cloned() else {
            return self.contention.recreated();
        };
        if before.is_some_and(|before| before.incarnation() != image.incarnation()) {
            self.contention.recreated();
        }
        self.contention.observe(&image, self.client, now.calendar);
    }

    /// The current write is on the item: nothing older can land any more.
    fn confirm(&mut self, current: SentWrite) -> Vec<Completion> {
        let slot = current.write.slot;
        self.ownership = Ownership::Owned(slot.index, slot.number);
        self.unconfirmed.clear();
        self.unconfirmed_overflowed = false;
        self.renewed(&current.renewals);
        let image = self.image().cloned();
        self.check_expiry |= current
            .requests
            .iter()
            .any(|request| !request.changes().is_empty());
        let held = current.held();
        current
            .requests
            .into_iter()
            .map(|request| self.completed(request, image.as_ref(), &held))
            .collect()
    }

    /// A request whose write is on the item. `held` is what the calls hold by that write.
    pub(super) fn completed(
        &mut self,
        request: Request,
        image: Option<&Arc<Image>>,
        held: &[(LimitName, Held)],
    ) -> Completion {
        match (&request.kind, image) {
            (RequestKind::Acquire { amounts, config, .. }, Some(image)) => {
                let incarnation = image.incarnation().into();
                let holdings = self.holdings(config, amounts, held, &incarnation);
                let taken = Taken {
                    image: image.clone(),
                    holdings,
                };
                Completion::Decided(request, Outcome::Granted(taken))
            }
            (RequestKind::Acquire { .. }, None) => {
                let error = Error::invalid("bucket", "", "the response contained no item");
                Completion::Decided(request, Outcome::Failed(error))
            }
            (RequestKind::Adjust { .. }, _) => Completion::Written(request),
        }
    }

    /// Puts the calls back at the head of the queue, in order. One that has lost to other clients for too long is
    /// refused by the bucket as it is now: contention is no outage.
    fn requeue(&mut self, current: SentWrite, now: Now) -> Vec<Completion> {
        let mut completions = Vec::new();
        for mut request in current.requests.into_iter().rev() {
            request.fresh_image_seen();
            request.conflicts += 1;
            let late = now.elapsed.saturating_sub(request.since) >= self.patience;
            match self.refuse_contended(&request, now).filter(|_| late) {
                Some(statuses) => completions.push(Completion::Decided(request, Outcome::Refused(statuses))),
                None => self.queue.push_front(request),
            }
        }
        completions
    }
}

fn fail(request: Request, error: Error) -> Completion {
    match &request.kind {
        RequestKind::Acquire { .. } => Completion::Decided(request, Outcome::Failed(error)),
        RequestKind::Adjust { .. } => Completion::Unwritten(request, error),
    }
}

pub(super) fn fail_unconfirmed(mut request: Request, carried: &HashSet<u64>, error: &Error) -> Completion {
    request.maybe_written |= carried.contains(&request.id);
    fail(request, error.clone())
}
