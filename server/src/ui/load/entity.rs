//! One entity: limits, levels, usage, family and audit trail.

use std::collections::BTreeSet;
use std::sync::Arc;

use zae_limiter::audit::AuditSubject;
use zae_limiter::error::NotFound;
use zae_limiter::money::Prices;
use zae_limiter::pagination::Page;
use zae_limiter::records::EntityRecord;
use zae_limiter::usage::WindowKind;
use zae_limiter::{
    ConfigOrigin, EntityId, Error, Limit, LimitStatus, MAX_PARENTS, Mode, PageRequest, ResolvedConfig,
    Resource,
};

use super::usage::{UsageOfEntity, usage_of_entity, windows_back};
use super::{Loaded, Trail, all, known_resources, trail};
use crate::ui::Ui;

/// How many resources of an entity are shown.
const MAX_RESOURCES: usize = 32;
/// How many children and audit events are shown on the page of the entity.
const SOME: usize = 20;

/// A limit of the entity, and its level now.
#[derive(Debug, Clone)]
pub(crate) struct LimitRow {
    pub(crate) resource: Resource,
    pub(crate) limit: Limit,
    pub(crate) available: i64,
    /// What a quota was topped up with.
    pub(crate) topped_up: u64,
    pub(crate) used: Option<i64>,
    /// Where it comes from.
    pub(crate) from: Option<ConfigOrigin>,
    /// Whether it is enforced.
    pub(crate) mode: Mode,
    /// Whether the entity has a bucket for the resource.
    pub(crate) has_bucket: bool,
    /// Whether it counts money.
    pub(crate) money: bool,
}

/// Everything about one entity.
#[derive(Debug, Clone)]
pub(crate) struct EntityPage {
    pub(crate) id: EntityId,
    pub(crate) record: Loaded<Option<EntityRecord>>,
    /// The nearest first.
    pub(crate) parents: Loaded<Vec<EntityId>>,
    pub(crate) limits: Loaded<Vec<LimitRow>>,
    /// The resource whose usage is shown, if there is one.
    pub(crate) resource: Option<Resource>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) window: WindowKind,
    pub(crate) usage: Loaded<UsageOfEntity>,
    pub(crate) children: Loaded<Page<EntityRecord>>,
    pub(crate) audit: Loaded<Trail>,
}

pub(crate) async fn entity_page(
    ui: &Ui,
    id: EntityId,
    resource: Option<Resource>,
    window: WindowKind,
) -> EntityPage {
    let repository = ui.app.limiter.repository();
    let some = PageRequest::new(SOME);
    let subject = AuditSubject::Entity(id.clone());
    let (record, limits, children, audit) = tokio::join!(
        repository.get_entity(&id),
        limits(ui, &id),
        repository.list_children(&id, &some),
        trail(repository, &subject, &some, SOME),
    );
    let record = record.map_err(Into::into);
    let parents = match &record {
        Ok(Some(record)) => parents(ui, record).await,
        _ => Ok(vec![]),
    };
    let rows = limits.iter().flatten();
    let used: BTreeSet<_> = rows
        .filter(|row| row.has_bucket)
        .map(|row| row.resource.clone())
        .collect();
    let resource = resource.or_else(|| used.first().cloned());
    let usage = match &resource {
        Some(resource) => {
            let windows = windows_back(window, ui.app.clock.now());
            usage_of_entity(repository, &id, resource, windows).await
        }
        None => Ok(UsageOfEntity {
            money: None,
            windows: vec![],
        }),
    };
    EntityPage {
        record,
        parents,
        limits,
        resources: used.into_iter().collect(),
        resource,
        window,
        usage,
        children: children.map_err(Into::into),
        audit,
        id,
    }
}

async fn parents(ui: &Ui, record: &EntityRecord) -> Loaded<Vec<EntityId>> {
    let mut parents = vec![];
    let mut next = record.parent.clone();
    while let Some(parent) = next.filter(|_| parents.len() < MAX_PARENTS) {
        let record = ui.app.limiter.repository().get_entity(&parent).await?;
        parents.push(parent);
        next = record.and_then(|record| record.parent);
    }
    Ok(parents)
}

/// Limits and levels on the resources that the entity used, and on those that are known by name.
async fn limits(ui: &Ui, id: &EntityId) -> Loaded<Vec<LimitRow>> {
    let repository = ui.app.limiter.repository();
    let request = PageRequest::new(MAX_RESOURCES);
    let buckets = repository.list_buckets(id, &request).await?;
    let used: BTreeSet<Resource> = buckets.items.into_iter().map(|bucket| bucket.resource).collect();
    let known = known_resources(repository).await?;
    let mut resources: Vec<_> = used.iter().cloned().collect();
    resources.extend(known.names.into_iter().filter(|name| !used.contains(name)));
    resources.truncate(MAX_RESOURCES);
    let loads = resources.into_iter().map(|resource| {
        let has_bucket = used.contains(&resource);
        async move { on_resource(ui, id, resource, has_bucket).await }
    });
    let loaded: Vec<Loaded<Vec<LimitRow>>> = all(loads).await;
    let rows: Loaded<Vec<Vec<LimitRow>>> = loaded.into_iter().collect();
    Ok(rows?.into_iter().flatten().collect())
}

async fn on_resource(ui: &Ui, id: &EntityId, resource: Resource, has_bucket: bool) -> Loaded<Vec<LimitRow>> {
    let limiter = &ui.app.limiter;
    let resolved: Arc<ResolvedConfig> = limiter.repository().resolve_limits(id, &resource).await?;
    let peek = match limiter.acquire(id, &resource).peek().await {
        Ok(peek) => peek,
        // Buckets outlive the limits that they were made for.
        Err(Error::NotFound(NotFound::Limits { .. })) => return Ok(vec![]),
        Err(error) => return Err(error.into()),
    };
    let own = |status: &&LimitStatus| status.entity == *id;
    let money = Prices::money_limit_of(resolved.prices.as_deref());
    let rows = peek.statuses().iter().filter(own).map(|status| LimitRow {
        resource: resource.clone(),
        limit: status.limit.clone(),
        available: status.available,
        topped_up: status.topped_up,
        used: status.used,
        from: resolved.limits_from,
        mode: resolved.mode,
        has_bucket,
        money: money == *status.limit.name(),
    });
    Ok(rows.collect())
}
