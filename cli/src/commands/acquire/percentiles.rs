//! Latency percentiles.

use std::time::Duration;

use serde::Serialize;

/// Latency percentiles in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Percentiles {
    /// Percentiles by nearest rank, so each is a latency that occurred. `None` if there are no latencies.
    pub(super) fn of(mut latencies: Vec<Duration>) -> Option<Self> {
        latencies.sort_unstable();
        let last = latencies.len().checked_sub(1)?;
        let at = |percent: usize| {
            let rank = (latencies.len() * percent).div_ceil(100).max(1) - 1;
            millis(latencies[rank.min(last)])
        };
        Some(Self {
            p50: at(50),
            p90: at(90),
            p99: at(99),
            max: millis(latencies[last]),
        })
    }
}

fn millis(latency: Duration) -> f64 {
    // Rounded to the microsecond; more digits would be noise.
    (latency.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_latencies_that_occurred() {
        let latencies = (1..=100).rev().map(Duration::from_millis).collect();
        let found = Percentiles::of(latencies);
        assert_eq!(
            found,
            Some(Percentiles {
                p50: 50.0,
                p90: 90.0,
                p99: 99.0,
                max: 100.0
            })
        );
        let one = Percentiles::of(vec![Duration::from_millis(7)]);
        assert_eq!(
            one,
            Some(Percentiles {
                p50: 7.0,
                p90: 7.0,
                p99: 7.0,
                max: 7.0
            })
        );
        assert_eq!(Percentiles::of(vec![]), None);
    }
}
