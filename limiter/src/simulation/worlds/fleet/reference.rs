//! An exact bucket beside the simulated one.

use zae_limiter_schema::LimitSet;
use zae_limiter_schema::bucket::{Params, TokenBucket};

/// An exact bucket of every limit that gets the same calls at the same times, and the sum of what it admitted.
#[derive(Debug)]
pub(super) struct Reference {
    buckets: Vec<TokenBucket>,
    at: i64,
}

impl Reference {
    pub(super) fn new(limits: &LimitSet, at: i64) -> Self {
        let buckets = limits
            .iter()
            .map(|limit| TokenBucket::full(Params::from(limit.rate().unwrap())));
        Self {
            buckets: buckets.collect(),
            at,
        }
    }

    pub(super) fn admits(&mut self, amounts: &[u64], at: i64) -> bool {
        let elapsed = i128::from(at - self.at);
        self.at = at;
        let debits = || amounts.iter().map(|tokens| i128::from(*tokens) * 1000);
        for bucket in &mut self.buckets {
            *bucket = bucket.refilled(elapsed);
        }
        let fits = self
            .buckets
            .iter()
            .zip(debits())
            .all(|(bucket, debit)| bucket.tokens >= debit);
        for (bucket, debit) in self.buckets.iter_mut().zip(debits()).filter(|_| fits) {
            *bucket = bucket.force_take(0, debit);
        }
        fits
    }
}
