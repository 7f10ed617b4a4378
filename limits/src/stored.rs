//! Reading stored configurations.

use std::collections::BTreeMap;

use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigLevel, PageRequest, Repository, Resource, Result};

/// The configurations of these levels; levels without one are left out.
pub(crate) async fn levels(
    repository: &Repository,
    requested: impl Iterator<Item = ConfigLevel>,
) -> Result<BTreeMap<ConfigLevel, ConfigRecord>> {
    let mut found = BTreeMap::new();
    for level in requested {
        if !found.contains_key(&level)
            && let Some(record) = repository.get_config(&level).await?
        {
            found.insert(level, record);
        }
    }
    Ok(found)
}

/// Every level that has a configuration, from the most general to the most specific.
pub async fn every_level(repository: &Repository) -> Result<Vec<(ConfigLevel, ConfigRecord)>> {
    let mut every = vec![ConfigLevel::System];
    for name in repository.list_resources_with_defaults().await? {
        every.extend(Resource::parse(name).ok().map(ConfigLevel::Resource));
    }
    for name in repository.list_resources_with_entity_configs().await? {
        let resource = Resource::parse(&name).ok();
        if resource.is_none() && name != ConfigLevel::DEFAULT_RESOURCE {
            continue;
        }
        let resource = resource.as_ref();
        let mut request = PageRequest::new(PageRequest::MAX_SIZE);
        loop {
            let page = repository
                .list_entities_with_custom_limits(resource, &request)
                .await?;
            every.extend(page.items.into_iter().map(|entity| match resource {
                Some(resource) => ConfigLevel::Entity(entity, resource.clone()),
                None => ConfigLevel::EntityDefault(entity),
            }));
            match page.next {
                Some(cursor) => request = PageRequest::new(PageRequest::MAX_SIZE).after(cursor),
                None => break,
            }
        }
    }
    Ok(levels(repository, every.into_iter())
        .await?
        .into_iter()
        .rev()
        .collect())
}
