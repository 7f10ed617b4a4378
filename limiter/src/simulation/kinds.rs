//! Quotas and permits as they should be, moved by the writes that really happened.
//!
//! Each write is judged by the bucket before and after it and by what its batch asked for, at the true time. What callers
//! were told is judged apart from it, in `worlds/kinds`.

use std::collections::BTreeMap;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{
    Batch, BucketKey, BucketWrite, ConcurrencyImage, Demand, Epoch, Image, QuotaImage,
};

use super::top_ups::TopUp;

/// An epoch's permits are taken back this long after its end, in milliseconds.
const GRACE: i64 = 2_000;

/// One bucket after its last write.
#[derive(Debug, Default)]
struct Last {
    quotas: BTreeMap<LimitName, QuotaImage>,
    permits: BTreeMap<LimitName, ConcurrencyImage>,
}

/// All buckets, and what happened on them.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    buckets: BTreeMap<BucketKey, Last>,
    /// Periods that ended and were followed by the next one.
    pub(super) roll_overs: u64,
    /// Thousandths of permits that were taken back because they had expired.
    pub(super) reclaimed: i128,
}

impl Kinds {
    /// A write was applied at `at` and left this. `skew` is how far a clock is off at most.
    pub(super) fn applied(&mut self, write: &BucketWrite, after: &Image, at: i64, skew: i64) -> Vec<String> {
        self.changed(&write.key, &write.batch, after, (at, skew))
    }

    /// A limit was topped up.
    pub(super) fn topped_up(
        &mut self,
        top_up: &TopUp,
        limit: &LimitName,
        after: &Image,
        at: i64,
        skew: i64,
    ) -> Vec<String> {
        let mut batch = Batch::default();
        let demand = Demand {
            top_up: i128::from(top_up.amount) * 1_000,
            ..Demand::default()
        };
        batch.add(limit, demand);
        self.changed(&top_up.bucket, &batch, after, (at, skew))
    }

    fn changed(
        &mut self,
        key: &BucketKey,
        batch: &Batch,
        after: &Image,
        (at, skew): (i64, i64),
    ) -> Vec<String> {
        let mut found = Vec::new();
        let last = self.buckets.remove(key).unwrap_or_default();
        for (name, quota) in &after.quotas {
            let before = last.quotas.get(name);
            let rolled = before.is_some_and(|before| {
                before.period_end.is_some()
                    && before.period_end != quota.period_end
                    && before.period == quota.period
            });
            self.roll_overs += u64::from(rolled);
            let problem = quota_problem(batch.demand(name), before, quota, at + skew);
            found.extend(problem.map(|what| format!("{name}: {what}")));
        }
        for (name, before) in &last.quotas {
            let runs = before.used > 0 && before.period_end.is_some_and(|end| end.millis() > at + skew);
            if runs && !after.quotas.contains_key(name) {
                found.push(format!("{name}: left the bucket before its period ended"));
            }
        }
        for (name, permits) in &after.permits {
            let before = last
                .permits
                .get(name)
                .map_or_else(BTreeMap::new, |before| before.epochs.clone());
            let gone = before
                .into_iter()
                .filter(|(epoch, _)| !permits.epochs.contains_key(epoch));
            for (epoch, count) in gone {
                self.reclaimed += count;
                if at + skew < epoch.end().millis() + GRACE {
                    found.push(format!("{name}: {count} taken back before they expired"));
                }
            }
            let problem = permits_problem(permits, batch.demand(name).debit > 0);
            found.extend(problem.map(|what| format!("{name}: {what}")));
        }
        let now = Last {
            quotas: after.quotas.clone(),
            permits: after.permits.clone(),
        };
        self.buckets.insert(key.clone(), now);
        found
    }

    /// The table forgets a bucket. Nothing may be used, and no permit held.
    pub(super) fn expired(&mut self, key: &BucketKey, at: i64) -> Vec<String> {
        let Some(last) = self.buckets.remove(key) else {
            return Vec::new();
        };
        let used = last
            .quotas
            .iter()
            .filter(|(_, quota)| quota.used > 0 && quota.period_end.is_some_and(|end| end.millis() > at));
        let held = |(epoch, count): (&Epoch, &i128)| *count > 0 && epoch.end().millis() > at;
        let permits = last
            .permits
            .iter()
            .filter(|(_, permits)| permits.epochs.iter().any(held));
        let used = used.map(|(name, _)| format!("{name} was forgotten while it was used"));
        used.chain(permits.map(|(name, _)| format!("{name} was forgotten while permits were held")))
            .collect()
    }

    /// Somebody deletes a bucket.
    pub(super) fn deleted(&mut self, key: &BucketKey) {
        self.buckets.remove(key);
    }
}

/// What was added to the amount of the period that runs.
fn topped_up(quota: &QuotaImage) -> i128 {
    if quota.topped_up_until == quota.period_end {
        quota.topped_up
    } else {
        0
    }
}

/// `latest` is the latest time that a clock can have shown.
fn quota_problem(
    demand: Demand,
    before: Option<&QuotaImage>,
    after: &QuotaImage,
    latest: i64,
) -> Option<String> {
    let taken = demand.adjust + demand.debit;
    let allowed = after.amount + topped_up(after);
    if demand.debit > 0 && after.used > allowed {
        return Some(format!("{} used of {allowed}", after.used));
    }
    let (seen, used) = before.map_or((None, 0), |before| (before.period_end, before.used));
    let same_period = before.is_none_or(|before| before.period == after.period);
    let goes_on = seen == after.period_end;
    let added = demand.top_up + before.filter(|_| goes_on).map_or(0, topped_up);
    if same_period && topped_up(after) != added {
        return Some(format!("topped up by {}, not {added}", topped_up(after)));
    }
    if goes_on || !same_period {
        let exact = used + taken - demand.credit..=used + taken;
        return (!exact.contains(&after.used)).then(|| format!("{} used, not {exact:?}", after.used));
    }
    match (seen, after.period_end) {
        (Some(seen), None) => Some(format!("the period that ended at {seen} is lost")),
        (Some(seen), Some(end)) if end <= seen => Some(format!("period {end} after {seen}")),
        (Some(seen), _) if latest < seen.millis() => Some(format!("the period until {seen} ended early")),
        _ => (after.used != taken).then(|| format!("a period began with {} used, not {taken}", after.used)),
    }
}

fn permits_problem(after: &ConcurrencyImage, takes: bool) -> Option<String> {
    let sum: i128 = after.epochs.values().sum();
    if after.held != sum || after.epochs.values().any(|count| *count < 0) {
        return Some(format!("{} held, and epochs {:?}", after.held, after.epochs));
    }
    (takes && after.held > after.permits).then(|| format!("{} held of {}", after.held, after.permits))
}
