//! Refused acquires, counted in memory and written to their buckets once a minute, for the usage.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{EntityId, Resource};

use super::shared::Shared;

/// A bucket is written at most this often.
const INTERVAL: Duration = Duration::from_secs(60);
/// Processes that refuse at the same time do not write at the same time.
const SPREAD: Duration = Duration::from_secs(5);
/// Refusals of more buckets than this within an interval are not counted.
const MAX_BUCKETS: usize = 10_000;

/// Refusals that are not written yet.
#[derive(Debug, Default)]
pub(super) struct RefusalCounts(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    counts: HashMap<BucketKey, u64>,
    /// A task will write them.
    scheduled: bool,
}

impl RefusalCounts {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a refusal. True if the caller has to schedule the write.
    fn note(&self, key: BucketKey) -> bool {
        let mut pending = self.lock();
        if pending.counts.len() < MAX_BUCKETS || pending.counts.contains_key(&key) {
            *pending.counts.entry(key).or_default() += 1;
        }
        !std::mem::replace(&mut pending.scheduled, true)
    }

    fn take(&self) -> HashMap<BucketKey, u64> {
        std::mem::take(&mut self.lock().counts)
    }
}

/// A scheduled write. Dropped, be it unfinished with its runtime, it lets the next refusal schedule another.
struct Scheduled(Weak<Shared>);

impl Scheduled {
    async fn write(self) {
        if let Some(shared) = self.0.upgrade() {
            shared.write_refusals().await;
        }
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.refusals.lock().scheduled = false;
        }
    }
}

impl Shared {
    /// Counts a refused acquire of an entity.
    pub(crate) fn count_refusal(self: &Arc<Self>, entity: &EntityId, resource: &Resource) {
        if !self.settings.count_refusals || !self.store.counts_refusals() {
            return;
        }
        let key = BucketKey {
            entity: entity.clone(),
            resource: resource.clone(),
        };
        if self.refusals.note(key) {
            let scheduled = Scheduled(Arc::downgrade(self));
            let pause = INTERVAL + self.entropy.up_to(SPREAD);
            // Not part of the work that a shutdown waits for: it writes what is left itself.
            if let Some(runtime) = self.chosen_runtime() {
                runtime.spawn(async move {
                    tokio::time::sleep(pause).await;
                    scheduled.write().await;
                });
            }
        }
    }

    /// Writes what was counted. What cannot be written is not tried again, because it could be counted twice.
    pub(super) async fn write_refusals(&self) {
        for (key, count) in self.refusals.take() {
            if let Err(error) = self.store.count_refusals(&key, count).await {
                tracing::debug!(entity = %key.entity, resource = %key.resource, count, %error, "refusals were not counted");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

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
        assert!(counts.note(key(0)));
        for number in 0..=MAX_BUCKETS {
            assert!(!counts.note(key(number)));
        }
        let taken = counts.take();
        assert_eq!(taken.len(), MAX_BUCKETS);
        assert_eq!(taken[&key(0)], 2);
        assert!(counts.take().is_empty());
    }
}
