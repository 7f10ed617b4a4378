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
