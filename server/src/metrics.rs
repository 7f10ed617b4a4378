//! Metrics: recorded through the crate `metrics`, shown in the text format of Prometheus.
//!
//! The client records acquires, writes and its state. The server adds what only it knows.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use zae_limiter::{CapacityMeter, RateLimiter};

use crate::leases::Leases;

const HTTP_RESPONSES: &str = "zae_limiter_http_responses_total";
const HTTP_REQUESTS: &str = "zae_limiter_http_requests";
const LEASES: &str = "zae_limiter_leases";
const LEASES_EXPIRED: &str = "zae_limiter_leases_expired_total";
const RLS_RESPONSES: &str = "zae_limiter_rls_responses_total";
const RLS_SHADOW_REFUSALS: &str = "zae_limiter_rls_shadow_refusals_total";
const RLS_INVALID: &str = "zae_limiter_rls_invalid_descriptors_total";
const REFILL_WENT_BACK: &str = "zae_limiter_refill_went_back_total";
const CHUNK_TOKENS_PEAK: &str = "zae_limiter_chunk_tokens_peak";
const CLOCK_OFFSET: &str = "zae_limiter_clock_offset_milliseconds";
const CACHE_EVICTIONS: &str = "zae_limiter_config_cache_evictions_total";
const READ_UNITS: &str = "zae_limiter_table_read_units_total";
const WRITE_UNITS: &str = "zae_limiter_table_write_units_total";

/// The counters of the server, with their descriptions.
pub(crate) const COUNTERS: [(&str, &str); 9] = [
    (HTTP_RESPONSES, "HTTP responses by status."),
    (
        LEASES_EXPIRED,
        "Leases that expired and were committed by the server.",
    ),
    (RLS_RESPONSES, "Responses of Envoy's rate limit service, by code."),
    (
        RLS_SHADOW_REFUSALS,
        "Refusals of mappings in shadow mode, by mapping.",
    ),
    (
        RLS_INVALID,
        "Descriptors with values that cannot be counted, by mapping.",
    ),
    (
        REFILL_WENT_BACK,
        "Buckets refilled by a machine whose clock is behind.",
    ),
    (
        CACHE_EVICTIONS,
        "Configuration cache entries dropped to make room.",
    ),
    (READ_UNITS, "Read capacity units, rounded down."),
    (WRITE_UNITS, "Write capacity units, rounded down."),
];

/// The gauges of the server, with their descriptions.
pub(crate) const GAUGES: [(&str, &str); 4] = [
    (HTTP_REQUESTS, "Requests under /v1 in progress."),
    (LEASES, "Leases held by clients."),
    (CHUNK_TOKENS_PEAK, "Most tokens held in chunks at one time."),
    (CLOCK_OFFSET, "Correction applied to the clock of this machine."),
];

/// Upper bounds of the histogram of durations, in seconds.
const SECONDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// Upper bounds of the histogram of acquires per write.
const ACQUIRES: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];

/// What `/metrics` shows.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// None if the application has installed a recorder of its own.
    exporter: Option<PrometheusHandle>,
    meter: Option<CapacityMeter>,
}

impl Metrics {
    /// Installs a recorder for the process unless it has one.
    pub(crate) fn new(meter: Option<CapacityMeter>) -> Self {
        static EXPORTER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
        let exporter = EXPORTER.get_or_init(|| match install() {
            Ok(exporter) => exporter,
            Err(error) => {
                tracing::error!(%error, "metrics cannot be exported");
                None
            }
        });
        Self {
            exporter: exporter.clone(),
            meter,
        }
    }

    /// Counts an HTTP response.
    #[expect(clippy::unused_self, reason = "the recorder belongs to the process")]
    pub(crate) fn responded(&self, status: u16) {
        counter!(HTTP_RESPONSES, "status" => status.to_string()).increment(1);
    }

    /// Counts a response of the rate limit service of Envoy.
    #[expect(clippy::unused_self, reason = "the recorder belongs to the process")]
    pub(crate) fn rls_responded(&self, code: &'static str) {
        counter!(RLS_RESPONSES, "code" => code).increment(1);
    }

    /// Counts a refusal that the mappings in shadow mode turned into an admission.
    #[expect(clippy::unused_self, reason = "the recorder belongs to the process")]
    pub(crate) fn rls_shadow_refused(&self, mappings: &BTreeSet<String>) {
        for mapping in mappings {
            counter!(RLS_SHADOW_REFUSALS, "mapping" => mapping.clone()).increment(1);
        }
    }

    /// Counts a descriptor whose values cannot be counted.
    #[expect(clippy::unused_self, reason = "the recorder belongs to the process")]
    pub(crate) fn rls_invalid(&self, mapping: &str) {
        counter!(RLS_INVALID, "mapping" => mapping.to_owned()).increment(1);
    }

    /// Moves recorded samples into histograms. Without this they accumulate until the metrics are read.
    pub(crate) fn upkeep(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.run_upkeep();
        }
    }

    /// All metrics as text. None if the application records them.
    #[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
    pub(crate) fn text(&self, limiter: &RateLimiter, leases: &Leases, requests: usize) -> Option<String> {
        let exporter = self.exporter.as_ref()?;
        limiter.publish_metrics();
        let stats = limiter.stats();
        counter!(LEASES_EXPIRED).absolute(leases.expired());
        counter!(REFILL_WENT_BACK).absolute(stats.refill_went_back);
        counter!(CACHE_EVICTIONS).absolute(limiter.repository().cache_stats().evictions);
        gauge!(HTTP_REQUESTS).set(requests as f64);
        gauge!(LEASES).set(leases.held() as f64);
        gauge!(CHUNK_TOKENS_PEAK).set(stats.chunk_tokens_peak as f64);
        gauge!(CLOCK_OFFSET).set(stats.clock_offset_ms as f64);
        if let Some(consumed) = self.meter.as_ref().map(CapacityMeter::consumed) {
            counter!(READ_UNITS).absolute(whole(consumed.read_units));
            counter!(WRITE_UNITS).absolute(whole(consumed.write_units));
        }
        Some(exporter.render())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of capacity units is neither negative nor that large"
)]
fn whole(units: f64) -> u64 {
    units as u64
}

/// The exporter, or None if the process has a recorder already.
fn install() -> Result<Option<PrometheusHandle>, BuildError> {
    let per_write = Matcher::Full("zae_limiter_acquires_per_write".to_owned());
    let recorder = PrometheusBuilder::new()
        .set_buckets(&SECONDS)?
        .set_buckets_for_metric(per_write, &ACQUIRES)?
        .build_recorder();
    let exporter = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::info!("metrics go to the recorder that the application has installed");
        return Ok(None);
    }
    zae_limiter::metrics::describe();
    for (name, help) in COUNTERS {
        describe_counter!(name, Unit::Count, help);
    }
    for (name, help) in GAUGES {
        describe_gauge!(name, Unit::Count, help);
    }
    Ok(Some(exporter))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names in the guide's table of metrics.
    fn documented() -> BTreeSet<&'static str> {
        let guide = include_str!("../../docs/guide/server.md");
        let rows = guide.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.filter(|row| row.starts_with("zae_limiter_"))
            .filter_map(|row| row.split(['`', '{']).next())
            .collect()
    }

    #[test]
    fn the_guide_lists_every_metric_and_no_other() {
        let client = zae_limiter::metrics::METRICS.iter().map(|metric| metric.name);
        let server = COUNTERS.iter().chain(&GAUGES).map(|(name, _)| *name);
        assert_eq!(client.chain(server).collect::<BTreeSet<_>>(), documented());
    }
}
