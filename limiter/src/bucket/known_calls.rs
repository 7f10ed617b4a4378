//! What the last call of an entity on a resource found out, so that the next one finds it in one place: parsed names, the
//! bucket's configuration and its queue.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use zae_limiter_schema::bucket::{BucketConfig, BucketKey};
use zae_limiter_schema::{EntityId, Resource};

use super::queue::BucketQueue;
use crate::config::cache::{ConfigCache, Validity};

/// At most this many calls are known. One more, and all are forgotten: the next call of each finds everything again.
const MAX_KNOWN: usize = 4_096;

/// A call that was made before and charged the entity's own bucket alone.
#[derive(Debug)]
pub(crate) struct KnownCall {
    pub(crate) key: BucketKey,
    pub(crate) config: Arc<BucketConfig>,
    /// Not kept alive: whether the bucket is forgotten is decided elsewhere.
    queue: Weak<BucketQueue>,
    validity: Validity,
}

impl KnownCall {
    pub(crate) fn new(queue: &Arc<BucketQueue>, config: Arc<BucketConfig>, validity: Validity) -> Self {
        Self {
            key: queue.key().clone(),
            config,
            queue: Arc::downgrade(queue),
            validity,
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
}

/// Calls by resource and entity, found by text: looking one up allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct KnownCalls {
    calls: RwLock<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    by_resource: HashMap<Resource, HashMap<EntityId, Arc<KnownCall>>>,
    count: usize,
}

impl KnownCalls {
    pub(crate) fn get(&self, entity: &str, resource: &str) -> Option<Arc<KnownCall>> {
        let calls = self.calls.read().unwrap_or_else(PoisonError::into_inner);
        calls.by_resource.get(resource)?.get(entity).cloned()
    }

    pub(crate) fn remember(&self, call: KnownCall) {
        let BucketKey { entity, resource } = call.key.clone();
        let mut calls = self.calls.write().unwrap_or_else(PoisonError::into_inner);
        let known = calls.by_resource.get(&resource);
        let is_known = known.is_some_and(|of_resource| of_resource.contains_key(&entity));
        let is_full = !is_known && calls.count >= MAX_KNOWN;
        // What is forgotten is dropped after the lock.
        let forgotten = is_full.then(|| std::mem::take(&mut *calls));
        let of_resource = calls.by_resource.entry(resource).or_default();
        let is_new = of_resource.insert(entity, Arc::new(call)).is_none();
        calls.count += usize::from(is_new);
        drop(calls);
        drop(forgotten);
    }
}
