//! What is stored about limits and parents, and whether what buckets get comes from it.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter_schema::bucket::{Attr, Attributes, BucketKey, BucketWrite, Params, Row, WriteKind};
use zae_limiter_schema::keys::{self, Key};
use zae_limiter_schema::{
    ConfigLevel, ConfigRecord, EntityId, EntityRecord, Item, Limit, LimitName, LimitSet, Metadata, Resource,
    Timestamp,
};

use super::faults::Scenario;
use super::modes::Modes;
use super::traffic::{BUDGET, RESOURCE};

/// How long after it was read a configuration may be written to a bucket, in milliseconds.
const PARAMETERS_FRESH: i64 = 3_000;
/// A bucket may be created by an older one: configuration that cannot be read again stays in use.
const CREATION_FRESH: i64 = i64::MAX;

/// The entity whose calls may come with limits, and the one that has limits of its own.
pub(super) const WITH_GIVEN_LIMITS: &str = "a";
const WITH_OWN_LIMITS: &str = "b";

/// The stored configuration.
#[derive(Debug)]
pub(super) struct Configuration {
    /// The limits of both resources, and since when.
    versions: Vec<(i64, LimitSet)>,
    pub(super) parents: BTreeMap<EntityId, EntityId>,
    pub(super) modes: Modes,
    /// Entities that do not charge their parents.
    independent: BTreeSet<EntityId>,
    own_limits: bool,
    given_limits: bool,
    /// The version that each bucket has.
    written: BTreeMap<BucketKey, usize>,
}

fn entity(name: &str) -> EntityId {
    EntityId::parse(name).unwrap()
}

fn limits(rpm: (u64, u64), tpm: (u64, u64)) -> LimitSet {
    let limit = |name, (burst, amount)| Limit::custom(name, 1, burst, amount, 1).unwrap();
    LimitSet::new([limit("rpm", rpm), limit("tpm", tpm)]).unwrap()
}

/// The limits that calls come with.
pub(super) fn given_limits() -> LimitSet {
    limits((9, 6), (60, 40))
}

fn own_limits() -> LimitSet {
    limits((8, 8), (40, 25))
}

/// The parameters of the rates.
fn params(limits: &LimitSet) -> BTreeMap<LimitName, Params> {
    let params = limits
        .iter()
        .filter_map(|limit| Some((limit.name().clone(), Params::from(limit.rate()?))));
    params.collect()
}

impl Configuration {
    pub(super) fn new(scenario: &Scenario, at: i64, limits: LimitSet) -> Self {
        Self {
            versions: vec![(at, limits)],
            parents: BTreeMap::new(),
            modes: Modes::default(),
            independent: BTreeSet::new(),
            own_limits: scenario.own_limits,
            given_limits: scenario.given_limits > 0,
            written: BTreeMap::new(),
        }
    }

    pub(super) fn limits(&self) -> &LimitSet {
        &self.versions[self.versions.len() - 1].1
    }

    pub(super) fn change_limits(&mut self, at: i64, limits: LimitSet) {
        self.versions.push((at, limits));
    }

    /// Moves an entity to another parent, or lets one stop and start charging its parent.
    pub(super) fn change_family(&mut self, step: usize) {
        match step % 4 {
            0 => drop(self.independent.insert(entity("b"))),
            1 => drop(self.parents.insert(entity("a"), entity("q"))),
            2 => drop(self.independent.remove(&entity("b"))),
            _ => drop(self.parents.insert(entity("a"), entity("p"))),
        }
    }

    /// A configuration or an entity's record. A stale read of the resource's limits shows those before.
    pub(super) fn find(&self, key: &Key, stale: bool) -> Option<Item> {
        for resource in [RESOURCE, BUDGET] {
            let resource = Resource::parse(resource).ok()?;
            let level = ConfigLevel::Resource(resource.clone());
            if *key == keys::config(&level) {
                let before = self.versions.len().checked_sub(2).filter(|_| stale);
                let limits = before.map_or(self.limits(), |index| &self.versions[index].1);
                return Some(ConfigRecord::new(level, limits.clone()).to_item());
            }
            if let Some(record) = self.of_entity(key, &resource) {
                return Some(record.to_item());
            }
        }
        let id = EntityId::parse(key.pk.strip_prefix(keys::prefix::ENTITY)?).ok()?;
        if *key != keys::entity_meta(&id) {
            return None;
        }
        let record = EntityRecord {
            name: id.to_string(),
            parent: Some(self.parents.get(&id)?.clone()),
            cascade: !self.independent.contains(&id),
            id,
            metadata: Metadata::new(),
            created_at: Timestamp::MIN,
            version: 1,
            unknown: BTreeMap::new(),
        };
        Some(record.to_item())
    }

    /// What is stored for an entity on the resource.
    fn of_entity(&self, key: &Key, resource: &Resource) -> Option<ConfigRecord> {
        let id = EntityId::parse(key.pk.strip_prefix(keys::prefix::ENTITY)?).ok()?;
        let has_limits = self.own_limits && id.as_str() == WITH_OWN_LIMITS;
        let limits = if has_limits {
            own_limits()
        } else {
            LimitSet::default()
        };
        let record = ConfigRecord {
            mode: self.modes.of(&id),
            ..ConfigRecord::new(ConfigLevel::Entity(id, resource.clone()), limits)
        };
        let is_stored = has_limits || record.mode.is_some();
        (is_stored && *key == keys::config(&record.level)).then_some(record)
    }

    /// The entities that a call is charged to.
    pub(super) fn chain(&self, entity: &EntityId) -> Vec<EntityId> {
        let mut chain = vec![entity.clone()];
        while let Some(parent) = chain.last().and_then(|last| self.parents.get(last)) {
            chain.push(parent.clone());
        }
        chain
    }

    /// A write was applied at `at`. Parameters must be those of a configuration that was in force when the writer read it,
    /// a now ago, and never older than those that they replace. Only buckets of limits that are not the entity's own
    /// expire.
    pub(super) fn check(&mut self, write: &BucketWrite, after: &Attributes, at: i64) -> Option<&'static str> {
        let fresh = match write.kind {
            WriteKind::Reconfigure => PARAMETERS_FRESH,
            WriteKind::Create => CREATION_FRESH,
            WriteKind::Touch | WriteKind::Refill => return None,
        };
        let rows = write.rows.iter();
        let written: BTreeMap<_, _> = rows
            .filter_map(Row::rate)
            .filter_map(|row| row.params.map(|params| (row.limit.clone(), params)))
            .collect();
        let expires = after.number(&Attr::ExpiresAt).is_some();
        let name = write.key.entity.as_str();
        if self.given_limits && name == WITH_GIVEN_LIMITS && written == params(&given_limits()) {
            self.written.remove(&write.key);
            return (!expires).then_some("a bucket with the limits of a call never expires");
        }
        if self.own_limits && name == WITH_OWN_LIMITS {
            return (written != params(&own_limits()) || expires)
                .then_some("a bucket has other limits than its entity's own");
        }
        let version = self
            .versions
            .iter()
            .enumerate()
            .rposition(|(index, (_, limits))| {
                let until = self.versions.get(index + 1).map_or(i64::MAX, |(next, _)| *next);
                until >= at - fresh && params(limits) == written
            });
        let Some(version) = version else {
            return Some("parameters of an old configuration were written");
        };
        let before = self.written.insert(write.key.clone(), version);
        let replaces_newer = write.kind == WriteKind::Reconfigure && before > Some(version);
        replaces_newer.then_some("parameters were replaced by older ones")
    }

    pub(super) fn forget(&mut self, key: &BucketKey) {
        self.written.remove(key);
    }
}
