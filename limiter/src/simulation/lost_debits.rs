//! Debits that nobody can find any more: their response was lost, and their bucket was deleted before the process asked again. The
//! process asks for them again, on the next bucket. Changes it does not write again.

use std::collections::BTreeMap;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{BucketKey, BucketWrite};

/// Per bucket and process, the debits of the last write that was applied, until the process has heard a response.
#[derive(Debug, Default)]
pub(super) struct LostDebits {
    unheard: BTreeMap<(BucketKey, i128), BTreeMap<LimitName, i128>>,
    /// Debits that were unconfirmed when their bucket was deleted: they are booked though no call used them.
    pub(super) expired: BTreeMap<(BucketKey, LimitName), i128>,
}

impl LostDebits {
    pub(super) fn applied(&mut self, write: &BucketWrite) {
        let demands = write.batch.demands.iter();
        let debits = demands.map(|(limit, demand)| (limit.clone(), demand.debit));
        self.unheard.insert(place(write), debits.collect());
    }

    /// The process got a response, which also shows whether its earlier writes happened.
    pub(super) fn heard(&mut self, write: &BucketWrite) {
        self.unheard.remove(&place(write));
    }

    pub(super) fn expired(&mut self, key: &BucketKey) {
        let lost = self.unheard.extract_if(.., |(bucket, _), _| bucket == key);
        for (limit, debit) in lost.flat_map(|(_, debits)| debits) {
            *self.expired.entry((key.clone(), limit)).or_default() += debit;
        }
    }
}

/// The bucket, and the tag of the process: the last ten digits of its numbers.
fn place(write: &BucketWrite) -> (BucketKey, i128) {
    (write.key.clone(), write.slot.number.rem_euclid(10_000_000_000))
}
