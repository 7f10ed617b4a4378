//! What is kept for each bucket, the latest used first to stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use zae_limiter_schema::bucket::BucketKey;

/// How many are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capacity {
    /// Idle ones beyond this number are forgotten.
    pub(crate) idle: usize,
    /// There are never more than this, idle or not.
    pub(crate) max: usize,
}

/// Things by bucket. Those that were not used for longest are forgotten, as far as they are idle.
#[derive(Debug)]
pub(crate) struct BoundedMap<T> {
    by_bucket: BTreeMap<BucketKey, Entry<T>>,
    capacity: Capacity,
    /// The next time to look for idle ones is when there are this many: a scan is slow.
    look_at: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry<T> {
    item: Arc<T>,
    used: u64,
}

impl<T> BoundedMap<T> {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            by_bucket: BTreeMap::new(),
            capacity,
            look_at: capacity.idle,
            uses: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_bucket.len()
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.by_bucket.values().map(|entry| entry.item.clone()).collect()
    }

    /// What is kept for a bucket, which is used now.
    pub(crate) fn get(&mut self, key: &BucketKey) -> Option<Arc<T>> {
        self.uses += 1;
        let entry = self.by_bucket.get_mut(key)?;
        entry.used = self.uses;
        Some(entry.item.clone())
    }

    /// Keeps one more, if there is capacity for it; forgets idle ones that nobody else holds.
    pub(crate) fn add(&mut self, key: BucketKey, item: Arc<T>, is_idle: impl Fn(&T) -> bool) -> bool {
        if self.len() >= self.look_at || self.len() >= self.capacity.max {
            self.forget(is_idle);
            self.look_at = self.capacity.idle.max(self.len() + self.step());
        }
        if self.len() >= self.capacity.max {
            return false;
        }
        self.uses += 1;
        let used = self.uses;
        self.by_bucket.insert(key, Entry { item, used });
        true
    }

    /// A tenth at a time, so that it is rarely done.
    fn step(&self) -> usize {
        (self.capacity.idle / 10).max(1)
    }

    fn forget(&mut self, is_idle: impl Fn(&T) -> bool) {
        let idle = self
            .by_bucket
            .iter()
            .filter(|(_, entry)| Arc::strong_count(&entry.item) == 1 && is_idle(&entry.item));
        let mut oldest: Vec<_> = idle.map(|(key, entry)| (entry.used, key.clone())).collect();
        oldest.sort_unstable_by_key(|(used, _)| *used);
        let beyond = (self.len() + self.step()).saturating_sub(self.capacity.idle);
        for (_, key) in oldest.into_iter().take(beyond) {
            self.by_bucket.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
