//! Configuration, kept for a while: shared levels by themselves, bounded, with one read in flight per part.

mod chain;
mod flight;
mod in_common;
mod last_known;
mod part;
mod plan;
mod state;
mod timed;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{ConfigLevel, EntityId, Item, Mode, OnUnavailable, Resource, Timestamp};

use crate::config::bucket_configs::BucketConfigs;
use crate::config::resolution::{
    self, ConfigOrigin, Defaults, OwnConfig, ResolvedConfig, SharedConfig, Switches,
};
use crate::store::{ConfigSource, ItemsWanted};
use crate::{Clock, Result};

use flight::{Reading, Wanted};
use last_known::LastKnown;
use part::PartsRead;
use plan::{CachedPart, Plan};
use state::{Known, State};

/// For how long after a write of its own a process reads consistently, so that it sees what it wrote.
const READ_OWN_WRITES: Duration = Duration::from_secs(5);

/// How well the configuration cache works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CacheStats {
    /// Lookups that were served from memory.
    pub hits: u64,
    /// Lookups that needed a read.
    pub misses: u64,
    /// Lookups that were served expired configuration because it could not be reloaded. Those that tried to
    /// reload it are misses too; the others are not hits.
    pub stale_hits: u64,
    /// Pairs of entity and resource held now.
    pub entries: u64,
    /// Levels that all entities share held now: the system and resources.
    pub levels: u64,
    /// Entries and levels dropped to make room.
    pub evictions: u64,
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

/// What a write of our own has made of a level's policy and mode.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PolicyAfter {
    /// These, or none.
    Is(Switches),
    /// Nobody knows: the write may have happened.
    Unknown,
}

/// What applies to an entity on a resource.
#[derive(Debug, Clone)]
pub(crate) struct Lookup {
    pub(crate) configs: Arc<BucketConfigs>,
    pub(crate) bucket: BucketImage,
}

impl Lookup {
    pub(crate) fn resolved(&self) -> &Arc<ResolvedConfig> {
        &self.configs.resolved
    }
}

/// How long and how much to keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheLimits {
    /// Zero turns the cache off.
    pub(crate) ttl: Duration,
    /// Pairs of entity and resource.
    pub(crate) entries: usize,
}

/// Configuration by level, and resolved by entity and resource.
#[derive(Debug)]
pub(crate) struct ConfigCache {
    source: Arc<dyn ConfigSource>,
    clock: Arc<dyn Clock>,
    defaults: Defaults,
    ttl: Duration,
    state: Mutex<State>,
    hits: AtomicU64,
    misses: AtomicU64,
    stale_hits: AtomicU64,
}

impl ConfigCache {
    pub(crate) fn new(
        source: Arc<dyn ConfigSource>,
        clock: Arc<dyn Clock>,
        defaults: Defaults,
        limits: CacheLimits,
    ) -> Self {
        let state = State::bounded(limits.entries);
        Self {
            source,
            clock,
            defaults,
            ttl: limits.ttl,
            state: Mutex::new(state),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            stale_hits: AtomicU64::new(0),
        }
    }

    /// The calendar, corrected by the server's.
    fn calendar(&self) -> Timestamp {
        self.clock.now().plus_millis(self.source.clock_offset())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves a cache that is at worst incomplete.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What applies, from memory if every level is fresh there, otherwise by one read of those that are not.
    pub(crate) async fn resolve(&self, entity: &EntityId, resource: &Resource) -> Result<Lookup> {
        let key = bucket_key(entity, resource);
        if let Some(lookup) = self.remembered(&key) {
            return Ok(lookup);
        }
        let loaded = self.load(vec![key], resource).await;
        only(loaded)
    }

    fn remembered(&self, key: &BucketKey) -> Option<Lookup> {
        let now = self.clock.elapsed();
        let Known { configs, stale } = self
            .state()
            .lookup(key, now, || self.calendar(), &self.defaults)?;
        let counter = if stale { &self.stale_hits } else { &self.hits };
        counter.fetch_add(1, Ordering::Relaxed);
        Some(Lookup {
            configs,
            bucket: BucketImage::NotRead,
        })
    }

    /// Reads what memory lacks for these entities, in one round trip.
    async fn load(&self, keys: Vec<BucketKey>, resource: &Resource) -> Vec<(BucketKey, Result<Lookup>)> {
        self.misses.fetch_add(keys.len() as u64, Ordering::Relaxed);
        let now = self.clock.elapsed();
        let (plan, reading) = {
            let mut state = self.state();
            let reading = if now < state.consistent_until {
                Reading::Consistent
            } else {
                Reading::Eventual
            };
            (state.plan(keys, resource, now), reading)
        };
        let read = if self.ttl.is_zero() {
            self.read_and_keep(&plan.wanted(), &reading).await
        } else {
            self.read_shared(plan.wanted(), &reading).await
        };
        self.decide(&plan, &read)
    }

    fn decide(&self, plan: &Plan, read: &PartsRead) -> Vec<(BucketKey, Result<Lookup>)> {
        let now = self.clock.elapsed();
        let decided = plan.fill(read).into_iter().map(|(key, decided)| {
            let lookup = decided.map(|decided| {
                self.stale_hits
                    .fetch_add(u64::from(decided.stale), Ordering::Relaxed);
                let calendar = self.calendar();
                let resolved = resolution::resolve(&decided.own, &decided.shared, &self.defaults, calendar);
                Lookup {
                    configs: self
                        .state()
                        .configs_of(&key, resolved, now, calendar, &self.defaults),
                    bucket: decided.bucket,
                }
            });
            (key, lookup)
        });
        decided.collect()
    }

    /// What applies, with all levels and the bucket read again, consistently and in one call; replaces what is kept.
    pub(crate) async fn reload_consistent(&self, entity: &EntityId, resource: &Resource) -> Result<Lookup> {
        let key = bucket_key(entity, resource);
        let plan = Plan {
            resource_name: resource.clone(),
            system: CachedPart::Missing,
            resource: CachedPart::Missing,
            own: vec![(key.clone(), CachedPart::Missing)],
        };
        let read = self.read_shared(plan.wanted(), &Reading::Together(key)).await;
        only(self.decide(&plan, &read))
    }

    /// Reads parts and keeps them, unless something was invalidated meanwhile.
    async fn read_and_keep(&self, wanted: &[Wanted], reading: &Reading) -> PartsRead {
        let keys = |optional| {
            let parts = wanted.iter().filter(move |wanted| wanted.optional == optional);
            parts.flat_map(|wanted| wanted.part.keys()).collect()
        };
        let load = self.state().load_starts(reading);
        let items = ItemsWanted {
            required: keys(false),
            optional: keys(true),
            consistent: load.consistent,
        };
        let read = self.source.read_items(&items).await;
        let read = PartsRead::decode(wanted.iter().map(|wanted| &wanted.part), &read);
        let now = self.clock.elapsed();
        let mut state = self.state();
        // What was read before a write of our own is older than what the write says.
        if state.is_current(load) {
            state.last_known.remember(&read);
            if !self.ttl.is_zero() {
                state.keep(&read, load, now, now + self.ttl);
            }
        }
        drop(state);
        read
    }

    /// The policy for when the table cannot be reached: from what was known last, however old. Never asks the network.
    pub(crate) fn policy(&self, entity: &EntityId, resource: &Resource) -> (OnUnavailable, ConfigOrigin) {
        let state = self.state();
        let in_entry = || {
            let resolved = state.last_resolved(&bucket_key(entity, resource))?;
            Some((resolved.on_unavailable, resolved.on_unavailable_from))
        };
        state
            .last_known
            .policy(entity, resource)
            .or_else(in_entry)
            .unwrap_or((self.defaults.on_unavailable, ConfigOrigin::Builder))
    }

    /// The mode for when nothing can be read: from what was known last, however old. Never asks the network.
    pub(crate) fn known_mode(&self, entity: &EntityId, resource: &Resource) -> (Mode, ConfigOrigin) {
        let state = self.state();
        let in_entry = || {
            let resolved = state.last_resolved(&bucket_key(entity, resource))?;
            Some((resolved.mode, resolved.mode_from))
        };
        state
            .last_known
            .mode(entity, resource)
            .or_else(in_entry)
            .unwrap_or((Mode::Enforce, ConfigOrigin::Builder))
    }

    /// How long what was read is used.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// What applied when it was last read, however long ago; the builder's defaults where that was never. Never asks the
    /// network.
    pub(crate) fn known(&self, entity: &EntityId, resource: &Resource) -> Arc<ResolvedConfig> {
        let (key, calendar) = (bucket_key(entity, resource), self.calendar());
        let state = self.state();
        let kept = state.resolved_at(&key, calendar, &self.defaults);
        let kept = kept.or_else(|| state.last_resolved(&key).cloned());
        drop(state);
        let (own, shared) = (OwnConfig::default(), SharedConfig::default());
        let nothing = || resolution::resolve(&own, &shared, &self.defaults, calendar);
        kept.unwrap_or_else(|| Arc::new(nothing()))
    }

    /// Forgets everything.
    pub(crate) fn invalidate_all(&self) {
        self.forget(|_| true, |_| true, |_| {});
    }

    /// Forgets everything that applies to one entity and resource, the levels that others share included.
    pub(crate) fn invalidate(&self, entity: &EntityId, resource: &Resource) {
        let level = ConfigLevel::Resource(resource.clone());
        self.forget(
            |key| key.entity == *entity && key.resource == *resource,
            |shared| [&level, &ConfigLevel::System].contains(&shared),
            |_| {},
        );
    }

    /// Forgets what belongs to one entity, on every resource.
    pub(crate) fn invalidate_entity(&self, entity: &EntityId) {
        self.forget(|key| key.entity == *entity, |_| false, |_| {});
    }

    /// Forgets a resource's level and what belongs to entities on that resource.
    pub(crate) fn invalidate_resource(&self, resource: &Resource) {
        let level = ConfigLevel::Resource(resource.clone());
        self.forget(|key| key.resource == *resource, |shared| *shared == level, |_| {});
    }

    /// Forgets everything about an entity whose configurations were deleted, its policies included.
    pub(crate) fn deleted_entity(&self, entity: &EntityId) {
        let learn = |known: &mut LastKnown| known.forget_entity(entity);
        self.forget(|key| key.entity == *entity, |_| false, learn);
    }

    /// Forgets a level, after this process has written it.
    pub(crate) fn wrote(&self, level: &ConfigLevel, policy: PolicyAfter) {
        let own = |key: &BucketKey| match level {
            ConfigLevel::Entity(entity, resource) => key.entity == *entity && key.resource == *resource,
            ConfigLevel::EntityDefault(entity) => key.entity == *entity,
            ConfigLevel::Resource(_) | ConfigLevel::System => false,
        };
        let learn = |known: &mut LastKnown| {
            if let PolicyAfter::Is(switches) = policy {
                known.note(level.clone(), switches);
            }
        };
        self.forget(own, |shared| shared == level, learn);
    }

    fn forget(
        &self,
        own: impl Fn(&BucketKey) -> bool,
        shared: impl Fn(&ConfigLevel) -> bool,
        learn: impl FnOnce(&mut LastKnown),
    ) {
        let until = self.clock.elapsed() + READ_OWN_WRITES;
        let mut state = self.state();
        state.consistent_until = until;
        state.forget(own, shared);
        learn(&mut state.last_known);
    }

    /// How well it works.
    pub(crate) fn stats(&self) -> CacheStats {
        let state = self.state();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            hits: count(&self.hits),
            misses: count(&self.misses),
            stale_hits: count(&self.stale_hits),
            entries: state.entries.len() as u64,
            levels: state.shared.len() as u64,
            evictions: state.evictions,
        }
    }
}

fn bucket_key(entity: &EntityId, resource: &Resource) -> BucketKey {
    BucketKey {
        entity: entity.clone(),
        resource: resource.clone(),
    }
}

/// The lookup of the only entity.
fn only(lookups: Vec<(BucketKey, Result<Lookup>)>) -> Result<Lookup> {
    let lookup = lookups.into_iter().next().map(|(_, lookup)| lookup);
    lookup.unwrap_or_else(|| Err(plan::not_read()))
}
