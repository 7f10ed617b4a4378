//! Which limits and which policy apply, and who said so. Pure.

use std::fmt;

use zae_limiter_schema::{ConfigRecord, EntityId, LevelKind, LimitSet, OnUnavailable};

use crate::store::LoadedConfig;

/// Where a resolved value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
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
    /// Given to the limiter's builder, or the builder's default.
    Builder,
}

impl Source {
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

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<LevelKind> for Source {
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
pub struct Resolved {
    /// The limits. Empty if none are configured anywhere.
    pub limits: LimitSet,
    /// Where the limits came from; nothing if there are none.
    pub limits_from: Option<Source>,
    /// What happens while the table cannot be reached.
    pub on_unavailable: OnUnavailable,
    /// Where that policy came from.
    pub on_unavailable_from: Source,
    /// The entity's parent. Parent and cascade flag come from the entity's own record.
    pub parent: Option<EntityId>,
    /// Whether acquires count on the parent too.
    pub cascade: bool,
    /// Whether the entity has a record at all. Entities may be limited without one.
    pub entity_exists: bool,
}

impl Resolved {
    /// The same with limits that were passed with the call.
    #[must_use]
    pub fn with_limits(mut self, limits: LimitSet) -> Self {
        self.limits = limits;
        self.limits_from = Some(Source::Call);
        self
    }
}

/// What the builder says where the table says nothing.
#[derive(Debug, Clone)]
pub(crate) struct Defaults {
    pub(crate) limits: LimitSet,
    pub(crate) on_unavailable: OnUnavailable,
}

/// The most specific level that has limits decides about them, whole; the most specific one with a policy decides
/// about that.
pub(crate) fn resolve(loaded: &LoadedConfig, defaults: &Defaults) -> Resolved {
    let levels: [(Source, Option<&ConfigRecord>); 4] = [
        (Source::Entity, loaded.entity.as_ref()),
        (Source::EntityDefault, loaded.entity_default.as_ref()),
        (Source::Resource, loaded.resource.as_ref()),
        (Source::System, loaded.system.as_ref()),
    ];
    let stored = || {
        levels
            .iter()
            .filter_map(|(source, record)| record.map(|record| (*source, record)))
    };
    let builder_limits = (!defaults.limits.is_empty()).then_some((Source::Builder, &defaults.limits));
    let limits = stored()
        .map(|(source, record)| (source, &record.limits))
        .find(|(_, limits)| !limits.is_empty())
        .or(builder_limits);
    let policy = stored().find_map(|(source, record)| record.on_unavailable.map(|policy| (source, policy)));
    let (on_unavailable_from, on_unavailable) = policy.unwrap_or((Source::Builder, defaults.on_unavailable));
    let meta = loaded.meta.as_ref();
    Resolved {
        limits: limits.map(|(_, limits)| limits.clone()).unwrap_or_default(),
        limits_from: limits.map(|(source, _)| source),
        on_unavailable,
        on_unavailable_from,
        parent: meta.and_then(|meta| meta.parent.clone()),
        cascade: meta.is_some_and(|meta| meta.cascade),
        entity_exists: meta.is_some(),
    }
}

#[cfg(test)]
mod tests;
