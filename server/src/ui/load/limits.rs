//! Stored limits, level by level.

use zae_limiter::pagination::Page;
use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigLevel, EntityId, PageRequest, Resource};

use super::{KnownResources, Loaded, all, known_resources};
use crate::ui::Ui;
use crate::ui::params::Params;

/// How many entities are named below a resource that is not opened.
const SOME: usize = 5;

/// What a resource and its entities store.
#[derive(Debug, Clone)]
pub(crate) struct ResourceLevels {
    pub(crate) resource: Resource,
    pub(crate) defaults: Option<ConfigRecord>,
    /// Entities with limits of their own on this resource. Their records are read if the resource is opened, and for exports.
    pub(crate) entities: Page<(EntityId, Option<ConfigRecord>)>,
}

/// The tree of limits.
#[derive(Debug, Clone)]
pub(crate) struct LimitsTree {
    pub(crate) known: KnownResources,
    pub(crate) system: Option<ConfigRecord>,
    pub(crate) resources: Vec<ResourceLevels>,
    /// Entities with limits on every resource.
    pub(crate) entity_defaults: Page<(EntityId, Option<ConfigRecord>)>,
    /// The resource that is opened.
    pub(crate) open: Option<Resource>,
}

/// The tree, with at most `size` entities of a resource that is opened. Its export has up to `size` rows in all, with the
/// limits of every one.
pub(crate) async fn limits_tree(ui: &Ui, params: &Params, size: usize) -> Loaded<LimitsTree> {
    let repository = ui.app.limiter.repository();
    let known = known_resources(repository).await?;
    let open = params.resource()?;
    let cursor = params.cursor()?;
    let system = repository.get_config(&ConfigLevel::System).await?;
    let mut left = size;
    let resources = match &open {
        Some(resource) => {
            let request = match cursor {
                Some(cursor) => PageRequest::new(size).after(cursor),
                None => PageRequest::new(size),
            };
            vec![levels(ui, resource.clone(), &request, true).await?]
        }
        None if params.get("export").is_some() => whole(ui, &known.names, &mut left).await?,
        None => {
            let some = &PageRequest::new(SOME);
            let loads = known
                .names
                .iter()
                .map(|resource| levels(ui, resource.clone(), some, false));
            all(loads).await.into_iter().collect::<Loaded<_>>()?
        }
    };
    let entity_defaults = if open.is_none() && known.with_entity_defaults && left > 0 {
        entities(ui, None, &PageRequest::new(left), true).await?
    } else {
        none()
    };
    Ok(LimitsTree {
        known,
        system,
        resources,
        entity_defaults,
        open,
    })
}

/// Resources with the limits of all their entities, one after the other, until no rows are left.
async fn whole(ui: &Ui, resources: &[Resource], left: &mut usize) -> Loaded<Vec<ResourceLevels>> {
    let mut found = vec![];
    for resource in resources {
        if *left == 0 {
            break;
        }
        let levels = levels(ui, resource.clone(), &PageRequest::new(*left), true).await?;
        let rows = levels.entities.items.len() + usize::from(levels.defaults.is_some());
        *left = left.saturating_sub(rows);
        found.push(levels);
    }
    Ok(found)
}

fn none<T>() -> Page<T> {
    Page {
        items: vec![],
        next: None,
    }
}

async fn levels(
    ui: &Ui,
    resource: Resource,
    request: &PageRequest,
    with_records: bool,
) -> Loaded<ResourceLevels> {
    let repository = ui.app.limiter.repository();
    let level = ConfigLevel::Resource(resource.clone());
    Ok(ResourceLevels {
        defaults: repository.get_config(&level).await?,
        entities: entities(ui, Some(&resource), request, with_records).await?,
        resource,
    })
}

async fn entities(
    ui: &Ui,
    resource: Option<&Resource>,
    request: &PageRequest,
    with_records: bool,
) -> Loaded<Page<(EntityId, Option<ConfigRecord>)>> {
    let repository = ui.app.limiter.repository();
    let page = repository
        .list_entities_with_custom_limits(resource, request)
        .await?;
    let loads = page.items.into_iter().map(|entity| async move {
        let level = match resource {
            Some(resource) => ConfigLevel::Entity(entity.clone(), resource.clone()),
            None => ConfigLevel::EntityDefault(entity.clone()),
        };
        let record = if with_records {
            repository.get_config(&level).await?
        } else {
            None
        };
        Ok((entity, record))
    });
    let loaded: Vec<Loaded<_>> = all(loads).await;
    Ok(Page {
        items: loaded.into_iter().collect::<Loaded<_>>()?,
        next: page.next,
    })
}

/// What one level stores.
#[derive(Debug, Clone)]
pub(crate) struct LevelLimits {
    pub(crate) level: ConfigLevel,
    pub(crate) record: Option<ConfigRecord>,
}

pub(crate) async fn level_limits(ui: &Ui, level: ConfigLevel) -> Loaded<LevelLimits> {
    let record = ui.app.limiter.repository().get_config(&level).await?;
    Ok(LevelLimits { level, record })
}
