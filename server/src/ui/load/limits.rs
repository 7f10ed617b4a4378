//! Stored limits, level by level.

use zae_limiter::{ConfigLevel, ConfigRecord, EntityId, Page, PageRequest, Resource};

use super::{KnownResources, Loaded, PAGE, all, known_resources};
use crate::ui::Ui;
use crate::ui::params::Params;

/// How many entities are named below a resource that is not opened.
const SOME: usize = 5;

/// What a resource and its entities store.
#[derive(Debug, Clone)]
pub(crate) struct ResourceLevels {
    pub(crate) resource: Resource,
    pub(crate) defaults: Option<ConfigRecord>,
    /// Entities with limits of their own on this resource. Their records are read if the resource is opened.
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

pub(crate) async fn limits_tree(ui: &Ui, params: &Params) -> Loaded<LimitsTree> {
    let repository = ui.app.limiter.repository();
    let known = known_resources(repository).await?;
    let open = params.resource()?;
    let cursor = params.cursor()?;
    let system = repository.get_config(&ConfigLevel::System).await?;
    let wanted: Vec<Resource> = match &open {
        Some(resource) => vec![resource.clone()],
        None => known.names.clone(),
    };
    let loads = wanted.into_iter().map(|resource| {
        let request = match (&open, &cursor) {
            (None, _) => PageRequest::of(SOME),
            (Some(_), None) => PageRequest::of(PAGE),
            (Some(_), Some(cursor)) => PageRequest::of(PAGE).after(cursor.clone()),
        };
        let with_records = open.is_some();
        async move { levels(ui, resource, &request, with_records).await }
    });
    let loaded: Vec<Loaded<ResourceLevels>> = all(loads).await;
    let entity_defaults = if open.is_none() && known.with_entity_defaults {
        entities(ui, None, &PageRequest::of(PAGE), true).await?
    } else {
        none()
    };
    Ok(LimitsTree {
        system,
        resources: loaded.into_iter().collect::<Loaded<_>>()?,
        entity_defaults,
        known,
        open,
    })
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
