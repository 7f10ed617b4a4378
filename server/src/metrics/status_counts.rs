//! How often each HTTP status was sent, without a lock.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

const FIRST: u16 = 100;
const STATUSES: usize = 500;

/// Counts of the statuses 100 to 599.
#[derive(Debug)]
pub(super) struct StatusCounts([AtomicU64; STATUSES]);

impl Default for StatusCounts {
    fn default() -> Self {
        Self(array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl StatusCounts {
    pub(super) fn count(&self, status: u16) {
        let index = status.checked_sub(FIRST).map(usize::from);
        if let Some(count) = index.and_then(|index| self.0.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The statuses that were sent, and how often.
    pub(super) fn counted(&self) -> impl Iterator<Item = (u16, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        (FIRST..).zip(counts).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_counted_and_what_is_none_is_not() {
        let counts = StatusCounts::default();
        for status in [200, 100, 200, 599, 99, 600] {
            counts.count(status);
        }
        let counted: Vec<_> = counts.counted().collect();
        assert_eq!(counted, [(100, 1), (200, 2), (599, 1)]);
    }
}
