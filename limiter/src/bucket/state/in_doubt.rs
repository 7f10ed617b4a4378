//! Writes without an answer: they may have happened, and may happen yet.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{Slot, SlotBefore, WriteKind};

use super::super::deltas::Deltas;
use super::super::request::RequestKind;
use super::outcome::{complete, fail_in_doubt};
use super::slots::Ownership;
use super::{Completion, LastSeen, QueueState, SentWrite};
use crate::Error;
use crate::error::Unavailable;

/// At most this many writes without an answer are remembered, one a second over a quarter of an hour.
const MAX_UNRESOLVED: usize = 1_000;

/// A write of which a copy may still be applied, and what it carried.
#[derive(Debug)]
pub(super) struct Unresolved {
    pub(super) slot: Slot,
    /// It creates the bucket: it can land where there is none.
    pub(super) creates: bool,
    /// The incarnation of the bucket that has it, if any has.
    pub(super) incarnation: Arc<str>,
    calls: Vec<CarriedCall>,
}

/// One call that an unresolved write carried.
#[derive(Debug)]
struct CarriedCall {
    request: u64,
    refund: Deltas,
}

impl QueueState {
    pub(super) fn remember(&mut self, current: &SentWrite) {
        let calls = current.requests.iter().map(|request| CarriedCall {
            request: request.id,
            refund: request.debit(),
        });
        self.unresolved.push_back(Unresolved {
            slot: current.write.slot,
            creates: current.write.kind == WriteKind::Create,
            incarnation: current.write.incarnation().into(),
            calls: calls.collect(),
        });
        if !current.requests.is_empty() {
            self.resting = false;
        }
        if self.unresolved.len() > MAX_UNRESOLVED {
            self.unresolved.pop_front();
            self.unresolved_overflowed = true;
        }
        if matches!(self.known, LastSeen::Absent(_)) || current.write.slot.before == SlotBefore::Any {
            // The bucket may be there by now, created by that very write; and a write on another client's slot is not
            // kept out by the next one, so that it is looked for first.
            self.known = LastSeen::Nothing;
        }
    }

    /// Calls that a write without an answer has carried.
    pub(super) fn carried(&self) -> HashSet<u64> {
        let calls = self.unresolved.iter().flat_map(|one| &one.calls);
        calls.map(|call| call.request).collect()
    }

    /// An earlier write is on the item. Calls that it carried are done; those that were told no meanwhile get
    /// their tokens back.
    pub(super) fn happened(&mut self, number: i128) -> Vec<Completion> {
        self.unresolved_overflowed = false;
        let image = self.image().cloned();
        let unresolved = std::mem::take(&mut self.unresolved);
        let carried = unresolved
            .into_iter()
            .filter(|one| one.slot.number == number)
            .flat_map(|one| one.calls);
        let mut completions = Vec::new();
        let mut refunds = Vec::new();
        for call in carried {
            match self.queue.iter().position(|request| request.id == call.request) {
                Some(place) => {
                    completions.extend(
                        self.queue
                            .remove(place)
                            .map(|request| complete(request, image.as_ref())),
                    );
                }
                None if call.refund.is_empty() => {}
                None => refunds.push(call.refund),
            }
        }
        for changes in refunds {
            let incarnation = image.as_ref().map_or("", |image| image.incarnation()).into();
            let since = match &self.known {
                LastSeen::Live(_, sighting) | LastSeen::Absent(sighting) => sighting.at,
                LastSeen::Nothing => Duration::ZERO,
            };
            let refund = RequestKind::Adjust {
                changes,
                incarnation,
                done: None,
            };
            self.push_counting(refund, 0, since);
        }
        completions
    }

    /// It cannot be told whether the unresolved writes happened. Acquires they carried are asked again, which can
    /// only take too much; changes are not, since giving back twice would give away.
    pub(super) fn drop_untraceable(&mut self) -> Vec<Completion> {
        let carried = self.carried();
        self.unresolved.clear();
        if breaks!(self.mutation, DoubtfulChangesAgain) {
            return Vec::new();
        }
        let dropped = self.take_out(|request| !request.is_acquire() && carried.contains(&request.id));
        let error = Error::Unavailable(Unavailable::OutcomeUnknown { what: self.what() });
        dropped
            .into_iter()
            .map(|request| fail_in_doubt(request, &carried, &error))
            .collect()
    }

    /// There is no bucket: of what is under way only a creation can still find its place.
    pub(super) fn nothing_there(&mut self) {
        let carried = self.carried();
        for request in &mut self.queue {
            request.in_doubt |= carried.contains(&request.id);
        }
        self.unresolved.retain(|one| one.creates);
        self.ownership = Ownership::None;
    }

    /// Stops looking for writes without an answer if there is nothing else to do, until somebody asks for the bucket
    /// again. They are not forgotten: one of them may be what the bucket shows then.
    pub(crate) fn rest(&mut self) {
        self.resting |= self.queue.is_empty();
    }
}
