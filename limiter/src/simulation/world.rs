//! The table of the simulation, which interprets bucket writes. Limiters reach it through a [`Port`](super::port::Port).

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

use zae_limiter_schema::bucket::{
    Attr, Attributes, BucketKey, BucketWrite, Etag, Refused, Scalar, WriteKind,
};
use zae_limiter_schema::keys::{self, Key};
use zae_limiter_schema::{EntityId, Item, LimitSet, Mode, Resource, Timestamp};

use super::Mutation;
use super::broken::broken;
use super::clock::SimClock;
use super::config::Configuration;
use super::faults::{Scenario, Weather};
use super::oracle::{Oracle, Violation};
use super::sdk::SdkTable;
use super::top_ups::Records;
use super::traffic::{BUDGET, RESOURCE};
use crate::store::{ItemsRead, ItemsWanted, WriteOutcome};

/// The table, and everything that is known about what happened to it.
#[derive(Debug)]
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) items: BTreeMap<BucketKey, Attributes>,
    /// Items as they were before their last write.
    behind: BTreeMap<BucketKey, Attributes>,
    pub(super) oracle: Oracle,
    pub(super) sdk: Option<Arc<SdkTable>>,
    pub(super) clock: SimClock,
    pub(super) config: Configuration,
    random: fastrand::Rng,
    /// Bucket writes that arrived, refused ones included.
    pub(super) attempts: u64,
    /// Reads of a bucket alone.
    pub(super) reads: u64,
    /// The writes per second that an item takes, in runs where items are throttled.
    pub(super) throttling: Option<super::throttling::Throttling>,
    /// Requests that were sent, whatever became of them.
    pub(super) requests: u64,
    weather: Weather,
    /// Since when the weather is as it is.
    pub(super) weather_since: i64,
    /// Nobody responds to writes of this entity's bucket.
    pub(super) silent_entity: Option<EntityId>,
    /// Faults are over: whatever is left is written now.
    pub(super) calm: bool,
    /// The last write of anybody on an item, for the rule that is broken.
    last_writer: BTreeMap<BucketKey, i128>,
    /// Top-ups that were made.
    pub(super) records: Records,
    trace: DefaultHasher,
}

pub(super) type Shared = Arc<Mutex<World>>;

pub(super) fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl World {
    pub(super) fn new(scenario: Scenario, clock: SimClock, limits: LimitSet) -> Self {
        let oracle = Oracle::new(scenario.skew * 2, scenario.peers > 0);
        Self {
            random: fastrand::Rng::with_seed(scenario.seed ^ 0x5EED),
            config: Configuration::new(&scenario, clock.millis(), limits),
            scenario,
            items: BTreeMap::new(),
            behind: BTreeMap::new(),
            oracle,
            sdk: None,
            clock,
            attempts: 0,
            reads: 0,
            throttling: None,
            requests: 0,
            weather: Weather::Clear,
            weather_since: 0,
            silent_entity: None,
            calm: false,
            last_writer: BTreeMap::new(),
            records: Records::new(),
            trace: DefaultHasher::new(),
        }
    }

    pub(super) fn random(&mut self, thousandths: u32) -> bool {
        !self.calm && self.random.u32(0..1000) < thousandths
    }

    pub(super) fn set_weather(&mut self, weather: Weather) {
        (self.weather, self.weather_since) = (weather, self.clock.millis());
    }

    pub(super) fn weather(&self) -> Weather {
        if self.calm { Weather::Clear } else { self.weather }
    }

    /// Counts a request, and says what the weather makes of it.
    pub(super) fn request(&mut self) -> Weather {
        self.requests += 1;
        match self.weather() {
            Weather::BrownOut if self.random(300) => Weather::Clear,
            weather => weather,
        }
    }

    pub(super) fn between(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        self.random.u64(range)
    }

    /// A number that stands for everything that happened, in order.
    pub(super) fn trace_hash(&self) -> u64 {
        self.trace.finish()
    }

    pub(super) fn change_limits(&mut self, limits: LimitSet) {
        self.config.change_limits(self.clock.millis(), limits);
    }

    /// Somebody sets the mode of an entity, and refreshes its bucket if asked.
    pub(super) fn set_mode(&mut self, entity: &EntityId, mode: Mode, refreshes: bool) {
        let now = self.clock.millis();
        self.config.modes.set(entity, mode, refreshes, now);
        let buckets = self.items.iter_mut().filter(|(key, _)| key.entity == *entity);
        for (key, bucket) in buckets.filter(|_| refreshes) {
            self.behind.insert(key.clone(), bucket.clone());
            if let Some(Scalar::Text(etag)) = bucket.get(&Attr::Etag) {
                let bumped = Etag::from_stored(etag.clone()).bumped(Timestamp::from_millis(now));
                bucket.insert(Attr::Etag, Scalar::Text(bumped.as_str().into()));
            }
        }
    }

    /// The item, or the one before it for a read that may be behind.
    pub(super) fn item(&mut self, key: &BucketKey, consistent: bool) -> Option<&Attributes> {
        let stale = self.scenario.stale_reads;
        if !consistent && self.random(stale) {
            self.behind.get(key)
        } else {
            self.items.get(key)
        }
    }

    /// A configuration, an entity's record or a bucket.
    fn find(&mut self, key: &Key, consistent: bool) -> Option<Item> {
        let stale_reads = self.scenario.stale_reads;
        let stale = !consistent && self.scenario.config_changes && self.random(stale_reads);
        if let Some(item) = self.config.find(key, stale) {
            return Some(item);
        }
        let entity = EntityId::parse(key.pk.strip_prefix(keys::prefix::ENTITY)?).ok()?;
        let bucket = [RESOURCE, BUDGET].into_iter().find_map(|resource| {
            let bucket = BucketKey {
                entity: entity.clone(),
                resource: Resource::parse(resource).ok()?,
            };
            (*key == bucket.key()).then_some(bucket)
        });
        self.item(&bucket?, consistent).map(Attributes::to_item)
    }

    pub(super) fn read(&mut self, wanted: &ItemsWanted) -> ItemsRead {
        let keys = wanted.required.iter().chain(&wanted.optional);
        let consistent = wanted.consistent && self.scenario.mutation != Some(Mutation::InconsistentReload);
        let found = keys.filter_map(|key| Some((key.clone(), self.find(key, consistent)?)));
        ItemsRead {
            found: found.collect(),
            unread: HashMap::new(),
        }
    }

    /// The item is gone, and with it what it was before.
    pub(super) fn forget(&mut self, key: &BucketKey) {
        self.items.remove(key);
        self.behind.remove(key);
        self.config.forget(key);
    }

    /// Somebody deletes the bucket, full or not.
    pub(super) fn delete(&mut self, key: &BucketKey) {
        self.oracle.deleted(key, self.clock.millis());
        self.forget(key);
    }

    /// Something happened that must not.
    pub(super) fn broken_promise(&mut self, what: String) {
        let at = self.clock.millis() - super::clock::START;
        self.oracle.violations.push(Violation { at, what });
    }

    /// The SDK has another result than the interpreter.
    pub(super) fn differs(&mut self, difference: Option<String>) {
        let at = self.clock.millis() - super::clock::START;
        self.oracle
            .violations
            .extend(difference.map(|what| Violation { at, what }));
    }

    /// A write arrives where the item may be throttled.
    pub(super) fn take_in(&mut self, write: &BucketWrite, seen: &Attributes) -> WriteOutcome {
        let at = self.clock.millis();
        let item = self.throttling.as_mut();
        if item.is_some_and(|item| !item.admits(&write.key, at)) {
            return WriteOutcome::Throttled("simulated".to_owned());
        }
        self.arrive(write, seen)
    }

    /// A write arrives: it is applied whole or refused with the item.
    fn arrive(&mut self, write: &BucketWrite, seen: &Attributes) -> WriteOutcome {
        let at = self.clock.millis();
        self.attempts += 1;
        let before = self.items.get(&write.key).cloned().unwrap_or_default();
        let statement = broken(self.scenario.mutation, write, &before, seen);
        (at, write.slot.number, write.key.entity.as_str()).hash(&mut self.trace);
        if self.scenario.mutation == Some(Mutation::LastWriterInsteadOfSlots)
            && self.last_writer.get(&write.key) == Some(&write.slot.number)
        {
            return WriteOutcome::Refused(Some(before));
        }
        match before.apply(&statement) {
            Ok(mut after) => {
                1u8.hash(&mut self.trace);
                if let Some(what) = self.config.check(write, &after, at) {
                    let what = format!("{}: {what}", write.key.entity);
                    let at = at - super::clock::START;
                    self.oracle.violations.push(Violation { at, what });
                }
                self.oracle.applied(write, &after, at);
                if write.kind == WriteKind::Create {
                    for client in 0..self.scenario.legacy_slots {
                        let slot = Attr::parse(&format!("o_zz{client:02}"));
                        after.insert(slot, Scalar::Number(1));
                    }
                }
                self.last_writer.insert(write.key.clone(), write.slot.number);
                if let Some(before) = self.items.insert(write.key.clone(), after.clone()) {
                    self.behind.insert(write.key.clone(), before);
                }
                WriteOutcome::Done(after)
            }
            Err(Refused::Condition) => WriteOutcome::Refused(self.items.get(&write.key).cloned()),
            Err(Refused::NotANumber) => unreachable!("every attribute of a bucket is a number"),
        }
    }

    /// The response, or one that cannot be read.
    pub(super) fn garble(&mut self, outcome: WriteOutcome) -> WriteOutcome {
        let unreadable = self.scenario.unreadable;
        match outcome {
            WriteOutcome::Done(mut after) if unreadable > 0 && self.random(unreadable) => {
                after.insert(Attr::RefilledAt, Scalar::Text("garbled".into()));
                WriteOutcome::Done(after)
            }
            outcome => outcome,
        }
    }
}
