//! Who else writes the bucket, and whether there is enough for everybody.

use std::time::Duration;

use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::{ClientTag, Image, Sharing, Slot, SlotIndex};

use super::{Core, Now, Seen};

/// A bucket counts as shared for this long after another client wrote it.
pub(super) const SHARED_FOR: Duration = Duration::from_secs(10);
/// On a shared bucket an image older than this says little about the present.
const STALE_AFTER: Duration = Duration::from_millis(20);
/// A client counts for this long after its last write when slots are scarce.
const CROWDED_FOR: Duration = Duration::from_secs(60);
/// A bucket counts as saturated for this long after it was short of tokens.
const SATURATED_FOR: Duration = Duration::from_secs(1);
/// With fewer clients a call that loses a write wins the next one.
const MANY_CLIENTS: u32 = 8;
/// At most this many other clients are told apart.
const MAX_OTHERS: usize = 64;

/// What is known about the other clients of a bucket.
#[derive(Debug, Default, Clone)]
pub(super) struct Contention {
    /// Other clients, and when each wrote last, in epoch milliseconds.
    others: Vec<(ClientTag, i128)>,
    /// When a write was last refused though its image was current as far as we knew, on the clock's time scale.
    pub(super) refused_at: Option<Duration>,
    /// When there was last too little for a call, on the clock's time scale.
    pub(super) short_at: Option<Duration>,
}

impl Contention {
    /// The bucket was seen like this.
    pub(super) fn observe(&mut self, image: &Image, own: ClientTag, calendar: Timestamp) {
        for number in image.slots.values().filter(|number| !own.wrote(**number)) {
            let (client, at) = (ClientTag::of(*number), Slot::written_at(*number));
            match self.others.iter_mut().find(|(other, _)| *other == client) {
                Some((_, last)) => *last = at.max(*last),
                None => self.others.push((client, at)),
            }
        }
        let since = before(calendar, CROWDED_FOR);
        self.others.retain(|(_, at)| *at >= since);
        if self.others.len() > MAX_OTHERS {
            self.others.sort_unstable_by_key(|(_, at)| -*at);
            self.others.truncate(MAX_OTHERS);
        }
    }

    /// The bucket was deleted and created again: its slots are empty.
    pub(super) fn recreated(&mut self) {
        self.others.clear();
    }

    /// True if as many other clients as there are slots write the bucket, so that none is left for this one.
    pub(super) fn is_crowded(&self, calendar: Timestamp) -> bool {
        self.others_within(CROWDED_FOR, calendar) >= usize::from(SlotIndex::COUNT)
    }

    fn others_within(&self, time: Duration, calendar: Timestamp) -> usize {
        let since = before(calendar, time);
        self.others.iter().filter(|(_, at)| *at >= since).count()
    }

    /// How many clients write the bucket, this one included.
    pub(super) fn clients(&self, calendar: Timestamp) -> u32 {
        u32::try_from(self.others_within(SHARED_FOR, calendar)).map_or(u32::MAX, |others| others + 1)
    }

    /// True if many clients want more than there is.
    pub(super) fn is_saturated(&self, now: Now) -> bool {
        let short = self
            .short_at
            .is_some_and(|at| now.elapsed.saturating_sub(at) <= SATURATED_FOR);
        short && self.clients(now.calendar) >= MANY_CLIENTS
    }
}

impl Core {
    /// Whether others write this bucket too: they did shortly before it was last seen, or a write of ours was refused.
    pub(super) fn sharing(&self, image: &Image, seen: Seen, now: Now) -> Sharing {
        let age = now.elapsed.saturating_sub(seen.at);
        let recent = before(now.calendar, age + SHARED_FOR);
        let is_other = |number: &i128| !self.client.wrote(*number) && Slot::written_at(*number) >= recent;
        let others = image.slots.values().any(is_other);
        let refused_at = self.contention.refused_at;
        let refused = refused_at.is_some_and(|at| now.elapsed.saturating_sub(at) <= SHARED_FOR);
        let alone = !others && !refused;
        if alone {
            Sharing::Alone
        } else if age > STALE_AFTER {
            Sharing::SharedAndStale
        } else {
            Sharing::Shared
        }
    }
}

fn before(calendar: Timestamp, time: Duration) -> i128 {
    i128::from(calendar.millis()) - i128::try_from(time.as_millis()).unwrap_or(i128::MAX / 2)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bucket::core::tests::bench::Bench;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn image(clients: std::ops::Range<u128>) -> Image {
        let slots = clients.zip(SlotIndex::all()).map(|(client, index)| {
            (
                index,
                ClientTag::from_random(client).number(i128::from(NOW.millis()), client),
            )
        });
        let mut bench = Bench::new();
        bench.read();
        let _call = bench.ask(1);
        bench.pass();
        Image {
            slots: slots.collect::<BTreeMap<_, _>>(),
            ..bench.bucket()
        }
    }

    #[test]
    fn sixteen_other_clients_within_a_minute_are_a_crowd() {
        let own = ClientTag::from_random(999);
        let mut contention = Contention::default();
        contention.observe(&image(0..15), own, NOW);
        assert!(!contention.is_crowded(NOW));
        assert_eq!(contention.clients(NOW), 16);
        contention.observe(&image(10..25), own, NOW);
        assert!(contention.is_crowded(NOW));
        assert!(!contention.is_crowded(NOW.plus_millis(60_001)));
        contention.recreated();
        assert!(!contention.is_crowded(NOW));
    }

    #[test]
    fn own_numbers_are_nobody_else_and_the_list_is_bounded() {
        let own = ClientTag::from_random(0);
        let mut contention = Contention::default();
        contention.observe(&image(0..1), own, NOW);
        assert_eq!(contention.clients(NOW), 1);
        for first in 0..20 {
            contention.observe(&image(first * 16 + 1..first * 16 + 17), own, NOW);
        }
        assert_eq!(contention.others.len(), MAX_OTHERS);
    }
}
