//! Refusing a call without queueing it.

use std::time::Duration;

use zae_limiter_schema::Timestamp;
use zae_limiter_schema::bucket::BucketConfig;

use super::{LastSeen, QueueState};
use crate::bucket::deltas::Deltas;
use crate::bucket::limit_statuses::limit_statuses;
use crate::status::LimitStatus;

impl QueueState {
    /// The status of every limit, if the call would be refused by the bucket as last seen and nothing else is to be done:
    /// the same as queueing the call and asking for the [next](Self::next) step. Nothing in every other case.
    pub(crate) fn refuse_at_once(
        &self,
        amounts: &Deltas,
        config: &BucketConfig,
        now: Timestamp,
        elapsed: Duration,
    ) -> Option<Vec<LimitStatus>> {
        let LastSeen::Live(image, sighting) = &self.known else {
            return None;
        };
        let is_quiet = self.queue.is_empty() && self.current.is_none() && self.unresolved.is_empty();
        let may_refuse = sighting.proven && elapsed.saturating_sub(sighting.at) <= self.memory;
        if !is_quiet || !may_refuse || !config.matches(image) {
            return None;
        }
        let since = image.elapsed(now);
        let short = |limit, amount| {
            let on_item = image.limits.get(limit)?;
            (on_item.token_bucket.available(since) < amount).then_some(())
        };
        amounts.iter().find_map(|(limit, amount)| short(limit, *amount))?;
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
