//! Items that take 1,000 writes a second and no more, as those of DynamoDB do.

use std::collections::BTreeMap;

use zae_limiter_schema::bucket::BucketKey;

/// What an item takes in a second. Those of the simulation are below 1 KB: a write costs one unit.
pub(super) const UNITS_PER_SECOND: i64 = 1_000;
/// What it takes at once after a pause.
const BURST: i64 = 100;

/// The capacity that each item has left, in thousandths of a unit, and since when.
#[derive(Debug, Default)]
pub(super) struct Throttling {
    items: BTreeMap<BucketKey, (i64, i64)>,
    /// Writes that were throttled.
    pub(super) throttled: u64,
}

impl Throttling {
    /// True if the item takes a write at this now, in milliseconds. Refused writes count too.
    pub(super) fn admits(&mut self, key: &BucketKey, at: i64) -> bool {
        let (left, since) = self.items.get(key).copied().unwrap_or((BURST * 1000, at));
        let left = (left + (at - since) * UNITS_PER_SECOND).min(BURST * 1000);
        let admits = left >= 1000;
        self.items
            .insert(key.clone(), (left - if admits { 1000 } else { 0 }, at));
        self.throttled += u64::from(!admits);
        admits
    }
}
