//! How much of a resource is in use, over all entities.

use zae_limiter_dynamo::{Query, Sort, Table, key_of};
use zae_limiter_schema::bucket::Image;
use zae_limiter_schema::keys::{self, Key, prefix};
use zae_limiter_schema::{EntityId, EntityRecord, LimitName, Malformed, Resource, Timestamp, whole_tokens};

use super::buckets::{clamped, decode};
use crate::Result;

/// One limit of a resource, over all entities that have a bucket for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceCapacity {
    /// The resource.
    pub resource: Resource,
    /// The limit.
    pub limit: LimitName,
    /// Sum of the capacities, in whole tokens.
    pub total_capacity: u64,
    /// Sum of what is left, in whole tokens; debts count.
    pub total_available: i64,
    /// Each entity, in order of ids.
    pub entities: Vec<EntityCapacity>,
}

/// One entity's part of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntityCapacity {
    /// The entity.
    pub entity: EntityId,
    /// Its capacity, in whole tokens; that of a quota with what it was topped up with.
    pub capacity: u64,
    /// What it has left, in whole tokens; below zero is debt.
    pub available: i64,
}

impl ResourceCapacity {
    /// How much of the capacity is in use, in percent. Below zero where bursts hold more than the capacity.
    pub fn utilization_percent(&self) -> f64 {
        utilization(self.total_capacity, self.total_available)
    }
}

impl EntityCapacity {
    /// How much of the capacity is in use, in percent. Below zero where the burst holds more than the capacity.
    pub fn utilization_percent(&self) -> f64 {
        utilization(self.capacity, self.available)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
fn utilization(capacity: u64, available: i64) -> f64 {
    if capacity == 0 {
        0.0
    } else {
        (capacity as f64 - available as f64) / capacity as f64 * 100.0
    }
}

/// The entities to include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityScope {
    /// All entities.
    #[default]
    Everyone,
    /// Entities without a parent.
    RootsOnly,
}

/// Adds up what every bucket of a resource has of one limit.
pub(super) async fn measure(
    table: &Table,
    resource: Resource,
    limit: LimitName,
    scope: CapacityScope,
    now: Timestamp,
) -> Result<ResourceCapacity> {
    let buckets = Sort::StartsWith(prefix::GSI2_BUCKET.to_owned());
    let query = Query::index(keys::GSI2, keys::gsi2_resource_partition(&resource), buckets).keys_only();
    let mut entities = vec![];
    let mut start = None;
    loop {
        let page = table.query_page(&query, start, None).await?;
        for keys in page
            .items
            .iter()
            .filter_map(key_of)
            .collect::<Vec<_>>()
            .chunks(100)
        {
            for (entity, image) in read_buckets(table, keys, scope).await? {
                let Some(of_limit) = image.all_limits().remove(&limit) else {
                    continue;
                };
                let available = of_limit.available(image.elapsed(now), now);
                let capacity = of_limit.capacity() + of_limit.topped_up(now);
                entities.push(EntityCapacity {
                    entity,
                    capacity: u64::try_from(whole_tokens(capacity)).unwrap_or(u64::MAX),
                    available: clamped(whole_tokens(available)),
                });
            }
        }
        start = page.next;
        if start.is_none() {
            break;
        }
    }
    entities.sort_by(|one, other| one.entity.cmp(&other.entity));
    Ok(ResourceCapacity {
        resource,
        limit,
        total_capacity: entities
            .iter()
            .fold(0, |sum, entity| sum.saturating_add(entity.capacity)),
        total_available: entities
            .iter()
            .fold(0, |sum, entity| sum.saturating_add(entity.available)),
        entities,
    })
}

async fn read_buckets(
    table: &Table,
    buckets: &[Key],
    scope: CapacityScope,
) -> Result<Vec<(EntityId, Image)>> {
    let named: Vec<(EntityId, &Key)> = buckets
        .iter()
        .filter_map(|key| Some((EntityId::parse(key.pk.strip_prefix(prefix::ENTITY)?).ok()?, key)))
        .collect();
    let meta = named
        .iter()
        .filter(|_| scope == CapacityScope::RootsOnly)
        .map(|(id, _)| keys::entity_meta(id));
    let wanted = buckets.iter().cloned().chain(meta);
    let mut found = table.batch_get(wanted, false).await?;
    let mut read = vec![];
    for (entity, key) in named {
        let meta = found
            .get(&keys::entity_meta(&entity))
            .map(EntityRecord::from_item);
        let is_child = match meta.transpose() {
            Ok(meta) => meta.is_some_and(|meta| meta.parent.is_some()),
            Err(error) => pass_over(&entity, &error),
        };
        if let (Some(item), false) = (found.remove(key), is_child) {
            match decode(&item) {
                Ok(image) => read.extend(image.map(|image| (entity, image))),
                Err(error) => drop(pass_over(&entity, &error)),
            }
        }
    }
    Ok(read)
}

/// One item that is none of ours does not stop the sum of the others.
fn pass_over(entity: &EntityId, error: &Malformed) -> bool {
    tracing::warn!(%entity, %error, "a bucket is passed over");
    true
}
