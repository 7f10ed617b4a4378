//! Counters, gauges and histograms, through the facade of the crate [`metrics`](https://docs.rs/metrics) (feature
//! `metrics`).
//!
//! Install a recorder of your choice, such as `metrics-exporter-prometheus`, before the limiter is built, and call
//! [`describe`] once. What happens is recorded as it happens. What is a state, such as that of the circuit breaker, is
//! recorded at most once a second with the acquires, and by
//! [`RateLimiter::publish_metrics`](crate::RateLimiter::publish_metrics). [`METRICS`] lists all of them.
//!
//! Labels never have entity ids. Resources beyond the first 1,000 of a limiter are `_other`, because callers may choose
//! them.

#[cfg(feature = "metrics")]
mod bounded;
#[cfg(feature = "metrics")]
mod list;
#[cfg(not(feature = "metrics"))]
mod off;
#[cfg(feature = "metrics")]
mod publish;
#[cfg(feature = "metrics")]
mod recorded;

#[cfg(feature = "metrics")]
pub use list::{METRICS, Metric, MetricKind, describe};
#[cfg(not(feature = "metrics"))]
pub(crate) use off::{Metrics, Timer};
#[cfg(feature = "metrics")]
pub(crate) use recorded::{Metrics, Timer};
