//! What the last call of an entity on a resource looked up, so that the next one finds it in one place: parsed names, the
//! bucket's configuration and its queue.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use hashbrown::HashTable;
use zae_limiter_schema::bucket::{BucketConfig, BucketKey};

use super::queue::BucketQueue;
use crate::config::cache::{ConfigCache, Validity};

/// At most this many calls are known. One more, and all are forgotten: the next call of each looks everything up again.
pub(super) const MAX_KNOWN: usize = 1_024;

/// A call that was made before and charged the entity's own bucket alone.
#[derive(Debug)]
pub(crate) struct KnownCall {
    pub(crate) key: BucketKey,
    pub(crate) config: Arc<BucketConfig>,
    /// Not kept alive: whether the bucket is forgotten is decided elsewhere.
    queue: Weak<BucketQueue>,
    validity: Validity,
    /// Refusals since they were last [taken](Self::take_refusals).
    refusals: AtomicU64,
}

impl KnownCall {
    pub(crate) fn new(queue: &Arc<BucketQueue>, config: Arc<BucketConfig>, validity: Validity) -> Self {
        Self {
            key: queue.key().clone(),
            config,
            queue: Arc::downgrade(queue),
            validity,
            refusals: AtomicU64::new(0),
        }
    }

    /// False if the configuration must be looked up again.
    pub(crate) fn holds(&self, cache: &ConfigCache, now: Duration) -> bool {
        cache.still_holds(self.validity, now)
    }

    /// The queue, if the bucket was not forgotten. It may be forgotten at this very moment: good for deciding from memory,
    /// and for writes only while it has tokens in hand, since no such bucket is forgotten.
    pub(crate) fn queue(&self) -> Option<Arc<BucketQueue>> {
        self.queue.upgrade()
    }

    /// Remembers the queue that the bucket has now, if it was forgotten since.
    pub(crate) fn follow(&self, queue: &Arc<BucketQueue>, calls: &KnownCalls) {
        if !std::ptr::eq(self.queue.as_ptr(), Arc::as_ptr(queue)) {
            calls.remember(Self::new(queue, self.config.clone(), self.validity));
        }
    }

    /// Counts a refusal. True if it is the first since they were taken.
    pub(super) fn add_refusal(&self) -> bool {
        self.refusals.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// The refusals since this was last called.
    pub(super) fn take_refusals(&self) -> u64 {
        self.refusals.swap(0, Ordering::Relaxed)
    }
}

/// Calls by entity and resource, found by text: looking one up allocates nothing.
#[derive(Debug)]
pub(crate) struct KnownCalls {
    calls: RwLock<HashTable<Arc<KnownCall>>>,
    hasher: NameHasher,
}

/// A fast hash with a random seed: callers choose the names, and must not be able to choose those that collide. There are too
/// few of them here to need the stronger hash of the maps with all entities.
#[derive(Debug)]
struct NameHasher {
    start: u64,
    seed: SharedSeed,
}

impl NameHasher {
    fn new() -> Self {
        let random = RandomState::new();
        Self {
            start: random.hash_one(0_u8),
            seed: SharedSeed::from_u64(random.hash_one(1_u8)),
        }
    }

    fn hash(&self, entity: &str, resource: &str) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.start, &self.seed);
        hasher.write(entity.as_bytes());
        hasher.write(resource.as_bytes());
        hasher.finish()
    }
}

impl KnownCalls {
    pub(crate) fn new() -> Self {
        Self {
            calls: RwLock::default(),
            hasher: NameHasher::new(),
        }
    }

    pub(crate) fn get(&self, entity: &str, resource: &str) -> Option<Arc<KnownCall>> {
        let hash = self.hasher.hash(entity, resource);
        let calls = self.calls.read().unwrap_or_else(PoisonError::into_inner);
        calls.find(hash, |call| call.is_of(entity, resource)).cloned()
    }

    pub(crate) fn remember(&self, call: KnownCall) {
        let hash_of = |call: &Arc<KnownCall>| {
            let BucketKey { entity, resource } = &call.key;
            self.hasher.hash(entity.as_str(), resource.as_str())
        };
        let call = Arc::new(call);
        let hash = hash_of(&call);
        let is_same = |known: &Arc<KnownCall>| known.key == call.key;
        let mut calls = self.calls.write().unwrap_or_else(PoisonError::into_inner);
        // What is forgotten is dropped after the lock.
        if let Some(known) = calls.find_mut(hash, is_same) {
            let forgotten = std::mem::replace(known, call);
            drop((calls, forgotten));
            return;
        }
        let is_full = calls.len() >= MAX_KNOWN;
        let forgotten = is_full.then(|| std::mem::take(&mut *calls));
        calls.insert_unique(hash, call, hash_of);
        drop((calls, forgotten));
    }
}

impl KnownCall {
    fn is_of(&self, entity: &str, resource: &str) -> bool {
        self.key.entity.as_str() == entity && self.key.resource.as_str() == resource
    }
}

#[cfg(test)]
mod tests {
    use super::NameHasher;

    #[test]
    fn each_limiter_hashes_names_in_its_own_way() {
        let (one, other) = (NameHasher::new(), NameHasher::new());
        assert_eq!(one.hash("user-1", "gpt-4"), one.hash("user-1", "gpt-4"));
        assert_ne!(one.hash("user-1", "gpt-4"), other.hash("user-1", "gpt-4"));
        assert_ne!(one.hash("user-1", "gpt-4"), one.hash("user-1g", "pt-4"));
    }
}
