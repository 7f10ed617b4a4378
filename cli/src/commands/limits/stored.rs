//! What the table has.

use std::collections::BTreeMap;

use zae_limiter::{ConfigLevel, ConfigRecord, RateLimiter, Resource};

use crate::commands::pages;
use crate::error::Result;

/// The configurations of these levels, of those that have one.
pub(super) async fn levels(
    limiter: &RateLimiter,
    wanted: impl Iterator<Item = ConfigLevel>,
) -> Result<BTreeMap<ConfigLevel, ConfigRecord>> {
    let mut found = BTreeMap::new();
    for level in wanted {
        if !found.contains_key(&level)
            && let Some(record) = limiter.get_config(&level).await?
        {
            found.insert(level, record);
        }
    }
    Ok(found)
}

/// Every level that has a configuration, from the whole to the particular.
pub(super) async fn every_level(limiter: &RateLimiter) -> Result<Vec<(ConfigLevel, ConfigRecord)>> {
    let mut every = vec![ConfigLevel::System];
    for name in limiter.list_resources_with_defaults().await? {
        every.extend(Resource::parse(name).ok().map(ConfigLevel::Resource));
    }
    for name in limiter.list_resources_with_entity_configs().await? {
        let resource = Resource::parse(&name).ok();
        if resource.is_none() && name != ConfigLevel::DEFAULT_RESOURCE {
            continue;
        }
        let resource = resource.as_ref();
        let fetch = |page| async move { limiter.list_entities_with_custom_limits(resource, &page).await };
        for entity in pages::all(None, fetch, |_| true).await?.items {
            every.push(match resource {
                Some(resource) => ConfigLevel::Entity(entity, resource.clone()),
                None => ConfigLevel::EntityDefault(entity),
            });
        }
    }
    Ok(levels(limiter, every.into_iter())
        .await?
        .into_iter()
        .rev()
        .collect())
}
