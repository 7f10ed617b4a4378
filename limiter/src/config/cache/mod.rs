//! Resolved configuration, kept for a while: bounded, with one load in flight per key.

mod entries;
mod flight;
mod last_known;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zae_limiter_schema::{ConfigLevel, EntityId, Item, OnUnavailable, Resource};

use crate::config::resolution::{self, Defaults, Resolved, Source};
use crate::store::{ConfigSource, LoadedConfig};
use crate::{Clock, Result};

use entries::Entries;
use flight::Flights;
use last_known::LastKnown;

/// For how long after a write of its own a process reads consistently, so that it sees what it wrote.
const READ_OWN_WRITES: Duration = Duration::from_secs(5);

/// How well the configuration cache works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CacheStats {
    /// Lookups that were answered from memory.
    pub hits: u64,
    /// Lookups that were not.
    pub misses: u64,
    /// Entries held now.
    pub entries: u64,
    /// Entries dropped to make room.
    pub evictions: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BucketKey {
    entity: EntityId,
    resource: Resource,
}

/// The bucket, if reading the configuration brought it along.
#[derive(Debug, Clone)]
pub(crate) enum BucketImage {
    /// The configuration came from memory; nothing is known about the bucket.
    NotRead,
    /// There is none.
    Absent,
    /// As it was when it was read.
    Present(Arc<Item>),
}

/// What a write of our own has made of a level's policy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PolicyAfter {
    /// This one, or none.
    Is(Option<OnUnavailable>),
    /// Nobody knows: the write may have happened.
    Unknown,
}

/// The answer to "what applies here?".
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) bucket: BucketImage,
}

/// How long and how much to keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheLimits {
    /// Zero turns the cache off.
    pub(crate) ttl: Duration,
    pub(crate) entries: usize,
}

/// Resolved configuration by entity and resource.
#[derive(Debug)]
pub(crate) struct ConfigCache {
    source: Arc<dyn ConfigSource>,
    clock: Arc<dyn Clock>,
    defaults: Defaults,
    ttl: Duration,
    state: Mutex<State>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug)]
struct State {
    entries: Entries,
    flights: Flights,
    last_known: LastKnown,
    /// Counts invalidations: what was loaded before one must not be kept after it.
    epoch: u64,
    /// Until when, on the clock's time scale, loads are consistent.
    consistent_until: Duration,
}

impl ConfigCache {
    pub(crate) fn new(
        source: Arc<dyn ConfigSource>,
        clock: Arc<dyn Clock>,
        defaults: Defaults,
        limits: CacheLimits,
    ) -> Self {
        let state = State {
            entries: Entries::bounded(limits.entries),
            flights: Flights::default(),
            last_known: LastKnown::default(),
            epoch: 0,
            consistent_until: Duration::ZERO,
        };
        Self {
            source,
            clock,
            defaults,
            ttl: limits.ttl,
            state: Mutex::new(state),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves a cache that is at worst incomplete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What applies, from memory if it is fresh there, otherwise by one read.
    pub(crate) async fn resolve(&self, entity: &EntityId, resource: &Resource) -> Result<Lookup> {
        let key = BucketKey {
            entity: entity.clone(),
            resource: resource.clone(),
        };
        let now = self.clock.elapsed();
        if let Some(resolved) = self.state().entries.fresh(&key, now) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(Lookup {
                resolved,
                bucket: BucketImage::NotRead,
            });
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let consistent = now < self.state().consistent_until;
        if self.ttl.is_zero() {
            return self.load(&key, consistent).await;
        }
        self.join_load(key, consistent).await
    }

    /// What applies, read anew and consistently; replaces what is kept.
    pub(crate) async fn reload_consistent(&self, entity: &EntityId, resource: &Resource) -> Result<Lookup> {
        let key = BucketKey {
            entity: entity.clone(),
            resource: resource.clone(),
        };
        self.join_load(key, true).await
    }

    async fn load(&self, key: &BucketKey, consistent: bool) -> Result<Lookup> {
        let epoch = self.state().epoch;
        let loaded = self
            .source
            .load_config(&key.entity, &key.resource, consistent)
            .await?;
        let resolved = Arc::new(resolution::resolve(&loaded, &self.defaults));
        let mut state = self.state();
        // What was read before a write of our own is older than what the write says.
        if state.epoch == epoch {
            state.last_known.remember(&key.entity, &key.resource, &loaded);
        }
        drop(state);
        let bucket = loaded
            .bucket
            .map_or(BucketImage::Absent, |item| BucketImage::Present(Arc::new(item)));
        Ok(Lookup { resolved, bucket })
    }

    /// Loads and keeps, unless something was invalidated meanwhile.
    async fn load_and_keep(&self, key: &BucketKey, consistent: bool) -> Result<Lookup> {
        let epoch = self.state().epoch;
        let lookup = self.load(key, consistent).await?;
        if !self.ttl.is_zero() {
            let expires = self.clock.elapsed() + self.ttl;
            let mut state = self.state();
            if state.epoch == epoch {
                state
                    .entries
                    .insert(key.clone(), lookup.resolved.clone(), expires);
            }
        }
        Ok(lookup)
    }

    /// The policy for when the table cannot be reached: from what was known last, however old. Never asks the network.
    pub(crate) fn policy(&self, entity: &EntityId, resource: &Resource) -> (OnUnavailable, Source) {
        let key = BucketKey {
            entity: entity.clone(),
            resource: resource.clone(),
        };
        let state = self.state();
        let in_entry = || {
            let resolved = state.entries.any_age(&key)?;
            Some((resolved.on_unavailable, resolved.on_unavailable_from))
        };
        state
            .last_known
            .policy(entity, resource)
            .or_else(in_entry)
            .unwrap_or((self.defaults.on_unavailable, Source::Builder))
    }

    /// What applied when it was last read, however long ago; the builder's defaults where that was never. Never asks the
    /// network.
    pub(crate) fn known(&self, entity: &EntityId, resource: &Resource) -> Arc<Resolved> {
        let key = BucketKey {
            entity: entity.clone(),
            resource: resource.clone(),
        };
        let kept = self.state().entries.any_age(&key);
        kept.unwrap_or_else(|| Arc::new(resolution::resolve(&LoadedConfig::default(), &self.defaults)))
    }

    /// Forgets everything.
    pub(crate) fn invalidate_all(&self) {
        self.forget(|_| true, |_| {});
    }

    /// Forgets what is kept about one entity and resource.
    pub(crate) fn invalidate(&self, entity: &EntityId, resource: &Resource) {
        self.forget(|key| key.entity == *entity && key.resource == *resource, |_| {});
    }

    /// Forgets what is kept about one entity.
    pub(crate) fn invalidate_entity(&self, entity: &EntityId) {
        self.forget(|key| key.entity == *entity, |_| {});
    }

    /// Forgets everything about an entity whose configurations were deleted, its policies included.
    pub(crate) fn deleted_entity(&self, entity: &EntityId) {
        self.forget(|key| key.entity == *entity, |known| known.forget_entity(entity));
    }

    /// Forgets everything to which a level may apply, after this process has written it.
    pub(crate) fn wrote(&self, level: &ConfigLevel, policy: PolicyAfter) {
        let learn = |known: &mut LastKnown| {
            if let PolicyAfter::Is(policy) = policy {
                known.note(level.clone(), policy);
            }
        };
        match level {
            ConfigLevel::Entity(entity, resource) => {
                self.forget(|key| key.entity == *entity && key.resource == *resource, learn);
            }
            ConfigLevel::EntityDefault(entity) => self.forget(|key| key.entity == *entity, learn),
            ConfigLevel::Resource(resource) => self.forget(|key| key.resource == *resource, learn),
            ConfigLevel::System => self.forget(|_| true, learn),
        }
    }

    fn forget(&self, concerned: impl Fn(&BucketKey) -> bool, learn: impl FnOnce(&mut LastKnown)) {
        let until = self.clock.elapsed() + READ_OWN_WRITES;
        let mut state = self.state();
        state.epoch += 1;
        state.consistent_until = until;
        state.flights.clear();
        state.entries.remove(concerned);
        learn(&mut state.last_known);
    }

    /// How well it works.
    pub(crate) fn stats(&self) -> CacheStats {
        let state = self.state();
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: state.entries.len() as u64,
            evictions: state.entries.evictions(),
        }
    }
}
