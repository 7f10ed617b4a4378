//! The client's slot: which numbers are ours, and what an image says about them.

use zae_limiter_schema::bucket::{BucketWrite, ClientId, Image, Slot, SlotBefore, WriteKind};

use super::{BucketState, LastSeen, Moment};

/// A slot this old may have been removed by another client, a little before the others' rule says so.
const MAY_BE_PRUNED: i128 = Slot::PRUNED_AFTER - 10_000;

/// What an image says about our writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trace {
    /// None of the unresolved ones happened so far.
    NoneYet,
    /// This one happened.
    Happened(i128),
    /// The slot is gone or not ours: whether one of them happened cannot be told.
    Untraceable,
}

impl BucketState {
    /// The compare-and-set of the next write.
    pub(super) fn next_slot(&mut self, moment: Moment) -> Slot {
        let now = i128::from(moment.now.millis());
        self.last_number = now.max(self.last_number + 1);
        let before = match self.previous {
            None => SlotBefore::Absent,
            Some(previous) if self.unresolved.is_empty() && previous < now - MAY_BE_PRUNED => {
                SlotBefore::NumberOrAbsent(previous)
            }
            Some(previous) => SlotBefore::Number(previous),
        };
        Slot {
            client: self.client,
            before,
            number: self.last_number,
        }
    }

    /// A first look at the bucket: a number in our slot is from before this state was made.
    pub(super) fn adopt(&mut self, found: &LastSeen) {
        if let LastSeen::Live(image, _) = found {
            self.previous = image.slots.get(&self.client).copied();
            self.last_number = self.last_number.max(self.previous.unwrap_or(0));
        }
    }

    /// What the image says about the unresolved writes and, if a copy of it was lost, the current one.
    pub(super) fn trace(&mut self, image: &Image, current: Option<&BucketWrite>, moment: Moment) -> Trace {
        let number = image.slots.get(&self.client).copied();
        let sent = |number: i128| {
            current.is_some_and(|write| write.slot.number == number)
                || self
                    .unresolved
                    .iter()
                    .any(|unresolved| unresolved.number == number)
        };
        match number {
            Some(_) if number == self.previous => Trace::NoneYet,
            Some(number) if sent(number) => Trace::Happened(number),
            Some(number) if self.forgetful => {
                // One of ours that is no longer known.
                self.previous = Some(number);
                Trace::Untraceable
            }
            Some(_) => {
                // Somebody else has drawn the same id.
                self.client = ClientId::from_random(moment.random);
                self.previous = image.slots.get(&self.client).copied();
                Trace::Untraceable
            }
            None if self.would_show(image, current, moment) => {
                self.previous = None;
                Trace::NoneYet
            }
            None => {
                self.previous = None;
                Trace::Untraceable
            }
        }
    }

    /// With no number in our slot: true if each of the writes in doubt would have left one. It is gone with the
    /// incarnation of the bucket that had it, and may be removed when it is old.
    fn would_show(&self, image: &Image, current: Option<&BucketWrite>, moment: Moment) -> bool {
        let oldest = i128::from(moment.now.millis()) - MAY_BE_PRUNED;
        let shows = |number: i128, incarnation: &str, creates: bool| {
            creates || (number > oldest && incarnation == image.incarnation())
        };
        self.unresolved
            .iter()
            .all(|one| shows(one.number, &one.incarnation, one.creates))
            && current.is_none_or(|write| {
                shows(
                    write.slot.number,
                    write.incarnation(),
                    write.kind == WriteKind::Create,
                )
            })
    }
}
