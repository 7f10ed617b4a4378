//! What the cache holds: the levels that all entities share, what belongs to each entity, and what follows from both.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use lru::LruCache;
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{ConfigLevel, EntityId, Resource, Timestamp};

use super::flight::{Flights, Reading};
use super::in_common::InCommon;
use super::last_known::LastKnown;
use super::part::PartsRead;
use super::plan::{CachedPart, Plan};
use super::timed::{Age, Timed};
use crate::Error;
use crate::config::bucket_configs::BucketConfigs;
use crate::config::resolution::{self, Defaults, LevelConfig, OwnConfig, ResolvedConfig, SharedConfig};

/// At most this many resources are kept, however many entries there may be.
const MAX_RESOURCES: usize = 10_000;

/// Everything the cache knows.
#[derive(Debug)]
pub(super) struct State {
    pub(super) entries: LruCache<BucketKey, Entry>,
    max_entries: usize,
    pub(super) shared: LruCache<ConfigLevel, Timed<Arc<LevelConfig>>>,
    in_common: InCommon,
    /// Entries and shared levels that made room for others.
    pub(super) evictions: u64,
    pub(super) flights: Flights,
    pub(super) last_known: LastKnown,
    /// Numbers loads and invalidations in their order.
    order: u64,
    /// What was loaded before the last invalidation must not be kept after it.
    invalidated: u64,
    /// Counts changes of what is kept: results from before one do not hold after it.
    generation: u64,
    /// Until when, on the clock's time scale, loads are consistent.
    pub(super) consistent_until: Duration,
    /// The last reload failed.
    reload_failing: bool,
}

/// What belongs to an entity on a resource, and the last result. Both are shared with all entities that have the same.
#[derive(Debug)]
pub(super) struct Entry {
    own: Timed<Arc<OwnConfig>>,
    result: Option<Arc<CachedResolution>>,
}

/// A configuration that was resolved from what belongs to an entity and the levels that all share.
#[derive(Debug)]
pub(super) struct CachedResolution {
    configs: Arc<BucketConfigs>,
    /// A shared level is stale.
    stale: bool,
    /// How long the shared levels stay as they are.
    validity: Validity,
}

impl CachedResolution {
    fn holds(&self, now: Duration, generation: u64) -> bool {
        now < self.validity.until && self.validity.generation == generation
    }

    /// What is built from it goes on being used if the next result is the same.
    fn outdated(&self) -> Arc<Self> {
        Arc::new(Self {
            configs: self.configs.clone(),
            validity: Validity {
                until: Duration::ZERO,
                ..self.validity
            },
            stale: self.stale,
        })
    }
}

/// What applies, from memory.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) configs: Arc<BucketConfigs>,
    pub(super) stale: bool,
}

/// How long a result holds: until this time, unless something that is kept changes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Validity {
    /// On the clock's time scale.
    until: Duration,
    generation: u64,
}

/// When a load began, and what it promises.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) started: u64,
    pub(super) consistent: bool,
    /// A bucket says that the configuration is another one.
    pub(super) unconfirmed: bool,
}

impl State {
    pub(super) fn bounded(entries: usize) -> Self {
        Self {
            entries: LruCache::unbounded(),
            max_entries: entries.max(1),
            shared: LruCache::unbounded(),
            in_common: InCommon::default(),
            evictions: 0,
            flights: Flights::default(),
            last_known: LastKnown::default(),
            order: 0,
            invalidated: 0,
            generation: 0,
            consistent_until: Duration::ZERO,
            reload_failing: false,
        }
    }

    fn next(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    pub(super) fn load_starts(&mut self, reading: &Reading) -> Load {
        Load {
            started: self.next(),
            consistent: reading.is_consistent(),
            unconfirmed: matches!(reading, Reading::Together(_)),
        }
    }

    /// True if nothing was invalidated since the load began.
    pub(super) fn is_current(&self, load: Load) -> bool {
        self.invalidated < load.started
    }

    /// What applies, if every level is known and need not be reloaded.
    pub(super) fn lookup(
        &mut self,
        key: &BucketKey,
        now: Duration,
        calendar: impl FnOnce() -> Timestamp,
        defaults: &Defaults,
    ) -> Option<Known> {
        let generation = self.generation;
        let entry = self.entries.get_mut(key)?;
        let own_age = entry.own.age(now);
        if own_age == Age::Expired {
            return None;
        }
        let known = |cached: &CachedResolution| Known {
            configs: cached.configs.clone(),
            stale: cached.stale || own_age == Age::Stale,
        };
        if let Some(result) = &entry.result
            && result.holds(now, generation)
        {
            return Some(known(result));
        }
        let in_common = self.in_common.resolution(&key.resource, &entry.own.value);
        let cached = if let Some(cached) = in_common.filter(|cached| cached.holds(now, generation)) {
            cached.clone()
        } else {
            let system = self.shared.peek(&ConfigLevel::System)?;
            let resource = self.shared.peek(&ConfigLevel::Resource(key.resource.clone()))?;
            let ages = [system.age(now), resource.age(now)];
            if ages.contains(&Age::Expired) {
                return None;
            }
            let shared = SharedConfig {
                resource: resource.value.clone(),
                system: system.value.clone(),
            };
            let calendar = calendar();
            let resolved = resolution::resolve(&entry.own.value, &shared, defaults, calendar);
            let ends = resolution::next_end(&entry.own.value, &shared, calendar);
            let ends = ends.map_or(Duration::MAX, |end| now + until(end, calendar));
            // What is built from an unchanged result goes on being used.
            let last = [in_common.cloned(), entry.result.take()];
            let mut last = last.into_iter().flatten().map(|cached| cached.configs.clone());
            let unchanged = last.find(|configs| *configs.resolved == resolved);
            let cached = Arc::new(CachedResolution {
                configs: unchanged.unwrap_or_else(|| Arc::new(BucketConfigs::of(resolved))),
                stale: ages.contains(&Age::Stale),
                validity: Validity {
                    until: system.unchanged_until().min(resource.unchanged_until()).min(ends),
                    generation,
                },
            });
            self.in_common
                .keep_resolution(&key.resource, &entry.own.value, &cached);
            cached
        };
        let known = known(&cached);
        entry.result = Some(cached);
        Some(known)
    }

    /// The configurations built from this result, if it is what memory says; otherwise new ones.
    pub(super) fn configs_of(
        &mut self,
        key: &BucketKey,
        resolved: ResolvedConfig,
        now: Duration,
        calendar: Timestamp,
        defaults: &Defaults,
    ) -> Arc<BucketConfigs> {
        let known = self.lookup(key, now, || calendar, defaults);
        let known = known.map(|known| known.configs);
        let same = known.filter(|configs| *configs.resolved == resolved);
        same.unwrap_or_else(|| Arc::new(BucketConfigs::of(resolved)))
    }

    /// What must be read for these entities.
    pub(super) fn plan(&mut self, keys: Vec<BucketKey>, resource: &Resource, now: Duration) -> Plan {
        let level = ConfigLevel::Resource(resource.clone());
        let own = keys.into_iter().map(|key| {
            let cached = CachedPart::of(self.entries.peek_mut(&key).map(|entry| &mut entry.own), now);
            (key, cached)
        });
        Plan {
            own: own.collect(),
            resource_name: resource.clone(),
            system: CachedPart::of(self.shared.get_mut(&ConfigLevel::System), now),
            resource: CachedPart::of(self.shared.get_mut(&level), now),
        }
    }

    /// Keeps what was read.
    pub(super) fn keep(&mut self, read: &PartsRead, load: Load, now: Duration, expires: Duration) {
        for (level, config) in &read.shared {
            match config {
                Ok(config) => self.keep_shared(level, config, load, expires),
                Err(error) => self.reload_failed(error, now, |state| state.shared.peek_mut(level)),
            }
        }
        for (key, own) in &read.own {
            match own {
                Ok(own) => self.keep_own(key, &own.config, load, expires),
                Err(error) => self.reload_failed(error, now, |state| {
                    state.entries.peek_mut(key).map(|entry| &mut entry.own)
                }),
            }
        }
        let failed = |error: &Error| error.is_unavailable();
        let all_read = !read.shared.values().any(|read| read.as_ref().is_err_and(failed))
            && !read.own.values().any(|read| read.as_ref().is_err_and(failed));
        if all_read && std::mem::take(&mut self.reload_failing) {
            tracing::info!("configuration can be read again");
        }
    }

    fn keep_shared(&mut self, level: &ConfigLevel, config: &Arc<LevelConfig>, load: Load, expires: Duration) {
        let kept = self.next();
        let present = self.shared.peek(level);
        if present.is_some_and(|present| load.is_older_than(present)) {
            return;
        }
        if present.is_none_or(|present| present.value != *config) {
            self.generation += 1;
        }
        let kept = Timed::until(expires, config.clone(), kept);
        let max_levels = self.max_entries.min(MAX_RESOURCES);
        self.evictions += put_bounded(&mut self.shared, level.clone(), kept, max_levels);
    }

    fn keep_own(&mut self, key: &BucketKey, config: &Arc<OwnConfig>, load: Load, expires: Duration) {
        let kept = self.next();
        let own = Timed::until(expires, self.in_common.own(config), kept);
        match self.entries.peek_mut(key) {
            Some(entry) if load.is_older_than(&entry.own) => {}
            Some(entry) => {
                if entry.own.value != own.value {
                    entry.result = entry.result.as_deref().map(CachedResolution::outdated);
                    self.generation += 1;
                }
                entry.own = own;
            }
            None => {
                // What it was before is not known any more, but may be in use.
                if load.unconfirmed {
                    self.generation += 1;
                }
                let entry = Entry { own, result: None };
                self.evictions += put_bounded(&mut self.entries, key.clone(), entry, self.max_entries);
            }
        }
    }

    fn reload_failed<T: 'static>(
        &mut self,
        error: &Error,
        now: Duration,
        part: impl FnOnce(&mut Self) -> Option<&mut Timed<T>>,
    ) {
        if !error.is_unavailable() {
            return;
        }
        let Some(part) = part(self) else { return };
        part.reload_failed(now);
        if !std::mem::replace(&mut self.reload_failing, true) {
            tracing::warn!(%error, "configuration cannot be reloaded; using what was read before");
        }
    }

    /// What applies at this time by what was last read, however long ago.
    pub(super) fn resolved_at(
        &self,
        key: &BucketKey,
        calendar: Timestamp,
        defaults: &Defaults,
    ) -> Option<Arc<ResolvedConfig>> {
        let own = &self.entries.peek(key)?.own.value;
        let level = |level| self.shared.peek(&level).map(|level| level.value.clone());
        let shared = SharedConfig {
            resource: level(ConfigLevel::Resource(key.resource.clone()))?,
            system: level(ConfigLevel::System)?,
        };
        Some(Arc::new(resolution::resolve(own, &shared, defaults, calendar)))
    }

    /// What applied when it was last looked up, however long ago.
    pub(super) fn last_resolved(&self, key: &BucketKey) -> Option<&Arc<ResolvedConfig>> {
        let result = self.entries.peek(key)?.result.as_ref()?;
        Some(&result.configs.resolved)
    }

    /// The parent that an entity was last seen to count on.
    pub(super) fn parent_hint(&self, key: &BucketKey) -> Option<&EntityId> {
        self.entries.peek(key)?.own.value.cascades_to()
    }

    /// True if what belongs to the entity must be read.
    pub(super) fn lacks_own(&self, key: &BucketKey, now: Duration) -> bool {
        let entry = self.entries.peek(key);
        entry.is_none_or(|entry| entry.own.age(now) == Age::Expired)
    }

    /// Drops parts, and what is being read.
    pub(super) fn forget(&mut self, own: impl Fn(&BucketKey) -> bool, shared: impl Fn(&ConfigLevel) -> bool) {
        self.invalidated = self.next();
        self.generation += 1;
        self.flights.clear();
        remove_where(&mut self.entries, own);
        remove_where(&mut self.shared, shared);
    }
}

impl Load {
    /// True if the value was put in place while this load was under way, and may be newer.
    fn is_older_than<T>(self, present: &Timed<T>) -> bool {
        !self.consistent && self.started < present.kept
    }
}

/// How long it is until then.
fn until(end: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(end.since(now)).unwrap_or(0))
}

/// Puts an entry into a cache of this size at most. Returns how many had to make room for it. A cache that is made with its
/// size would allocate all of it at once.
pub(super) fn put_bounded<K: Hash + Eq, V>(cache: &mut LruCache<K, V>, key: K, value: V, max: usize) -> u64 {
    let is_new = cache.put(key, value).is_none();
    let evicted = is_new && cache.len() > max && cache.pop_lru().is_some();
    u64::from(evicted)
}

/// Drops the entries with these keys.
fn remove_where<K: Hash + Eq + Clone, V>(cache: &mut LruCache<K, V>, concerned: impl Fn(&K) -> bool) {
    let keys = cache.iter().map(|(key, _)| key).filter(|key| concerned(key));
    for key in keys.cloned().collect::<Vec<_>>() {
        cache.pop(&key);
    }
}
