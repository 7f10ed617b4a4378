//! The four levels at which limits are stored.

use std::fmt;

use crate::{EntityId, Resource};

/// A level of stored configuration. The most specific one that has limits wins whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigLevel {
    /// One entity on one resource.
    Entity(EntityId, Resource),
    /// One entity on every resource that it has no configuration of its own for.
    EntityDefault(EntityId),
    /// Everybody on one resource.
    Resource(Resource),
    /// Everybody on everything.
    System,
}

impl ConfigLevel {
    /// What stands in place of a resource in the keys of an entity's default configuration.
    pub const DEFAULT_RESOURCE: &'static str = "_default_";

    /// The levels that may apply to an entity and resource, most specific first.
    pub fn chain(entity: &EntityId, resource: &Resource) -> [Self; 4] {
        [
            Self::Entity(entity.clone(), resource.clone()),
            Self::EntityDefault(entity.clone()),
            Self::Resource(resource.clone()),
            Self::System,
        ]
    }

    /// The entity, for levels that have one.
    pub fn entity(&self) -> Option<&EntityId> {
        match self {
            Self::Entity(entity, _) | Self::EntityDefault(entity) => Some(entity),
            Self::Resource(_) | Self::System => None,
        }
    }

    /// The resource, or `_default_`, for levels that have one.
    pub fn resource_key(&self) -> Option<&str> {
        match self {
            Self::Entity(_, resource) | Self::Resource(resource) => Some(resource.as_str()),
            Self::EntityDefault(_) => Some(Self::DEFAULT_RESOURCE),
            Self::System => None,
        }
    }

    /// What kind of level this is.
    pub fn kind(&self) -> LevelKind {
        match self {
            Self::Entity(..) => LevelKind::Entity,
            Self::EntityDefault(_) => LevelKind::EntityDefault,
            Self::Resource(_) => LevelKind::Resource,
            Self::System => LevelKind::System,
        }
    }
}

impl fmt::Display for ConfigLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entity(entity, resource) => write!(f, "entity {entity} on {resource}"),
            Self::EntityDefault(entity) => write!(f, "entity {entity}"),
            Self::Resource(resource) => write!(f, "resource {resource}"),
            Self::System => f.write_str("system"),
        }
    }
}

/// The kind of a [`ConfigLevel`], without the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelKind {
    /// One entity on one resource.
    Entity,
    /// One entity on every resource.
    EntityDefault,
    /// One resource.
    Resource,
    /// Everything.
    System,
}

impl LevelKind {
    /// `entity`, `entity_default`, `resource` or `system`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entity => "entity",
            Self::EntityDefault => "entity_default",
            Self::Resource => "resource",
            Self::System => "system",
        }
    }
}

impl fmt::Display for LevelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
