//! Calls that memory decides: refused by a bucket that was seen exhausted a moment ago, or covered by tokens in hand. They run
//! without waiting, and allocate nothing but what they return.

use std::sync::atomic::Ordering;

use super::call::{Acquire, Target};
use super::charge::Charge;
use super::lease::Lease;
use crate::bucket::AtOnce;
use crate::status::RateLimitExceeded;
use crate::{Error, Result};

impl Acquire {
    /// The result, if memory has it. Whatever is unusual about the call is left to the way through the queue: mistakes,
    /// limits or patience that came with it, a circuit breaker that is open, a limiter that is shut down.
    pub(super) fn at_once(&mut self) -> Option<Result<Lease>> {
        let Target::Known(known) = &self.target else {
            return None;
        };
        let is_plain = self.mistake.is_none() && self.limits.is_none() && self.patience.is_none();
        if !is_plain || self.asks_unknown_limit || self.amounts.is_empty() {
            return None;
        }
        let shared = self.buckets.shared();
        let elapsed = shared.clock.elapsed();
        if !known.holds(&shared.cache, elapsed) || shared.breaker_is_open() {
            return None;
        }
        let _under_way = self.buckets.enter_briefly()?;
        let queue = known.queue()?;
        let result = match queue.at_once(&self.amounts, &known.config, shared.now(), elapsed)? {
            AtOnce::Refused(statuses) => {
                shared.counters().refused.fetch_add(1, Ordering::Relaxed);
                shared.count_known_refusal(known);
                let refusal = RateLimitExceeded::new(statuses);
                tracing::debug!(%refusal, "a limit is exceeded");
                Err(Error::RateLimitExceeded(Box::new(refusal)))
            }
            AtOnce::Granted(grant) => {
                shared.counters().granted.fetch_add(1, Ordering::Relaxed);
                let charge = Charge {
                    queue,
                    config: known.config.clone(),
                    given: false,
                    amounts: std::mem::take(&mut self.amounts),
                };
                Ok(Lease::from_memory(
                    &self.buckets,
                    known,
                    self.policy,
                    charge,
                    grant,
                ))
            }
        };
        shared.cache.count_hit();
        let timer = shared.metrics.timer_from(elapsed);
        shared
            .metrics
            .acquired(&self.buckets, &known.key.resource, &result, timer);
        Some(result)
    }
}
