//! Which level of configuration a request means.

use zae_limiter::{ConfigLevel, EntityId, Resource};

/// An entity on a resource, an entity on every resource, a resource, or with neither the system.
pub(crate) fn level_of(entity: Option<EntityId>, resource: Option<Resource>) -> ConfigLevel {
    match (entity, resource) {
        (Some(entity), Some(resource)) => ConfigLevel::Entity(entity, resource),
        (Some(entity), None) => ConfigLevel::EntityDefault(entity),
        (None, Some(resource)) => ConfigLevel::Resource(resource),
        (None, None) => ConfigLevel::System,
    }
}

/// The resource of a level that is not about every resource.
pub(crate) fn resource_of(level: &ConfigLevel) -> Option<&Resource> {
    match level {
        ConfigLevel::Entity(_, resource) | ConfigLevel::Resource(resource) => Some(resource),
        ConfigLevel::EntityDefault(_) | ConfigLevel::System => None,
    }
}
