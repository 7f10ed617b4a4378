//! The metrics by name.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// A state.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    unit: Option<Unit>,
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Counter,
        labels,
        help,
        unit: None,
    }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric {
        kind: MetricKind::Gauge,
        ..counter(name, labels, help)
    }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    unit: Unit,
    help: &'static str,
) -> Metric {
    Metric {
        kind: MetricKind::Histogram,
        unit: Some(unit),
        ..counter(name, labels, help)
    }
}

pub(super) const ACQUIRES: &str = "zae_limiter_acquires_total";
pub(super) const REFUSALS: &str = "zae_limiter_refusals_total";
pub(super) const OBSERVED: &str = "zae_limiter_observed_refusals_total";
pub(super) const ACQUIRE_DURATION: &str = "zae_limiter_acquire_duration_seconds";
pub(super) const DEGRADED: &str = "zae_limiter_degraded_admissions_total";
pub(super) const WRITES: &str = "zae_limiter_bucket_writes_total";
pub(super) const RETRIES: &str = "zae_limiter_write_retries_total";
pub(super) const ACQUIRES_PER_WRITE: &str = "zae_limiter_acquires_per_write";
pub(super) const UNWRITTEN: &str = "zae_limiter_unwritten_changes_total";
pub(super) const BREAKER_OPENED: &str = "zae_limiter_breaker_opened_total";
pub(super) const BREAKER_OPEN: &str = "zae_limiter_breaker_open";
pub(super) const CHUNK_GRANTS: &str = "zae_limiter_chunk_grants_total";
pub(super) const CHUNK_TOKENS: &str = "zae_limiter_chunk_tokens";
pub(super) const BUCKETS: &str = "zae_limiter_buckets";
pub(super) const CLOCK_OFFSET: &str = "zae_limiter_clock_offset_seconds";
pub(super) const REFILLS_SET_BACK: &str = "zae_limiter_refills_set_back_total";
pub(super) const CACHE_HITS: &str = "zae_limiter_config_cache_hits_total";
pub(super) const CACHE_MISSES: &str = "zae_limiter_config_cache_misses_total";
pub(super) const CACHE_STALE_HITS: &str = "zae_limiter_config_cache_stale_hits_total";
pub(super) const CACHE_ENTRIES: &str = "zae_limiter_config_cache_entries";
pub(super) const TABLE_CALLS: &str = "zae_limiter_table_calls_total";
pub(super) const TABLE_READ_UNITS: &str = "zae_limiter_table_read_units";
pub(super) const TABLE_WRITE_UNITS: &str = "zae_limiter_table_write_units";

/// All metrics, as `docs/reference/metrics.md` lists them. Those of the table are recorded if the builder has a
/// [`meter`](crate::RateLimiterBuilder::meter).
pub const METRICS: [Metric; 23] = [
    counter(ACQUIRES, &["resource", "outcome"], "Acquires by outcome."),
    counter(REFUSALS, &["resource", "limit"], "Limits that refused acquires."),
    counter(
        OBSERVED,
        &["resource", "limit"],
        "Limits that would have refused acquires that passed because they are only observed.",
    ),
    histogram(
        ACQUIRE_DURATION,
        &["outcome"],
        Unit::Seconds,
        "How long acquires took, time waited for tokens included.",
    ),
    counter(
        DEGRADED,
        &["admission"],
        "Acquires that were admitted uncounted while the table was unavailable.",
    ),
    counter(
        WRITES,
        &["outcome"],
        "Writes to buckets. `condition_failed` and `conflict` mean contention with other processes.",
    ),
    counter(RETRIES, &[], "Writes to buckets that were sent again."),
    histogram(
        ACQUIRES_PER_WRITE,
        &[],
        Unit::Count,
        "How many acquires a write to a bucket carried: the combining factor.",
    ),
    counter(
        UNWRITTEN,
        &[],
        "Adjustments and refunds that could not be written and were given up.",
    ),
    counter(BREAKER_OPENED, &[], "How often the circuit breaker has opened."),
    gauge(
        BREAKER_OPEN,
        &["table"],
        "1 while the circuit breaker is open, otherwise 0.",
    ),
    counter(
        CHUNK_GRANTS,
        &[],
        "How often tokens of a chunk were spent without a write.",
    ),
    gauge(
        CHUNK_TOKENS,
        &["table"],
        "Tokens of chunks that are not spent yet.",
    ),
    gauge(BUCKETS, &["table"], "Buckets that are kept in memory."),
    gauge(
        CLOCK_OFFSET,
        &["table"],
        "By how much the clock of this machine is corrected.",
    ),
    counter(
        REFILLS_SET_BACK,
        &[],
        "Buckets whose last refill was in the future and was set back.",
    ),
    counter(CACHE_HITS, &[], "Lookups of limits served from memory."),
    counter(CACHE_MISSES, &[], "Lookups of limits that needed a read."),
    counter(
        CACHE_STALE_HITS,
        &[],
        "Lookups served with expired limits because they could not be reloaded.",
    ),
    gauge(
        CACHE_ENTRIES,
        &["table"],
        "Pairs of entity and resource in the cache.",
    ),
    counter(TABLE_CALLS, &[], "Calls to the table."),
    gauge(
        TABLE_READ_UNITS,
        &["table"],
        "Read capacity units consumed since the limiter was built.",
    ),
    gauge(
        TABLE_WRITE_UNITS,
        &["table"],
        "Write capacity units consumed since the limiter was built.",
    ),
];

/// Describes all metrics to the recorder.
///
/// ```
/// zae_limiter::metrics::describe();
/// ```
pub fn describe() {
    for metric in METRICS {
        let unit = metric.unit.unwrap_or(Unit::Count);
        match metric.kind {
            MetricKind::Counter => describe_counter!(metric.name, unit, metric.help),
            MetricKind::Gauge => describe_gauge!(metric.name, unit, metric.help),
            MetricKind::Histogram => describe_histogram!(metric.name, unit, metric.help),
        }
    }
}
