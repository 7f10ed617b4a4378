//! Refused acquires, and those that would have been refused if the limits were enforced: counted in memory and written to their
//! buckets once a minute, for the usage.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use zae_limiter_schema::bucket::BucketKey;

use super::breaker::Operation;
use super::shared::{Phase, Shared};

/// A bucket is written at most this often.
const INTERVAL: Duration = Duration::from_secs(60);
/// Processes that refuse at the same time do not write at the same time.
const SPREAD: Duration = Duration::from_secs(5);
/// Refusals of more buckets than this within an interval are not counted.
const MAX_BUCKETS: usize = 10_000;

/// How often an entity was refused, and how often it would have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RefusalCount {
    pub(crate) refused: u64,
    pub(crate) observed: u64,
}

impl RefusalCount {
    const REFUSED: Self = Self {
        refused: 1,
        observed: 0,
    };
    const OBSERVED: Self = Self {
        refused: 0,
        observed: 1,
    };
}

impl std::ops::AddAssign for RefusalCount {
    fn add_assign(&mut self, more: Self) {
        self.refused += more.refused;
        self.observed += more.observed;
    }
}

/// Refusals that are not written yet.
#[derive(Debug, Default)]
pub(super) struct RefusalCounts {
    pending: Mutex<Pending>,
    /// Held while counts are written: a shutdown waits for the write that is under way.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Pending {
    counts: HashMap<BucketKey, RefusalCount>,
    /// A task will write them.
    scheduled: bool,
}

impl Pending {
    fn add(&mut self, key: &BucketKey, more: RefusalCount) {
        if let Some(count) = self.counts.get_mut(key) {
            *count += more;
        } else if self.counts.len() < MAX_BUCKETS {
            self.counts.insert(key.clone(), more);
        }
    }
}

impl RefusalCounts {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a refusal. True if the caller has to schedule the write.
    fn note(&self, key: &BucketKey, count: RefusalCount) -> bool {
        let mut pending = self.lock();
        pending.add(key, count);
        !std::mem::replace(&mut pending.scheduled, true)
    }

    fn keys(&self) -> Vec<BucketKey> {
        let pending = self.lock();
        pending.counts.keys().cloned().collect()
    }

    fn take(&self, key: &BucketKey) -> Option<RefusalCount> {
        self.lock().counts.remove(key)
    }

    /// True if nothing is left to write: the next refusal has to schedule it.
    fn ends_schedule(&self) -> bool {
        let mut pending = self.lock();
        pending.scheduled = !pending.counts.is_empty();
        !pending.scheduled
    }
}

/// The writes of a limiter, one an interval while there is something to write. If its runtime ends before, the next refusal
/// schedules another.
struct Scheduled {
    shared: Weak<Shared>,
    phase: watch::Receiver<Phase>,
    finished: bool,
}

impl Scheduled {
    /// Waits for the first pause, writes, and goes on while refusals are left or new ones have come.
    async fn run(mut self, mut pause: Duration) {
        while !self.finished {
            // A shutdown writes what is left by itself. A limiter that is dropped without one leaves nothing to write.
            let ended = self.phase.wait_for(|phase| *phase == Phase::Draining);
            if tokio::time::timeout(pause, ended).await.is_ok() {
                return;
            }
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            shared.write_refusals().await;
            self.finished = shared.is_draining() || shared.refusals.ends_schedule();
            pause = shared.pause_before_refusals();
        }
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.refusals.lock().scheduled = false;
        }
    }
}

impl Shared {
    /// Counts a refused acquire of an entity.
    pub(crate) fn count_refusal(self: &Arc<Self>, key: &BucketKey) {
        self.note_refusal(key, RefusalCount::REFUSED);
    }

    /// Counts an acquire of an entity that would have been refused if the limits were enforced.
    pub(crate) fn count_observed(self: &Arc<Self>, key: &BucketKey) {
        self.note_refusal(key, RefusalCount::OBSERVED);
    }

    fn note_refusal(self: &Arc<Self>, key: &BucketKey, count: RefusalCount) {
        if self.counts_refusals() && self.refusals.note(key, count) {
            self.schedule_refusals();
        }
    }

    fn counts_refusals(&self) -> bool {
        self.settings.count_refusals && self.store.counts_refusals()
    }

    fn schedule_refusals(self: &Arc<Self>) {
        let scheduled = Scheduled {
            shared: Arc::downgrade(self),
            phase: self.phase.subscribe(),
            finished: false,
        };
        let pause = self.pause_before_refusals();
        // Not part of the work that a shutdown waits for: it writes what is left itself.
        if let Some(runtime) = self.chosen_runtime() {
            runtime.spawn(scheduled.run(pause));
        }
    }

    fn pause_before_refusals(&self) -> Duration {
        INTERVAL + self.entropy.up_to(SPREAD)
    }

    /// Writes what was counted until the table does not respond; the rest stays for the next time. A write that failed is
    /// not tried again, because it could be counted twice.
    pub(super) async fn write_refusals(self: &Arc<Self>) {
        let _writing = self.refusals.writing.lock().await;
        for key in self.refusals.keys() {
            if self.check_breaker().await.is_err() {
                return;
            }
            let Some(count) = self.refusals.take(&key) else {
                continue;
            };
            let sent = self.clock.elapsed();
            let written = self.store.count_refusals(&key, count);
            let written = tokio::time::timeout(self.attempt_timeout(), written).await;
            match written.unwrap_or_else(|_| Err(self.unavailable("no response in time"))) {
                Ok(()) => self.responded(Operation::Write),
                Err(error) => {
                    tracing::debug!(entity = %key.entity, resource = %key.resource, ?count, %error, "refusals were not counted");
                    if error.is_unavailable() {
                        return self.no_response(Some(&key), sent, &error.to_string());
                    }
                    self.responded(Operation::Write);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use zae_limiter_schema::{EntityId, Resource};

    use super::*;

    fn key(number: usize) -> BucketKey {
        BucketKey {
            entity: EntityId::parse(format!("user-{number}")).unwrap(),
            resource: Resource::parse("gpt-4").unwrap(),
        }
    }

    #[test]
    fn the_first_refusal_schedules_and_the_number_of_buckets_is_bounded() {
        let counts = RefusalCounts::default();
        assert!(counts.note(&key(0), RefusalCount::REFUSED));
        for number in 0..=MAX_BUCKETS {
            assert!(!counts.note(&key(number), RefusalCount::OBSERVED));
        }
        assert_eq!(counts.keys().len(), MAX_BUCKETS);
        let both = RefusalCount {
            refused: 1,
            observed: 1,
        };
        assert_eq!(counts.take(&key(0)), Some(both));
        assert_eq!(counts.take(&key(0)), None);
    }

    #[test]
    fn the_schedule_ends_when_nothing_is_left() {
        let counts = RefusalCounts::default();
        assert!(counts.note(&key(0), RefusalCount::REFUSED));
        assert!(!counts.ends_schedule());
        assert!(!counts.note(&key(0), RefusalCount::REFUSED), "it goes on");
        assert_eq!(counts.take(&key(0)).map(|count| count.refused), Some(2));
        assert!(counts.ends_schedule());
        assert!(counts.note(&key(0), RefusalCount::REFUSED));
    }
}
