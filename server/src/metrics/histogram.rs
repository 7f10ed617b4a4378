//! A histogram of durations with fixed buckets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds. The last bucket has none.
const BOUNDS: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

#[derive(Debug, Default)]
pub(super) struct Histogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_micros: AtomicU64,
}

/// What a histogram has counted.
#[derive(Debug, PartialEq)]
pub(super) struct Counted {
    /// For each bound in seconds, how many durations were not longer.
    pub(super) up_to: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) sum_seconds: f64,
}

impl Histogram {
    pub(super) fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < micros);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn counted(&self) -> Counted {
        let mut count = 0;
        let mut totals = self.counts.iter().map(|bucket| {
            count += bucket.load(Ordering::Relaxed);
            count
        });
        let up_to = BOUNDS
            .iter()
            .map(|bound| seconds(*bound))
            .zip(totals.by_ref())
            .collect();
        let count = totals.last().unwrap_or_default();
        Counted {
            up_to,
            count,
            sum_seconds: seconds(self.sum_micros.load(Ordering::Relaxed)),
        }
    }
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_in_the_first_bucket_that_holds_it_and_in_all_above() {
        let histogram = Histogram::default();
        for micros in [0, 500, 501, 20_000_000] {
            histogram.record(Duration::from_micros(micros));
        }
        let counted = histogram.counted();
        assert_eq!(counted.up_to[..3], [(0.0005, 2), (0.001, 3), (0.0025, 3)]);
        assert_eq!(counted.up_to.last(), Some(&(10.0, 3)));
        assert_eq!(counted.count, 4);
        assert!((counted.sum_seconds - 20.001_001).abs() < 1e-9);
    }
}
