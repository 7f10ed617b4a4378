//! Who would be refused if a level were enforced.

use std::collections::BTreeMap;

use zae_limiter_schema::{ConfigLevel, EntityId, Resource, Timestamp, WindowKind};

use super::usage_query::UsageQuery;
use crate::page::PageRequest;
use crate::{Repository, Result};

/// At most this many snapshots of usage are read.
const MAX_SNAPSHOTS: usize = 10_000;

/// The acquires of an entity that passed though the limits did not allow them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct ObservedEntity {
    /// The entity.
    pub entity: EntityId,
    /// The resource.
    pub resource: Resource,
    /// How many acquires would have been refused.
    pub observed: i64,
    /// How many were counted.
    pub acquires: i64,
}

/// What was observed of a level: see [`Repository::list_observed`].
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Observed {
    /// Those who would have been refused, most often first.
    pub entities: Vec<ObservedEntity>,
    /// False if there was more usage than was read: the newest 10,000 snapshots.
    pub complete: bool,
}

impl Repository {
    /// Who would have been refused since the day of this time if the limits of a level had been enforced: the observed acquires
    /// in the daily usage. Empty where no aggregator counts usage.
    ///
    /// At the system level, the usage of those resources is read that have defaults or limits of entities.
    ///
    /// ```
    /// use zae_limiter::{ConfigLevel, Mode, Timestamp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let level = ConfigLevel::Resource("gpt-4".parse()?);
    /// let observed = repository.list_observed(&level, Timestamp::parse("2026-01-01T00:00:00Z").unwrap()).await?;
    /// if observed.complete && observed.entities.is_empty() {
    ///     repository.set_mode(&level, Mode::Enforce).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn list_observed(&self, level: &ConfigLevel, since: Timestamp) -> Result<Observed> {
        let queries = match level {
            ConfigLevel::Entity(entity, resource) => {
                vec![UsageQuery::of_entity(entity)?.resource(resource)?]
            }
            ConfigLevel::EntityDefault(entity) => vec![UsageQuery::of_entity(entity)?],
            ConfigLevel::Resource(resource) => vec![UsageQuery::of_resource(resource)?],
            ConfigLevel::System => self.usage_of_every_resource().await?,
        };
        let start = WindowKind::Daily.window_at(since).start();
        let mut left = MAX_SNAPSHOTS;
        let mut sums: BTreeMap<(EntityId, Resource), (i64, i64)> = BTreeMap::new();
        let mut complete = true;
        for query in queries {
            let query = query.window(WindowKind::Daily).from(start);
            let mut page = PageRequest::new(PageRequest::MAX_SIZE);
            loop {
                if left == 0 {
                    complete = false;
                    break;
                }
                page.size = left.min(PageRequest::MAX_SIZE);
                let read = self.list_usage_snapshots(&query, &page).await?;
                left -= read.items.len().min(left);
                for snapshot in read.items {
                    let sum = sums.entry((snapshot.entity, snapshot.resource)).or_default();
                    sum.0 = sum.0.saturating_add(snapshot.observed);
                    sum.1 = sum.1.saturating_add(snapshot.total_events);
                }
                match read.next {
                    Some(next) => page = page.after(next),
                    None => break,
                }
            }
        }
        let entities = sums.into_iter().filter(|(_, (observed, _))| *observed > 0);
        let mut entities: Vec<_> = entities
            .map(|((entity, resource), (observed, acquires))| ObservedEntity {
                entity,
                resource,
                observed,
                acquires,
            })
            .collect();
        entities.sort_by_key(|entity| std::cmp::Reverse(entity.observed));
        Ok(Observed { entities, complete })
    }

    async fn usage_of_every_resource(&self) -> Result<Vec<UsageQuery>> {
        let mut resources = self.list_resources_with_defaults().await?;
        resources.extend(self.list_resources_with_entity_configs().await?);
        resources.retain(|resource| resource != ConfigLevel::DEFAULT_RESOURCE);
        resources.sort_unstable();
        resources.dedup();
        resources.iter().map(UsageQuery::of_resource).collect()
    }
}
