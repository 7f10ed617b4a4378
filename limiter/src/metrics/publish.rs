//! What is a state, or counted elsewhere: recorded from time to time.

use std::sync::PoisonError;
use std::time::Duration;

use metrics::{counter, gauge};

use super::list;
use super::recorded::Metrics;
use crate::bucket::Buckets;
use crate::{BreakerState, CacheStats, CapacityMeter, ConsumedCapacity, LimiterStats, RateLimiter};

/// With traffic, states are recorded this often.
const INTERVAL: Duration = Duration::from_secs(1);

/// What was recorded last: counters grow by the difference.
#[derive(Debug, Default)]
pub(super) struct Published {
    at: Option<Duration>,
    stats: LimiterStats,
    cache: CacheStats,
    calls: u64,
}

impl Metrics {
    pub(super) fn publish_if_due(&self, buckets: &Buckets, now: Duration) {
        // A caller that finds it locked leaves it to the one that holds the lock.
        let Ok(mut published) = self.published.try_lock() else {
            return;
        };
        if published.at.is_none_or(|at| now.saturating_sub(at) >= INTERVAL) {
            published.publish(buckets, now);
        }
    }
}

impl Published {
    fn publish(&mut self, buckets: &Buckets, now: Duration) {
        self.at = Some(now);
        let shared = buckets.shared();
        let table = shared.table_name();
        let (stats, cache) = (buckets.stats(), shared.cache.stats());
        let counters = [
            (list::UNWRITTEN, stats.unwritten, self.stats.unwritten),
            (
                list::BREAKER_OPENED,
                stats.breaker_opened,
                self.stats.breaker_opened,
            ),
            (list::CHUNK_GRANTS, stats.chunk_grants, self.stats.chunk_grants),
            (
                list::REFILLS_SET_BACK,
                stats.refills_set_back,
                self.stats.refills_set_back,
            ),
            (list::CACHE_HITS, cache.hits, self.cache.hits),
            (list::CACHE_MISSES, cache.misses, self.cache.misses),
            (list::CACHE_STALE_HITS, cache.stale_hits, self.cache.stale_hits),
        ];
        for (name, now, before) in counters {
            counter!(name).increment(now.saturating_sub(before));
        }
        let gauges = [
            (list::BREAKER_OPEN, u64::from(stats.breaker == BreakerState::Open)),
            (list::CHUNK_TOKENS, stats.chunk_tokens),
            (list::BUCKETS, stats.buckets),
            (list::CACHE_ENTRIES, cache.entries),
        ];
        for (name, value) in gauges {
            #[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
            gauge!(name, "table" => table.clone()).set(value as f64);
        }
        #[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
        gauge!(list::CLOCK_OFFSET, "table" => table.clone()).set(stats.clock_offset_ms as f64 / 1000.0);
        if let Some(consumed) = shared.settings.meter.as_ref().map(CapacityMeter::consumed) {
            self.publish_consumed(&consumed, &table);
        }
        (self.stats, self.cache) = (stats, cache);
    }

    fn publish_consumed(&mut self, consumed: &ConsumedCapacity, table: &str) {
        counter!(list::TABLE_CALLS).increment(consumed.calls.saturating_sub(self.calls));
        self.calls = consumed.calls;
        gauge!(list::TABLE_READ_UNITS, "table" => table.to_owned()).set(consumed.read_units);
        gauge!(list::TABLE_WRITE_UNITS, "table" => table.to_owned()).set(consumed.write_units);
    }
}

impl RateLimiter {
    /// Records what is a state, such as that of the circuit breaker (feature `metrics`). Acquires do so once a second; call
    /// this on a timer, or before metrics are read, for limiters without traffic.
    pub fn publish_metrics(&self) {
        let shared = self.buckets().shared();
        let mut published = shared
            .metrics
            .published
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        published.publish(self.buckets(), shared.clock.elapsed());
    }
}
