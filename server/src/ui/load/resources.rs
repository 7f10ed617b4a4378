//! The resources that the table knows by name.

use std::collections::BTreeSet;

use zae_limiter::{ConfigLevel, EntitySearch, Repository, Resource};

use super::Loaded;

/// The resources that have defaults, or on which an entity has limits of its own. A resource with neither is known to
/// its buckets only.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownResources {
    /// In order, at most [`EntitySearch::MAX_RESOURCES`].
    pub(crate) names: Vec<Resource>,
    /// How many there are.
    pub(crate) total: usize,
    pub(crate) with_defaults: BTreeSet<Resource>,
    pub(crate) with_entity_limits: BTreeSet<Resource>,
    /// Whether an entity has limits on every resource.
    pub(crate) with_entity_defaults: bool,
}

pub(crate) async fn known_resources(repository: &Repository) -> Loaded<KnownResources> {
    let parsed = |names: &[String]| -> BTreeSet<Resource> {
        names
            .iter()
            .filter_map(|name| Resource::parse(name).ok())
            .collect()
    };
    let with_defaults = parsed(&repository.list_resources_with_defaults().await?);
    let by_entities = repository.list_resources_with_entity_configs().await?;
    let with_entity_limits = parsed(&by_entities);
    let all: BTreeSet<Resource> = with_defaults.union(&with_entity_limits).cloned().collect();
    Ok(KnownResources {
        total: all.len(),
        names: all.into_iter().take(EntitySearch::MAX_RESOURCES).collect(),
        with_entity_defaults: by_entities
            .iter()
            .any(|name| name == ConfigLevel::DEFAULT_RESOURCE),
        with_defaults,
        with_entity_limits,
    })
}
