//! Writes that may have happened, and may happen yet: the response is missing, or a copy may still be delivered.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Held, Image, Slot, SlotBefore, WriteKind};

use super::super::amounts::Amounts;
use super::super::origin::{Holding, Origin};
use super::permits::Renewal;
use super::request::{Request, RequestKind};
use super::response::fail_unconfirmed;
use super::slots::Ownership;
use super::{Completion, Core, LastSeen, SentWrite};
use crate::Error;
use crate::error::Unavailable;

/// At most this many writes are remembered, one a second over a quarter of an hour.
const MAX_UNCONFIRMED: usize = 1_000;

/// At most this many refused writes are remembered.
const MAX_REFUSED: usize = 4;

/// A write of which a copy may still be applied, and what it carried.
#[derive(Debug, Clone)]
pub(super) struct Unconfirmed {
    pub(super) slot: Slot,
    /// It creates the bucket: it can land where there is none.
    pub(super) creates: bool,
    /// The incarnation of the bucket that has it, if any has.
    pub(super) incarnation: Arc<str>,
    /// There was no response. Otherwise it was refused, and only a network that delivers it twice can still apply it.
    pub(super) lost: bool,
    calls: Vec<CarriedCall>,
    /// What its calls hold by it.
    held: Vec<(LimitName, Held)>,
    renewals: Vec<Renewal>,
}

/// One call that an unconfirmed write carried.
#[derive(Debug, Clone)]
struct CarriedCall {
    request: u64,
    refund: Amounts,
}

impl Core {
    pub(super) fn remember(&mut self, current: &SentWrite) {
        if !current.lost && current.requests.is_empty() && current.renewals.is_empty() {
            return;
        }
        let calls = current.requests.iter().map(|request| CarriedCall {
            request: request.id,
            refund: request.debit(),
        });
        self.unconfirmed.push_back(Unconfirmed {
            slot: current.write.slot,
            creates: current.write.kind == WriteKind::Create,
            incarnation: current.write.incarnation().into(),
            lost: current.lost,
            calls: calls.collect(),
            held: current.held(),
            renewals: current.renewals.clone(),
        });
        if !current.lost {
            self.forget_refused();
            return;
        }
        if !current.requests.is_empty() {
            self.search_stopped = false;
        }
        if self.unconfirmed.len() > MAX_UNCONFIRMED {
            self.unconfirmed.pop_front();
            self.unconfirmed_overflowed = true;
        }
        if matches!(self.known, LastSeen::Absent(_)) || current.write.slot.before == SlotBefore::Any {
            // The bucket may be there by now, created by that very write; and a write on another client's slot is not
            // kept out by the next one, so that it is looked for first.
            self.known = LastSeen::Nothing;
        }
    }

    /// Keeps few of the refused writes: copies of a request do not arrive much later.
    fn forget_refused(&mut self) {
        let refused = self.unconfirmed.iter().filter(|write| !write.lost).count();
        if refused > MAX_REFUSED
            && let Some(oldest) = self.unconfirmed.iter().position(|write| !write.lost)
        {
            self.unconfirmed.remove(oldest);
        }
    }

    /// The writes without a response, which are searched for.
    pub(super) fn searched(&self) -> impl Iterator<Item = &Unconfirmed> {
        self.unconfirmed.iter().filter(|write| write.lost)
    }

    /// Calls that a write without a response has carried.
    pub(super) fn carried(&self) -> HashSet<u64> {
        let calls = self.searched().flat_map(|one| &one.calls);
        calls.map(|call| call.request).collect()
    }

    /// An earlier write is on the item. Calls that it carried are done; what it took for calls that have failed meanwhile goes
    /// back.
    pub(super) fn happened(&mut self, number: i128) -> Vec<Completion> {
        self.unconfirmed_overflowed = false;
        let image = self.image().cloned();
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        let mut completions = Vec::new();
        self.check_expiry = true;
        for write in unconfirmed.into_iter().filter(|one| one.slot.number == number) {
            self.renewed(&write.renewals);
            for call in write.calls {
                let place = self.queue.iter().position(|request| request.id == call.request);
                match place.and_then(|place| self.queue.remove(place)) {
                    Some(request) => {
                        completions.push(self.completed(request, image.as_ref(), &write.held));
                    }
                    None if call.refund.is_empty() => {}
                    None => self.refund(call.refund, &write.held, image.as_deref()),
                }
            }
        }
        completions
    }

    /// Gives back what a write took for a call that is gone.
    fn refund(&mut self, changes: Amounts, held: &[(LimitName, Held)], image: Option<&Image>) {
        let since = match &self.known {
            LastSeen::Live(_, seen) | LastSeen::Absent(seen) => seen.at,
            LastSeen::Nothing => Duration::ZERO,
        };
        let held = held.iter().cloned();
        let origin = Origin {
            incarnation: image.map_or("", Image::incarnation).into(),
            holdings: held.map(|(limit, held)| (limit, Holding::Fixed(held))).collect(),
        };
        let refund = RequestKind::Adjust {
            changes,
            origin,
            done: None,
        };
        self.enqueue(refund, 0, false, since);
    }

    /// It is unknown whether the unconfirmed writes happened. Acquires they carried are asked again, which can
    /// only take too much; changes are not, since a second refund would be too much.
    pub(super) fn drop_untraceable(&mut self) -> Vec<Completion> {
        let carried = self.carried();
        let renewals = self.searched().flat_map(|write| &write.renewals);
        renewals.for_each(Renewal::untraceable);
        self.unconfirmed.clear();
        let dropped = self.take_out(|request| !request.is_acquire() && carried.contains(&request.id));
        let error = self.outcome_unknown();
        dropped
            .into_iter()
            .map(|request| fail_unconfirmed(request, &carried, &error))
            .collect()
    }

    /// A copy of this process has everything that this one had: what waits to be given back, it may give back too. That is
    /// reported and not written. So are tokens taken ahead, which it may spend. Permits are left to expire.
    pub(super) fn drop_shared_with_copy(&mut self) -> Vec<Completion> {
        if let Some(chunks) = &mut self.chunks {
            drop(chunks.give_back());
        }
        self.lose_permits();
        let mut completions = self.drop_untraceable();
        let error = self.outcome_unknown();
        let returns = |request: &Request| request.only_returns() && !request.changes().is_empty();
        for mut request in self.take_out(returns) {
            request.maybe_written = true;
            completions.push(Completion::Unwritten(request, error.clone()));
        }
        completions
    }

    /// The error of a change that may have been written.
    pub(crate) fn outcome_unknown(&self) -> Error {
        Error::Unavailable(Unavailable::OutcomeUnknown { what: self.what() })
    }

    /// There is no bucket: of the unconfirmed writes only a creation can still be applied. A change that another write has carried
    /// may have been on the bucket that is gone, so that it is reported and not written to the next one.
    pub(super) fn nothing_there(&mut self) -> Vec<Completion> {
        let carried = self.carried();
        for request in &mut self.queue {
            request.maybe_written |= carried.contains(&request.id);
        }
        let on_that_bucket = self.searched().filter(|write| !write.creates);
        let calls = on_that_bucket.flat_map(|write| &write.calls);
        let gone: HashSet<u64> = calls.map(|call| call.request).collect();
        self.unconfirmed.retain(|one| one.creates);
        self.ownership = Ownership::None;
        self.lose_permits();
        let changes = self.take_out(|request| !request.is_acquire() && gone.contains(&request.id));
        changes.into_iter().map(Completion::Gone).collect()
    }
}
