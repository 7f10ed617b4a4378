//! Calls that memory decides: refused by a bucket that was seen exhausted a moment ago, or covered by tokens in hand. They run
//! without waiting, and allocate nothing but what they return.

use super::call::{Acquire, Checked};
use super::charge::Charge;
use super::lease::Lease;
use crate::bucket::{AtOnce, KnownCall};
use crate::status::RateLimitExceeded;
use crate::{Error, Result};

impl Acquire {
    /// The result, if memory has it. Whatever is unusual about the call is left to the way through the queue: mistakes,
    /// limits or patience that came with it, a circuit breaker that is open, a limiter that is shut down.
    pub(super) fn at_once(&self) -> Option<Result<Lease>> {
        let known = self.target.known()?;
        let is_plain = self.mistake.is_none() && self.limits.is_none() && self.patience.is_none();
        if !is_plain || self.amounts.is_empty() {
            return None;
        }
        let shared = self.buckets.shared();
        let elapsed = shared.clock.elapsed();
        let has_all_limits = || {
            let mut asked = self.amounts.iter();
            asked.all(|(limit, _)| known.config.limits().get(limit).is_some())
        };
        if !known.holds(&shared.cache, elapsed) || !has_all_limits() {
            return None;
        }
        if shared.breaker_is_open() {
            return None;
        }
        let _under_way = self.buckets.enter().ok()?;
        let timer = shared.metrics.timer(&*shared.clock);
        let queue = known.queue()?;
        let result = match queue.at_once(&self.amounts, &known.config, shared.now(), elapsed)? {
            AtOnce::Refused(statuses) => {
                let refusal = RateLimitExceeded::new(statuses);
                Err(Error::RateLimitExceeded(Box::new(refusal)))
            }
            AtOnce::Granted(grant) => {
                let charge = Charge {
                    queue,
                    config: known.config.clone(),
                    given: false,
                    amounts: self.amounts.clone(),
                };
                let held = std::iter::once((charge, Some(grant)));
                Ok(Lease::counted(self.buckets.clone(), &self.checked(known), held))
            }
        };
        shared.cache.count_hit();
        self.buckets
            .count(&known.key.entity, &known.key.resource, &result, timer);
        Some(result)
    }

    fn checked(&self, known: &KnownCall) -> Checked {
        Checked {
            entity: known.key.entity.clone(),
            resource: known.key.resource.clone(),
            amounts: self.amounts.clone(),
            limits: None,
            policy: self.policy,
            known: None,
        }
    }
}
