//! Counters of the server, and all metrics in the text format of Prometheus.

mod exposition;
mod histogram;
mod status_counts;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zae_limiter::error::{Invalid, NotFound};
use zae_limiter::{Admission, BreakerState, CapacityMeter, Error, Lease, RateLimiter};

use exposition::Exposition;
use histogram::Histogram;
use status_counts::StatusCounts;

use crate::leases::Leases;

/// The most resources that are counted by name, since clients choose the names.
const MAX_RESOURCES: usize = 1_000;
/// The label of all further resources. No resource can have this name.
const OTHER: &str = "_other";

/// What is counted as it happens.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    resources: Mutex<HashMap<String, ResourceCounts>>,
    responses: StatusCounts,
    rls_responses: Mutex<BTreeMap<&'static str, u64>>,
    /// By mapping, of which there are as many as the mapping file has.
    rls_shadow_refusals: Mutex<BTreeMap<String, u64>>,
    latency: Histogram,
    meter: Option<CapacityMeter>,
}

#[derive(Debug, Default)]
struct ResourceCounts {
    outcomes: [u64; Outcome::ALL.len()],
    refusals: BTreeMap<String, u64>,
}

/// What came of an acquire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Granted,
    Uncounted,
    Refused,
    Unavailable,
    Failed,
}

impl Outcome {
    const ALL: [Self; 5] = [
        Self::Granted,
        Self::Uncounted,
        Self::Refused,
        Self::Unavailable,
        Self::Failed,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Uncounted => "uncounted",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }

    fn of(result: &Result<Lease, Error>) -> Option<Self> {
        Some(match result {
            Ok(lease) if lease.admission() == Admission::Counted => Self::Granted,
            Ok(_) => Self::Uncounted,
            Err(Error::Refused(_)) => Self::Refused,
            // Mistakes of clients are not acquires.
            Err(
                Error::Invalid(Invalid::Name(_) | Invalid::Argument { .. })
                | Error::NotFound(NotFound::Limits { .. }),
            ) => return None,
            Err(error) if error.is_unavailable() => Self::Unavailable,
            Err(_) => Self::Failed,
        })
    }
}

impl Metrics {
    pub(crate) fn new(meter: Option<CapacityMeter>) -> Self {
        Self {
            meter,
            ..Self::default()
        }
    }

    /// Counts an acquire.
    pub(crate) fn acquired(&self, resource: &str, result: &Result<Lease, Error>, time: Duration) {
        let Some(outcome) = Outcome::of(result) else {
            return;
        };
        self.latency.record(time);
        let mut resources = lock(&self.resources);
        let full = resources.len() >= MAX_RESOURCES;
        // Almost every resource is known already.
        let counts = match resources.get_mut(resource) {
            Some(counts) => counts,
            None => resources
                .entry(if full { OTHER } else { resource }.to_owned())
                .or_default(),
        };
        counts.outcomes[outcome as usize] += 1;
        if let Err(Error::Refused(refusal)) = result {
            for violation in refusal.refused_limits() {
                let limit = violation.limit.name().to_string();
                *counts.refusals.entry(limit).or_default() += 1;
            }
        }
    }

    /// Counts a response.
    pub(crate) fn responded(&self, status: u16) {
        self.responses.count(status);
    }

    /// Counts a response of the rate limit service of Envoy.
    pub(crate) fn rls_responded(&self, code: &'static str) {
        *lock(&self.rls_responses).entry(code).or_default() += 1;
    }

    /// Counts a refusal that the mappings in shadow mode turned into an admission.
    pub(crate) fn rls_shadow_refused(&self, mappings: &BTreeSet<String>) {
        let mut refusals = lock(&self.rls_shadow_refusals);
        for mapping in mappings {
            *refusals.entry(mapping.clone()).or_default() += 1;
        }
    }

    /// All metrics as text.
    pub(crate) fn text(&self, limiter: &RateLimiter, leases: &Leases, requests: usize) -> String {
        let mut text = Exposition::default();
        self.write_acquires(&mut text);
        text.metric(
            "zae_limiter_http_responses_total",
            "counter",
            "Responses by status.",
        );
        for (status, count) in self.responses.counted() {
            let status = status.to_string();
            text.sample("zae_limiter_http_responses_total", &[("status", &status)], count);
        }
        self.write_rls(&mut text);
        let gauges = [
            (
                "zae_limiter_http_requests",
                "Requests under /v1 that are being served.",
                requests,
            ),
            ("zae_limiter_leases", "Leases that are held.", leases.held()),
        ];
        for (name, help, value) in gauges {
            text.single(name, "gauge", help, value);
        }
        let help = "Leases that were committed because nobody ended them in time.";
        text.single(
            "zae_limiter_leases_expired_total",
            "counter",
            help,
            leases.expired(),
        );
        write_limiter(&mut text, limiter);
        if let Some(meter) = &self.meter {
            write_capacity(&mut text, meter);
        }
        text.finish()
    }

    fn write_rls(&self, text: &mut Exposition) {
        let name = "zae_limiter_rls_responses_total";
        text.metric(
            name,
            "counter",
            "Responses of the rate limit service of Envoy, by code.",
        );
        for (code, count) in &*lock(&self.rls_responses) {
            text.sample(name, &[("code", code)], count);
        }
        let name = "zae_limiter_rls_shadow_refusals_total";
        text.metric(
            name,
            "counter",
            "Refusals of mappings in shadow mode, by mapping.",
        );
        for (mapping, count) in &*lock(&self.rls_shadow_refusals) {
            text.sample(name, &[("mapping", mapping)], count);
        }
    }

    fn write_acquires(&self, text: &mut Exposition) {
        let resources = lock(&self.resources);
        let sorted: BTreeMap<_, _> = resources.iter().collect();
        let help = "Acquires by resource and outcome.";
        text.metric("zae_limiter_acquires_total", "counter", help);
        for (resource, counts) in &sorted {
            for outcome in Outcome::ALL {
                let labels = [("resource", resource.as_str()), ("outcome", outcome.as_str())];
                let count = counts.outcomes[outcome as usize];
                text.sample("zae_limiter_acquires_total", &labels, count);
            }
        }
        let help = "Exceeded limits of refused acquires.";
        text.metric("zae_limiter_refusals_total", "counter", help);
        for (resource, counts) in &sorted {
            for (limit, count) in &counts.refusals {
                let labels = [("resource", resource.as_str()), ("limit", limit.as_str())];
                text.sample("zae_limiter_refusals_total", &labels, count);
            }
        }
        let help = "How long acquires took, time waited for tokens included.";
        text.histogram(
            "zae_limiter_acquire_duration_seconds",
            help,
            &self.latency.counted(),
        );
    }
}

fn write_limiter(text: &mut Exposition, limiter: &RateLimiter) {
    let stats = limiter.stats();
    let cache = limiter.repository().cache_stats();
    for (name, help, value) in [
        (
            "zae_limiter_unwritten_changes_total",
            "Adjustments and refunds that could not be written and were given up.",
            stats.unwritten,
        ),
        (
            "zae_limiter_refill_went_back_total",
            "How often a bucket was seen to be refilled by a clock that is behind.",
            stats.refill_went_back,
        ),
        (
            "zae_limiter_chunk_grants_total",
            "How often tokens in hand were spent without a write.",
            stats.chunk_grants,
        ),
        (
            "zae_limiter_breaker_opened_total",
            "How often the circuit breaker has opened.",
            stats.breaker_opened,
        ),
        (
            "zae_limiter_config_cache_hits_total",
            "Lookups of limits answered from memory.",
            cache.hits,
        ),
        (
            "zae_limiter_config_cache_misses_total",
            "Lookups of limits that needed a read.",
            cache.misses,
        ),
        (
            "zae_limiter_config_cache_stale_hits_total",
            "Lookups answered with expired limits because they could not be reloaded.",
            cache.stale_hits,
        ),
        (
            "zae_limiter_config_cache_evictions_total",
            "Entries of the cache that were dropped to make room.",
            cache.evictions,
        ),
    ] {
        text.single(name, "counter", help, value);
    }
    for (name, help, value) in [
        (
            "zae_limiter_breaker_open",
            "1 while the circuit breaker is open, otherwise 0.",
            u64::from(stats.breaker == BreakerState::Open),
        ),
        (
            "zae_limiter_buckets",
            "Buckets that are kept in memory.",
            stats.buckets,
        ),
        (
            "zae_limiter_chunk_tokens",
            "Tokens in hand: taken from the table and not spent yet.",
            stats.chunk_tokens,
        ),
        (
            "zae_limiter_chunk_tokens_peak",
            "The most tokens that were in hand at one time.",
            stats.chunk_tokens_peak,
        ),
        (
            "zae_limiter_config_cache_entries",
            "Pairs of entity and resource in the cache.",
            cache.entries,
        ),
    ] {
        text.single(name, "gauge", help, value);
    }
    let help = "By how much the clock of the machine is corrected.";
    text.single(
        "zae_limiter_clock_offset_milliseconds",
        "gauge",
        help,
        stats.clock_offset_ms,
    );
}

fn write_capacity(text: &mut Exposition, meter: &CapacityMeter) {
    let consumed = meter.consumed();
    let help = "Calls to the table.";
    text.single("zae_limiter_table_calls_total", "counter", help, consumed.calls);
    for (name, help, value) in [
        (
            "zae_limiter_table_read_units_total",
            "Read capacity units.",
            consumed.read_units,
        ),
        (
            "zae_limiter_table_write_units_total",
            "Write capacity units.",
            consumed.write_units,
        ),
    ] {
        text.single(name, "counter", help, value);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_beyond_the_most_are_counted_together() {
        let metrics = Metrics::default();
        let failed = || {
            Err(Error::ShutDown {
                table: "limiter".to_owned(),
            })
        };
        for number in 0..MAX_RESOURCES + 5 {
            metrics.acquired(&format!("r{number}"), &failed(), Duration::ZERO);
        }
        metrics.acquired("r0", &failed(), Duration::ZERO);
        let resources = lock(&metrics.resources);
        assert_eq!(resources.len(), MAX_RESOURCES + 1);
        assert_eq!(resources[OTHER].outcomes[Outcome::Failed as usize], 5);
        assert_eq!(resources["r0"].outcomes[Outcome::Failed as usize], 2);
    }
}
