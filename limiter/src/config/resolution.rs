//! Which limits and which policy apply, and where they come from. Pure.

use std::fmt;
use std::sync::Arc;

use zae_limiter_schema::money::Prices;
use zae_limiter_schema::{
    ConfigRecord, EntityId, EntityRecord, LevelKind, LimitSet, Mode, OnUnavailable, TemporaryLimits,
    Timestamp,
};

/// Where a resolved value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigOrigin {
    /// Passed with the call.
    Call,
    /// Stored for the entity and resource.
    Entity,
    /// Stored for the entity on every resource.
    EntityDefault,
    /// Stored for the resource.
    Resource,
    /// Stored for the system.
    System,
    /// Set with the limiter's builder, or the builder's default.
    Builder,
}

impl ConfigOrigin {
    /// `call`, `entity`, `entity_default`, `resource`, `system` or `builder`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Entity => "entity",
            Self::EntityDefault => "entity_default",
            Self::Resource => "resource",
            Self::System => "system",
            Self::Builder => "builder",
        }
    }
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<LevelKind> for ConfigOrigin {
    fn from(kind: LevelKind) -> Self {
        match kind {
            LevelKind::Entity => Self::Entity,
            LevelKind::EntityDefault => Self::EntityDefault,
            LevelKind::Resource => Self::Resource,
            LevelKind::System => Self::System,
        }
    }
}

/// What applies to an entity on a resource.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResolvedConfig {
    /// The limits. Empty if none are configured anywhere.
    pub limits: LimitSet,
    /// The level that the limits come from. None if there are no limits.
    pub limits_from: Option<ConfigOrigin>,
    /// When the limits end, if they were set until a time.
    pub limits_until: Option<Timestamp>,
    /// What happens while the table cannot be reached.
    pub on_unavailable: OnUnavailable,
    /// Where that policy came from.
    pub on_unavailable_from: ConfigOrigin,
    /// Whether the limits are enforced.
    pub mode: Mode,
    /// Where the mode comes from; [`ConfigOrigin::Builder`] if no level has one.
    pub mode_from: ConfigOrigin,
    /// The prices of the resource, else those of the system. None if neither has any.
    pub prices: Option<Arc<Prices>>,
    /// The entity's parent. Parent and cascade flag come from the entity's own record.
    pub parent: Option<EntityId>,
    /// Whether acquires count on the parent too.
    pub cascade: bool,
    /// Whether the entity has a record at all. Entities may be limited without one.
    pub entity_exists: bool,
}

impl ResolvedConfig {
    /// The same with limits that were passed with the call.
    #[must_use]
    pub fn with_limits(mut self, limits: LimitSet) -> Self {
        self.limits = limits;
        self.limits_from = Some(ConfigOrigin::Call);
        self.limits_until = None;
        self
    }

    /// True if the limits are the entity's own.
    pub(crate) fn has_own_limits(&self) -> bool {
        matches!(
            self.limits_from,
            Some(ConfigOrigin::Entity | ConfigOrigin::EntityDefault)
        )
    }

    /// The parent that acquires count on too: as the entity's record says, unless a call says otherwise.
    pub(crate) fn charged_parent(&self, call: Option<bool>) -> Option<&EntityId> {
        self.parent.as_ref().filter(|_| call.unwrap_or(self.cascade))
    }
}

/// What one level stores. A level without a record stores nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct LevelConfig {
    pub(crate) limits: LimitSet,
    pub(crate) temporary: Option<Arc<TemporaryLimits>>,
    pub(crate) switches: Switches,
    pub(crate) prices: Option<Arc<Prices>>,
}

/// What a level says about its limits: what happens while the table cannot be reached, and whether they are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Switches {
    pub(crate) on_unavailable: Option<OnUnavailable>,
    pub(crate) mode: Option<Mode>,
}

impl From<&ConfigRecord> for Switches {
    fn from(record: &ConfigRecord) -> Self {
        Self {
            on_unavailable: record.on_unavailable,
            mode: record.mode,
        }
    }
}

impl LevelConfig {
    /// The limits that apply at this time, and when they end.
    fn limits_at(&self, now: Timestamp) -> (&LimitSet, Option<Timestamp>) {
        match self.end_after(now).zip(self.temporary.as_ref()) {
            Some((end, temporary)) => (&temporary.limits, Some(end)),
            None => (&self.limits, None),
        }
    }

    /// When other limits apply by themselves.
    fn end_after(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.temporary.as_ref()?.until;
        (now < end).then_some(end)
    }
}

impl From<ConfigRecord> for LevelConfig {
    fn from(record: ConfigRecord) -> Self {
        Self {
            switches: Switches::from(&record),
            limits: record.limits,
            temporary: record.temporary.map(Arc::new),
            prices: record.prices.map(Arc::new),
        }
    }
}

/// What an entity's record says about its position in the tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TreePosition {
    pub(crate) parent: Option<EntityId>,
    pub(crate) cascade: bool,
}

impl From<EntityRecord> for TreePosition {
    fn from(record: EntityRecord) -> Self {
        Self {
            parent: record.parent,
            cascade: record.cascade,
        }
    }
}

/// What belongs to one entity alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct OwnConfig {
    /// For one resource.
    pub(crate) entity: LevelConfig,
    /// For every resource.
    pub(crate) entity_default: LevelConfig,
    /// Nothing if it has no record.
    pub(crate) position: Option<TreePosition>,
}

impl OwnConfig {
    /// The parent that acquires count on too.
    pub(crate) fn cascades_to(&self) -> Option<&EntityId> {
        let position = self.position.as_ref().filter(|position| position.cascade)?;
        position.parent.as_ref()
    }
}

/// What all entities share on one resource.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedConfig {
    pub(crate) resource: Arc<LevelConfig>,
    pub(crate) system: Arc<LevelConfig>,
}

/// The defaults of the builder, for what the table does not store.
#[derive(Debug, Clone)]
pub(crate) struct Defaults {
    pub(crate) limits: LimitSet,
    pub(crate) on_unavailable: OnUnavailable,
}

/// The most specific level that has limits decides about them, whole; the most specific one with a policy or a mode decides
/// about that. Prices belong to what is called, so that those of the resource or the system apply to every entity.
pub(crate) fn resolve(
    own: &OwnConfig,
    shared: &SharedConfig,
    defaults: &Defaults,
    now: Timestamp,
) -> ResolvedConfig {
    let levels: [(ConfigOrigin, &LevelConfig); 4] = [
        (ConfigOrigin::Entity, &own.entity),
        (ConfigOrigin::EntityDefault, &own.entity_default),
        (ConfigOrigin::Resource, &shared.resource),
        (ConfigOrigin::System, &shared.system),
    ];
    let builder_limits =
        (!defaults.limits.is_empty()).then_some((ConfigOrigin::Builder, (&defaults.limits, None)));
    let limits = levels
        .iter()
        .map(|(source, level)| (*source, level.limits_at(now)))
        .find(|(_, (limits, _))| !limits.is_empty())
        .or(builder_limits);
    let policy = levels
        .iter()
        .find_map(|(source, level)| Some((*source, level.switches.on_unavailable?)));
    let mode = levels
        .iter()
        .find_map(|(source, level)| Some((*source, level.switches.mode?)));
    let (on_unavailable_from, on_unavailable) =
        policy.unwrap_or((ConfigOrigin::Builder, defaults.on_unavailable));
    let (mode_from, mode) = mode.unwrap_or((ConfigOrigin::Builder, Mode::Enforce));
    let position = own.position.as_ref();
    ResolvedConfig {
        limits: limits.map(|(_, (limits, _))| limits.clone()).unwrap_or_default(),
        limits_from: limits.map(|(source, _)| source),
        limits_until: limits.and_then(|(_, (_, until))| until),
        on_unavailable,
        on_unavailable_from,
        mode,
        mode_from,
        prices: shared
            .resource
            .prices
            .clone()
            .or_else(|| shared.system.prices.clone()),
        parent: position.and_then(|position| position.parent.clone()),
        cascade: position.is_some_and(|position| position.cascade),
        entity_exists: position.is_some(),
    }
}

/// When the levels resolve to something else by themselves, if they ever do.
pub(crate) fn next_end(own: &OwnConfig, shared: &SharedConfig, now: Timestamp) -> Option<Timestamp> {
    let levels = [&own.entity, &own.entity_default, &shared.resource, &shared.system];
    levels.into_iter().filter_map(|level| level.end_after(now)).min()
}

#[cfg(test)]
mod tests;
