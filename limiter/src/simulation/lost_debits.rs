//! What nobody can find any more: its response was lost, and its bucket was deleted before the process asked again. The process
//! asks for it again, on the next bucket.

use std::collections::BTreeMap;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{BucketKey, BucketWrite};

/// Per bucket and process, what the last write took that was applied, until the process has heard a response.
#[derive(Debug, Default)]
pub(super) struct LostDebits {
    unheard: BTreeMap<(BucketKey, i128), BTreeMap<LimitName, i128>>,
    /// What was on a bucket unconfirmed when it was deleted: it is booked though no call used it.
    pub(super) expired: BTreeMap<(BucketKey, LimitName), i128>,
}

impl LostDebits {
    pub(super) fn applied(&mut self, write: &BucketWrite) {
        let demands = write.batch.demands.iter();
        let taken = demands.map(|(limit, demand)| (limit.clone(), demand.debit + demand.adjust));
        self.unheard.insert(place(write), taken.collect());
    }

    /// The process got a response, which also shows whether its earlier writes happened.
    pub(super) fn heard(&mut self, write: &BucketWrite) {
        self.unheard.remove(&place(write));
    }

    pub(super) fn expired(&mut self, key: &BucketKey) {
        let lost = self.unheard.extract_if(.., |(bucket, _), _| bucket == key);
        for (limit, amount) in lost.flat_map(|(_, taken)| taken) {
            *self.expired.entry((key.clone(), limit)).or_default() += amount;
        }
    }
}

/// The bucket, and the tag of the process: the last ten digits of its numbers.
fn place(write: &BucketWrite) -> (BucketKey, i128) {
    (write.key.clone(), write.slot.number.rem_euclid(10_000_000_000))
}
