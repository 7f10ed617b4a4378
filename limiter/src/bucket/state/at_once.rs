//! Refusing a call without queueing it.

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{BucketConfig, Image};
use zae_limiter_schema::{LimitName, Timestamp};

use super::{LastSeen, QueueState};
use crate::bucket::deltas::Deltas;
use crate::bucket::limit_statuses::limit_statuses;
use crate::status::{LimitStatus, Refusal};

/// A refusal and everything that it follows from. The clock has milliseconds, in which a busy bucket refuses the same call
/// hundreds of times.
#[derive(Debug)]
pub(super) struct LastRefusal {
    image: Arc<Image>,
    config: Arc<BucketConfig>,
    amounts: Deltas,
    now: Timestamp,
    refusal: Arc<Refusal>,
}

impl QueueState {
    /// The refusal, if the call would be refused by the bucket as last seen and nothing else is to be done: the same as
    /// queueing the call and asking for the [next](Self::next) step. Nothing in every other case.
    pub(crate) fn refuse_at_once(
        &mut self,
        amounts: &Deltas,
        config: &Arc<BucketConfig>,
        now: Timestamp,
        elapsed: Duration,
    ) -> Option<Arc<Refusal>> {
        let LastSeen::Live(image, sighting) = &self.known else {
            return None;
        };
        let is_quiet = self.queue.is_empty() && self.current.is_none() && self.unresolved.is_empty();
        let may_refuse = sighting.proven && elapsed.saturating_sub(sighting.at) <= self.memory;
        if !is_quiet || !may_refuse {
            return None;
        }
        let is_same = |last: &&LastRefusal| {
            last.now == now
                && Arc::ptr_eq(&last.image, image)
                && Arc::ptr_eq(&last.config, config)
                && last.amounts == *amounts
        };
        if let Some(last) = self.last_refusal.as_deref().filter(is_same) {
            return Some(last.refusal.clone());
        }
        let statuses = self.short_statuses(image, amounts, config, now)?;
        let refusal = Arc::new(Refusal::new(statuses));
        let last = LastRefusal {
            image: image.clone(),
            config: config.clone(),
            amounts: amounts.clone(),
            now,
            refusal: refusal.clone(),
        };
        match &mut self.last_refusal {
            Some(kept) => **kept = last,
            none => *none = Some(Box::new(last)),
        }
        Some(refusal)
    }

    /// The status of every limit, if there is too little of one.
    fn short_statuses(
        &self,
        image: &Image,
        amounts: &Deltas,
        config: &BucketConfig,
        now: Timestamp,
    ) -> Option<Vec<LimitStatus>> {
        if !config.matches(image) {
            return None;
        }
        let since = image.elapsed(now);
        let is_short = |(limit, amount): &(LimitName, i128)| {
            let on_item = image.limits.get(limit);
            on_item.is_some_and(|on_item| on_item.token_bucket.available(since) < *amount)
        };
        if !amounts.iter().any(is_short) {
            return None;
        }
        // Both are in order of name, and the bucket has every limit of the configuration: it matches.
        let mut on_item = image.limits.iter();
        Some(limit_statuses(&self.key, config, amounts, |limit, amount| {
            let (_, on_item) = on_item.find(|(name, _)| *name == limit.name())?;
            let token_bucket = &on_item.token_bucket;
            Some((
                token_bucket.available(since),
                token_bucket.wait_for(since, amount),
            ))
        }))
    }
}
