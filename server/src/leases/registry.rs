//! Which leases are held, until when, and which have ended. Pure: the caller passes the time.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::id::LeaseId;

/// Why an id has no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// There never was such a lease, or it ended long ago.
    Unknown,
    /// It has ended.
    Ended(End),
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By its holder, who keeps the tokens.
    Committed,
    /// By its holder, who gave all tokens back.
    RolledBack,
    /// By time; the tokens stay taken.
    Expired,
}

/// The leases that are held, at most a fixed number, and the latest ids that have ended, at most as many.
///
/// A slot is [reserved](Self::reserve) before tokens are taken, so that tokens are never taken for a lease that has no
/// room.
#[derive(Debug)]
pub(crate) struct LeaseRegistry<T> {
    most: usize,
    reserved: usize,
    held: HashMap<LeaseId, Held<T>>,
    by_expiry: BTreeSet<(Duration, LeaseId)>,
    ended: HashMap<LeaseId, End>,
    /// The order in which they ended.
    ended_order: VecDeque<LeaseId>,
}

#[derive(Debug)]
struct Held<T> {
    lease: T,
    expires: Duration,
}

impl<T> LeaseRegistry<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            reserved: 0,
            held: HashMap::new(),
            by_expiry: BTreeSet::new(),
            ended: HashMap::new(),
            ended_order: VecDeque::new(),
        }
    }

    /// Keeps a slot for a lease; false if there is none.
    pub(crate) fn reserve(&mut self) -> bool {
        let free = self.held.len() + self.reserved < self.most;
        self.reserved += usize::from(free);
        free
    }

    /// Gives a reserved slot up.
    pub(crate) fn cancel_reservation(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// Puts a lease into the slot that was reserved for it.
    pub(crate) fn insert(&mut self, id: LeaseId, lease: T, expires: Duration) {
        self.cancel_reservation();
        self.by_expiry.insert((expires, id));
        self.held.insert(id, Held { lease, expires });
    }

    /// A lease that is held and has not expired.
    pub(crate) fn get_mut(&mut self, id: LeaseId, now: Duration) -> Result<&mut T, Missing> {
        match self.held.get_mut(&id) {
            Some(held) if held.expires > now => Ok(&mut held.lease),
            Some(_) => Err(Missing::Ended(End::Expired)),
            None => Err(self
                .ended
                .get(&id)
                .map_or(Missing::Unknown, |end| Missing::Ended(*end))),
        }
    }

    /// Changes when a lease that is held and has not expired will expire.
    pub(crate) fn renew(&mut self, id: LeaseId, now: Duration, expires: Duration) -> Result<(), Missing> {
        self.get_mut(id, now)?;
        if let Some(held) = self.held.get_mut(&id) {
            self.by_expiry.remove(&(held.expires, id));
            self.by_expiry.insert((expires, id));
            held.expires = expires;
        }
        Ok(())
    }

    /// Ends a lease that is held and has not expired.
    pub(crate) fn end(&mut self, id: LeaseId, now: Duration, end: End) -> Result<T, Missing> {
        self.get_mut(id, now)?;
        self.remove(id, end).ok_or(Missing::Unknown)
    }

    /// Ends the leases that have expired.
    pub(crate) fn end_expired(&mut self, now: Duration) -> Vec<T> {
        let due = self.by_expiry.iter().take_while(|(expires, _)| *expires <= now);
        let ids: Vec<_> = due.map(|(_, id)| *id).collect();
        ids.into_iter()
            .filter_map(|id| self.remove(id, End::Expired))
            .collect()
    }

    /// Ends all leases, as if they had expired.
    pub(crate) fn end_all(&mut self) -> Vec<T> {
        self.end_expired(Duration::MAX)
    }

    /// How many leases are held.
    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    fn remove(&mut self, id: LeaseId, end: End) -> Option<T> {
        let Held { lease, expires } = self.held.remove(&id)?;
        self.by_expiry.remove(&(expires, id));
        while self.ended_order.len() >= self.most.max(1) {
            if let Some(oldest) = self.ended_order.pop_front() {
                self.ended.remove(&oldest);
            }
        }
        self.ended.insert(id, end);
        self.ended_order.push_back(id);
        Some(lease)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn id(bits: u128) -> LeaseId {
        LeaseId::from_bits(bits)
    }

    fn with(most: usize, ids: &[u128]) -> LeaseRegistry<u128> {
        let mut registry = LeaseRegistry::new(most);
        for bits in ids {
            assert!(registry.reserve());
            registry.insert(id(*bits), *bits, SECOND * u32::try_from(*bits).unwrap());
        }
        registry
    }

    #[test]
    fn reservations_and_leases_share_the_slots() {
        let mut registry = with(2, &[1]);
        assert!(registry.reserve());
        assert!(!registry.reserve(), "one lease and one reservation");
        registry.cancel_reservation();
        assert!(registry.reserve());
        registry.insert(id(2), 2, SECOND);
        assert!(!registry.reserve(), "two leases");
        registry.end(id(1), Duration::ZERO, End::Committed).unwrap();
        assert!(registry.reserve());
    }

    #[test]
    fn a_lease_ends_once() {
        let mut registry = with(10, &[1]);
        assert_eq!(registry.end(id(1), Duration::ZERO, End::RolledBack), Ok(1));
        let again = registry.end(id(1), Duration::ZERO, End::Committed);
        assert_eq!(again, Err(Missing::Ended(End::RolledBack)));
        assert_eq!(registry.get_mut(id(2), Duration::ZERO), Err(Missing::Unknown));
    }

    #[test]
    fn a_lease_expires_at_its_time_even_if_nobody_has_looked_yet() {
        let mut registry = with(10, &[1, 2, 3]);
        assert!(
            registry
                .get_mut(id(2), SECOND * 2 - Duration::from_nanos(1))
                .is_ok()
        );
        assert_eq!(
            registry.end(id(2), SECOND * 2, End::Committed),
            Err(Missing::Ended(End::Expired))
        );
        assert_eq!(registry.end_expired(SECOND * 2), [1, 2]);
        assert_eq!(registry.end_expired(SECOND * 2), [0; 0], "once");
        assert_eq!(registry.len(), 1);
        assert_eq!(
            registry.get_mut(id(1), SECOND * 2),
            Err(Missing::Ended(End::Expired))
        );
        assert_eq!(registry.end_all(), [3]);
    }

    #[test]
    fn a_renewed_lease_expires_later() {
        let mut registry = with(10, &[1, 2]);
        registry.renew(id(1), SECOND / 2, SECOND * 3).unwrap();
        assert_eq!(registry.end_expired(SECOND * 2), [2]);
        assert!(registry.get_mut(id(1), SECOND * 2).is_ok());
        assert_eq!(
            registry.renew(id(2), SECOND * 2, SECOND * 9),
            Err(Missing::Ended(End::Expired))
        );
        assert_eq!(registry.renew(id(9), SECOND, SECOND), Err(Missing::Unknown));
        assert_eq!(registry.end_expired(SECOND * 3), [1]);
    }

    #[test]
    fn the_memory_of_ended_leases_is_bounded() {
        let mut registry = with(2, &[]);
        for bits in 1..=5 {
            assert!(registry.reserve());
            registry.insert(id(bits), bits, SECOND);
            registry.end(id(bits), Duration::ZERO, End::Committed).unwrap();
        }
        assert_eq!(registry.ended.len(), 2);
        assert_eq!(registry.get_mut(id(3), Duration::ZERO), Err(Missing::Unknown));
        assert_eq!(
            registry.get_mut(id(4), Duration::ZERO),
            Err(Missing::Ended(End::Committed))
        );
    }
}
