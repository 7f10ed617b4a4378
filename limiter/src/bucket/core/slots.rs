//! The slot that this client writes, and what an image says about its unconfirmed writes.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use zae_limiter_schema::bucket::{ClientTag, Image, Slot, SlotBefore, SlotIndex, WriteKind};

use super::unconfirmed::Unconfirmed;
use super::{Core, LastSeen, Now, SentWrite};

/// The numbers of this many writes are kept, to tell them from those of a copy of this process.
const MAX_SENT: usize = 16;

/// A client without a slot overwrites one of this many that were not written for longest. Which one is drawn, so that
/// newcomers rarely take the same.
const CANDIDATES: usize = 4;

/// Which slot is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// None yet, or another client has taken it.
    None,
    /// The empty slot that we are about to take. While an unconfirmed write may take it, we try no other.
    Claiming(SlotIndex),
    /// Our last number stands in this slot, as far as we have seen.
    Owned(SlotIndex, i128),
}

/// What an image says about our unconfirmed writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trace {
    /// None of them happened so far.
    NoneYet,
    /// This one happened.
    Happened(i128),
    /// Another client has taken the slot: whether one of them happened is unknown.
    Untraceable,
    /// A copy of this process writes the bucket too, and knows of everything that this one knew.
    Copied,
}

impl Core {
    /// The slot of the next write.
    pub(super) fn next_slot(&mut self, image: Option<&Image>, now: Now) -> Slot {
        self.last_sequence = i128::from(now.calendar.millis()).max(self.last_sequence + 1);
        // Random bits from the operating system: a copy of this process may write in the same millisecond.
        let number = self.client.number(self.last_sequence, now.random >> 32);
        self.sent.push_back(number);
        if self.sent.len() > MAX_SENT {
            self.sent.pop_front();
        }
        let slot = |index, before| Slot {
            index,
            before,
            number,
        };
        let Some(image) = image else {
            return slot(SlotIndex::FIRST, SlotBefore::Empty);
        };
        let nothing_searched = self.searched().next().is_none();
        let crowded = nothing_searched && self.contention.is_crowded(now.calendar);
        let own = image
            .slots
            .iter()
            .filter(|(_, number)| self.client.wrote(**number));
        match (self.ownership, own.max_by_key(|(_, number)| **number)) {
            (Ownership::Owned(index, last), _) if !crowded => slot(index, SlotBefore::Own(last)),
            (Ownership::Claiming(index), _) if !image.slots.contains_key(&index) => {
                slot(index, SlotBefore::Empty)
            }
            (Ownership::None, Some((index, last))) if !crowded => {
                self.ownership = Ownership::Owned(*index, *last);
                slot(*index, SlotBefore::Own(*last))
            }
            _ => {
                let (index, before) = choose(&image.slots, now.random);
                if before == SlotBefore::Empty {
                    self.ownership = Ownership::Claiming(index);
                }
                slot(index, before)
            }
        }
    }

    /// The tag of this client's writes. It changes when a copy of this process is noticed.
    pub(crate) fn client(&self) -> ClientTag {
        self.client
    }

    /// The first image of the bucket: a number of ours is from before this core was made.
    pub(super) fn adopt(&mut self, found: &LastSeen) {
        let LastSeen::Live(image, _) = found else { return };
        let ours = image
            .slots
            .iter()
            .filter(|(_, number)| self.client.wrote(**number));
        if let Some((index, number)) = ours.max_by_key(|(_, number)| **number) {
            self.ownership = Ownership::Owned(*index, *number);
            self.last_sequence = self.last_sequence.max(Slot::written_at(*number));
            self.sent.push_back(*number);
        }
    }

    /// What the image says about the unconfirmed writes and the current one, which was just refused. A network that
    /// delivers a request twice refuses the copy of a write that happened: then its number stands in the image.
    pub(super) fn trace(&mut self, image: &Image, current: Option<&SentWrite>, now: Now) -> Trace {
        let lost = current
            .filter(|current| current.lost)
            .map(|current| &*current.write);
        let current = current.map(|current| &*current.write);
        let sent = |number: i128| {
            current.is_some_and(|write| write.slot.number == number)
                || self.unconfirmed.iter().any(|one| one.slot.number == number)
        };
        let landed = image.slots.iter().find(|(_, number)| sent(**number));
        if let Some((index, number)) = landed {
            self.ownership = Ownership::Owned(*index, *number);
            return Trace::Happened(*number);
        }
        let created = self
            .unconfirmed
            .iter()
            .map(|one| (one.creates, &*one.incarnation, one.slot.number))
            .chain(current.map(|write| {
                (
                    write.kind == WriteKind::Create,
                    write.incarnation(),
                    write.slot.number,
                )
            }))
            .find(|(creates, incarnation, _)| *creates && *incarnation == image.incarnation());
        if let Some((_, _, number)) = created {
            // The bucket is the one that this write has made, though others have taken its slot since.
            self.ownership = Ownership::None;
            return Trace::Happened(number);
        }
        let owned = match self.ownership {
            Ownership::Owned(_, number) => Some(number),
            Ownership::None | Ownership::Claiming(_) => None,
        };
        let oldest = self.sent.iter().min().copied();
        let oldest = oldest.map_or(i128::MAX, Slot::written_at);
        let not_sent_by_us = |number: &i128| {
            let is_ours = self.client.wrote(*number) && Slot::written_at(*number) >= oldest;
            is_ours && !self.sent.contains(number)
        };
        if image.slots.values().any(not_sent_by_us) {
            // A copy of this process has the same tag.
            self.client = ClientTag::from_random(now.random);
            self.ownership = Ownership::None;
            return Trace::Copied;
        }
        if let Ownership::Owned(index, number) = self.ownership
            && image.slots.get(&index) != Some(&number)
        {
            self.ownership = Ownership::None;
        }
        let ours = |number: &i128| self.client.wrote(*number) && Some(*number) != owned;
        let forgotten = self.unconfirmed_overflowed && image.slots.values().any(ours);
        let lost = lost.map(|write| (write.slot, write.incarnation(), write.kind == WriteKind::Create));
        let all_would_show = self
            .searched()
            .map(|one: &Unconfirmed| (one.slot, &*one.incarnation, one.creates))
            .chain(lost)
            .all(|(slot, incarnation, creates)| creates || would_show(slot, incarnation, image));
        if all_would_show && !forgotten {
            Trace::NoneYet
        } else {
            Trace::Untraceable
        }
    }
}

/// True if a write on this slot would be seen if it had happened. Its own number is in no slot.
fn would_show(slot: Slot, incarnation: &str, image: &Image) -> bool {
    let found = image.slots.get(&slot.index).copied();
    incarnation == image.incarnation()
        && match slot.before {
            SlotBefore::Own(last) => found == Some(last),
            // Nobody overwrites a slot while there are empty ones: the client in it was first.
            SlotBefore::Empty => found.is_none() || image.slots.len() < usize::from(SlotIndex::COUNT),
            SlotBefore::Any => false,
        }
}

/// An empty slot, or one of those that were not written for longest.
fn choose(slots: &BTreeMap<SlotIndex, i128>, random: u128) -> (SlotIndex, SlotBefore) {
    let draw = |among: &[SlotIndex]| {
        let place = random % u128::try_from(among.len()).unwrap_or(1).max(1);
        let place = usize::try_from(place).unwrap_or(0);
        among.get(place).copied().unwrap_or(SlotIndex::FIRST)
    };
    let empty: Vec<_> = SlotIndex::all()
        .filter(|index| !slots.contains_key(index))
        .collect();
    if !empty.is_empty() {
        return (draw(&empty), SlotBefore::Empty);
    }
    let mut oldest: Vec<_> = slots.iter().map(|(index, number)| (*number, *index)).collect();
    oldest.sort_unstable();
    let oldest: Vec<_> = oldest
        .into_iter()
        .take(CANDIDATES)
        .map(|(_, index)| index)
        .collect();
    (draw(&oldest), SlotBefore::Any)
}
