//! Calls that memory decides: refused by a bucket that was seen exhausted a moment ago, or covered by tokens in hand. They run
//! without waiting, and allocate nothing but what they return and, once a bucket, the place for its last refusal.

use std::sync::atomic::Ordering;

use super::call::{Acquire, Target};
use super::lease::Admission;
use crate::bucket::{AtOnce, Grant};
use crate::{Error, Result};

impl Acquire {
    /// The tokens or the refusal, if memory has the answer. Whatever is unusual about the call is left to the way through the
    /// queue: mistakes, limits or patience that came with it, a circuit breaker that is open, a limiter that is shut down.
    pub(super) fn at_once(&mut self) -> Option<Result<Grant>> {
        let Target::Known(known) = &self.target else {
            return None;
        };
        if self.extras.is_some()
            || self.asks_unknown_limit
            || self.amounts.is_empty()
            || self.buckets.is_closed()
        {
            return None;
        }
        let shared = self.buckets.shared();
        let elapsed = shared.clock.elapsed();
        if !known.holds(&shared.cache, elapsed) || shared.breaker_is_open() {
            return None;
        }
        let resource = &known.key.resource;
        let timer = shared.metrics.timer_from(elapsed);
        match known
            .queue()?
            .at_once(&mut self.amounts, &known.config, elapsed)?
        {
            AtOnce::Refused(refusal) => {
                // Counted while the call is under way, so that a shutdown writes the count.
                let _under_way = self.buckets.enter_briefly()?;
                shared.cache.count_hit();
                shared.counters().refused.fetch_add(1, Ordering::Relaxed);
                shared.count_known_refusal(known);
                tracing::debug!(%refusal, "a limit is exceeded");
                let refused = Error::Refused(refusal);
                let metrics = &shared.metrics;
                metrics.acquired(&self.buckets, resource, Err(&refused), timer);
                Some(Err(refused))
            }
            // Not counted as under way: a shutdown gives back what is in hand under the lock that this has just taken.
            AtOnce::Granted(grant) => {
                shared.cache.count_hit();
                shared.counters().granted.fetch_add(1, Ordering::Relaxed);
                let metrics = &shared.metrics;
                metrics.acquired(&self.buckets, resource, Ok(Admission::Counted), timer);
                Some(Ok(grant))
            }
        }
    }
}
