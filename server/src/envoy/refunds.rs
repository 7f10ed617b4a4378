//! The leases that negative hits can give back from: by bucket, those that expire first. No I/O; the time is an argument.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use zae_limiter::LimitName;

use super::plan::{Amounts, Bucket};
use crate::leases::LeaseId;

/// Leases by bucket. It has an entry for each lease that is held, at most.
#[derive(Debug, Default)]
pub(super) struct Refunds {
    buckets: HashMap<Bucket, BTreeMap<Key, Refundable>>,
    expiry: BTreeMap<Key, Bucket>,
    next: u64,
}

/// A place among the leases that can be held for refunds.
pub(super) type Place = OwnedSemaphorePermit;

/// When a lease expires; the number tells leases apart that expire together.
type Key = (Duration, u64);

#[derive(Debug)]
struct Refundable {
    id: LeaseId,
    amounts: Amounts,
    /// Limits whose permits are released when the lease ends, and need no adjustment.
    permits: BTreeSet<LimitName>,
    /// Given up when the lease is forgotten.
    _place: Place,
}

/// What to give back from one lease, which ends with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Portion {
    pub(super) id: LeaseId,
    pub(super) amounts: Amounts,
    /// Those of the amounts that come back because the lease ends.
    pub(super) permits: BTreeSet<LimitName>,
}

impl Refunds {
    /// Remembers a lease until it expires.
    pub(super) fn add(
        &mut self,
        bucket: Bucket,
        id: LeaseId,
        (amounts, permits): (Amounts, BTreeSet<LimitName>),
        place: Place,
        expires: Duration,
        now: Duration,
    ) {
        self.forget(now);
        let key = (expires, self.next);
        self.next += 1;
        self.expiry.insert(key, bucket.clone());
        let leases = self.buckets.entry(bucket).or_default();
        let lease = Refundable {
            id,
            amounts,
            permits,
            _place: place,
        };
        leases.insert(key, lease);
    }

    /// The leases of the bucket that together give back as much of the amounts as possible.
    pub(super) fn take(&mut self, bucket: &Bucket, mut wanted: Amounts, now: Duration) -> Vec<Portion> {
        self.forget(now);
        let mut ended = vec![];
        for (key, lease) in self.buckets.get(bucket).into_iter().flatten() {
            if wanted.values().all(|tokens| *tokens == 0) {
                break;
            }
            let amounts = part_of(&mut wanted, &lease.amounts);
            if !amounts.is_empty() {
                ended.push((
                    *key,
                    Portion {
                        id: lease.id,
                        amounts,
                        permits: lease.permits.clone(),
                    },
                ));
            }
        }
        for (key, _) in &ended {
            self.expiry.remove(key);
            self.remove(bucket, key);
        }
        ended.into_iter().map(|(_, portion)| portion).collect()
    }

    /// Forgets the leases that have expired.
    pub(super) fn forget(&mut self, now: Duration) {
        while let Some(entry) = self.expiry.first_entry().filter(|entry| entry.key().0 <= now) {
            let (key, bucket) = entry.remove_entry();
            self.remove(&bucket, &key);
        }
    }

    fn remove(&mut self, bucket: &Bucket, key: &Key) {
        if let Some(leases) = self.buckets.get_mut(bucket) {
            leases.remove(key);
            if leases.is_empty() {
                self.buckets.remove(bucket);
            }
        }
    }
}

/// Moves what the lease can give from what is wanted.
fn part_of(wanted: &mut Amounts, held: &Amounts) -> Amounts {
    let part = |(limit, tokens): (&LimitName, &u64)| {
        let wanted = wanted.get_mut(limit)?;
        let given = (*wanted).min(*tokens);
        *wanted -= given;
        (given > 0).then(|| (limit.clone(), given))
    };
    held.iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use tokio::sync::Semaphore;
    use zae_limiter::{EntityId, Resource};

    use super::*;

    fn place() -> Place {
        Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap()
    }

    const START: Duration = Duration::ZERO;
    const MINUTE: Duration = Duration::from_secs(60);

    fn bucket(entity: &str) -> Bucket {
        (EntityId::parse(entity).unwrap(), Resource::parse("api").unwrap())
    }

    fn tokens(count: u64) -> Amounts {
        Amounts::from([(LimitName::parse("tpm").unwrap(), count)])
    }

    fn held(count: u64) -> (Amounts, BTreeSet<LimitName>) {
        (tokens(count), BTreeSet::new())
    }

    fn id(number: u8) -> LeaseId {
        LeaseId::from_bits(number.into())
    }

    #[test]
    fn the_oldest_leases_give_back_first_and_each_gives_once() {
        let mut refunds = Refunds::default();
        for number in 1..=3 {
            refunds.add(bucket("ada"), id(number), held(100), place(), MINUTE, START);
        }
        assert!(refunds.take(&bucket("bob"), tokens(50), START).is_empty());
        let portion = |number, count| Portion {
            id: id(number),
            amounts: tokens(count),
            permits: BTreeSet::new(),
        };
        assert_eq!(refunds.take(&bucket("ada"), tokens(30), START), [portion(1, 30)]);
        assert_eq!(
            refunds.take(&bucket("ada"), tokens(500), START),
            [portion(2, 100), portion(3, 100)]
        );
        assert!(refunds.buckets.is_empty() && refunds.expiry.is_empty());
    }

    #[test]
    fn a_lease_without_the_limit_is_left_alone() {
        let mut refunds = Refunds::default();
        let other = Amounts::from([(LimitName::parse("rpm").unwrap(), 1)]);
        refunds.add(
            bucket("ada"),
            id(1),
            (other, BTreeSet::new()),
            place(),
            MINUTE,
            START,
        );
        assert!(refunds.take(&bucket("ada"), tokens(1), START).is_empty());
        assert_eq!(refunds.buckets.len(), 1);
    }

    #[test]
    fn expired_leases_are_forgotten() {
        let mut refunds = Refunds::default();
        refunds.add(bucket("ada"), id(1), held(100), place(), 2 * MINUTE, START);
        refunds.add(bucket("ada"), id(2), held(100), place(), MINUTE, START);
        let left = refunds.take(&bucket("ada"), tokens(500), MINUTE);
        assert_eq!(left.iter().map(|portion| portion.id).collect::<Vec<_>>(), [id(1)]);
        assert!(refunds.buckets.is_empty() && refunds.expiry.is_empty());
    }
}
