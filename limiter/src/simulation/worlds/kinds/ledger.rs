//! What callers were told: admitted in which period, and which permits they hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use zae_limiter_schema::bucket::{BucketKey, Decoded, Image};
use zae_limiter_schema::{LimitKind, LimitName, LimitSet, Timestamp};

use crate::acquire::Lease;
use crate::simulation::world::{Shared, lock};

/// The ends of the periods on a bucket, by quota.
pub(super) type Periods = BTreeMap<LimitName, Option<Timestamp>>;

pub(super) type SharedLedger = Arc<Mutex<Ledger>>;

/// A lease that has not ended, and whose it is.
#[derive(Debug)]
struct Held {
    process: u64,
    lease: Lease,
    permits: u64,
    /// What it was admitted, and in which period, where that is certain.
    quotas: BTreeMap<LimitName, (i64, Option<Timestamp>)>,
}

/// All leases of one bucket, and what they were admitted.
#[derive(Debug)]
pub(super) struct Ledger {
    limits: LimitSet,
    /// Net tokens admitted, by quota and the end of the period.
    admitted: BTreeMap<(LimitName, Timestamp), i64>,
    /// What was added to a quota, by the end of the period.
    topped_up: BTreeMap<(LimitName, Timestamp), i64>,
    held: BTreeMap<u64, Held>,
    /// The number of the last lease.
    next: u64,
    pub(super) violations: Vec<String>,
    /// Leases that were lost before they ended.
    pub(super) lost: u64,
    /// The most permits that were held at once.
    pub(super) most_held: u64,
}

/// A bucket of the table as it is now.
pub(super) fn image(world: &Shared, key: &BucketKey) -> Option<Image> {
    match lock(world).items.get(key)?.decode() {
        Ok(Decoded::Bucket(image)) => Some(image),
        _ => None,
    }
}

/// The periods on a bucket.
pub(super) fn periods(world: &Shared, key: &BucketKey) -> Periods {
    let quotas = image(world, key).map(|image| image.quotas).unwrap_or_default();
    let ends = quotas.into_iter().map(|(name, quota)| (name, quota.period_end));
    ends.collect()
}

impl Ledger {
    pub(super) fn new(limits: LimitSet) -> SharedLedger {
        Arc::new(Mutex::new(Self {
            limits,
            admitted: BTreeMap::new(),
            topped_up: BTreeMap::new(),
            held: BTreeMap::new(),
            next: 0,
            violations: Vec::new(),
            lost: 0,
            most_held: 0,
        }))
    }

    fn cap(&self, limit: &LimitName) -> u64 {
        self.limits.get(limit).map_or(0, |limit| limit.capacity().get())
    }

    /// Somebody may have topped up quotas of the bucket.
    pub(super) fn sees(&mut self, image: &Image) {
        for (name, quota) in &image.quotas {
            if let Some(until) = quota.topped_up_until {
                let tokens = i64::try_from(quota.topped_up / 1_000).unwrap();
                self.topped_up.insert((name.clone(), until), tokens);
            }
        }
    }

    /// A call was admitted. `before` is the item when it was made, and `after` when it had its outcome.
    pub(super) fn granted(
        &mut self,
        process: u64,
        lease: Lease,
        amounts: &[(&str, u64)],
        (before, after): (&Periods, &Periods),
        at: i64,
    ) -> u64 {
        let mut held = Held {
            process,
            lease,
            permits: 0,
            quotas: BTreeMap::new(),
        };
        for (name, amount) in amounts {
            let name = LimitName::parse(name).unwrap();
            match self.limits.get(&name).unwrap().kind() {
                LimitKind::Rate(_) => {}
                LimitKind::Concurrency(_) => held.permits += amount,
                LimitKind::Quota(_) => {
                    // If the period rolled over meanwhile, it may be either: the oracle judges the write.
                    let (was, is) = (
                        before.get(&name).copied().flatten(),
                        after.get(&name).copied().flatten(),
                    );
                    let period = is.filter(|_| was.is_none() || was == is);
                    held.quotas.insert(name.clone(), (amount.cast_signed(), period));
                    if let Some(period) = period {
                        self.admit(&name, period, amount.cast_signed(), at);
                    }
                }
            }
        }
        self.next += 1;
        let permits = held.permits;
        self.held.insert(self.next, held);
        if permits > 0 {
            self.check_permits(at);
        }
        self.next
    }

    fn admit(&mut self, name: &LimitName, period: Timestamp, amount: i64, at: i64) {
        let topped_up = self.topped_up.get(&(name.clone(), period));
        let cap = self.cap(name).cast_signed() + topped_up.copied().unwrap_or(0);
        let admitted = self.admitted.entry((name.clone(), period)).or_default();
        *admitted += amount;
        if *admitted > cap {
            let what = format!("{name}: {admitted} admitted of {cap} in the period until {period}, at {at}");
            self.violations.push(what);
        }
    }

    /// Permits of all processes whose holders may go on by their own clock.
    fn check_permits(&mut self, at: i64) {
        let permits = self.permits_held();
        self.most_held = self.most_held.max(permits);
        let limit = self
            .limits
            .iter()
            .find(|limit| matches!(limit.kind(), LimitKind::Concurrency(_)));
        let cap = limit.map_or(0, |limit| limit.capacity().get());
        if permits > cap {
            self.violations
                .push(format!("{permits} permits of {cap} held at {at}"));
        }
    }

    /// The caller ends its lease, and gives this much of what it was admitted back (all of it if nothing is said). Nothing if
    /// its process has died.
    pub(super) fn ends(&mut self, id: u64, returned: Option<u64>, now: &Periods) -> Option<Lease> {
        let held = self.held.remove(&id)?;
        for (name, (amount, period)) in &held.quotas {
            let open = now.get(name).copied().flatten();
            let back = returned.map_or(*amount, u64::cast_signed);
            if let Some(period) = period.filter(|period| open == Some(*period)) {
                *self.admitted.entry((name.clone(), period)).or_default() -= back;
            }
        }
        self.lost += u64::from(held.permits > 0 && held.lease.is_lost());
        Some(held.lease)
    }

    /// The leases that have not ended.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.held.keys().copied().collect()
    }

    /// Permits whose holders live and have not lost them.
    pub(super) fn permits_held(&self) -> u64 {
        let running = self
            .held
            .values()
            .filter(|held| held.permits > 0 && !held.lease.is_lost());
        running.map(|held| held.permits).sum()
    }

    /// A process is gone, with everything that it holds.
    pub(super) fn died(&mut self, process: u64) {
        let dead = std::mem::take(&mut self.held);
        let (dead, living) = dead.into_iter().partition(|(_, held)| held.process == process);
        self.held = living;
        // A dead process gives nothing back.
        std::mem::forget::<BTreeMap<_, _>>(dead);
    }

    /// Net tokens admitted of a quota, by the end of the period.
    pub(super) fn admitted(&self, limit: &str) -> Vec<(Timestamp, i64)> {
        let of_limit = self
            .admitted
            .iter()
            .filter(|((name, _), _)| name.as_str() == limit);
        of_limit
            .map(|((_, period), admitted)| (*period, *admitted))
            .collect()
    }
}
