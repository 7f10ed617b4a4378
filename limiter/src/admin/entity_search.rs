//! Entities by the beginning of their ids, at a cost that does not grow with the table.

use std::collections::BTreeSet;

use zae_limiter_dynamo::{Query, Sort, key_of, to_sdk_key};
use zae_limiter_schema::keys::{self, prefix};
use zae_limiter_schema::{ConfigLevel, EntityId, EntityRecord, Item, Resource};

use crate::page::{Cursor, Page, PageRequest};
use crate::{Error, Repository, Result};

/// Sorts behind every character of an entity id.
const LAST: char = '~';
/// Sorts before every character of an entity id.
const FIRST: char = ' ';

/// Which entities to look for, see [`Repository::search_entities`].
///
/// ```
/// use zae_limiter::EntitySearch;
///
/// let search = EntitySearch::on(["gpt-4".parse()?]).prefix("team-a:");
/// # Ok::<(), zae_limiter::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a search does nothing until it is passed to search_entities"]
pub struct EntitySearch {
    resources: BTreeSet<Resource>,
    prefix: String,
    after: Option<EntityId>,
}

impl EntitySearch {
    /// How many resources one search may cover.
    pub const MAX_RESOURCES: usize = 32;

    /// Entities that have a bucket or limits of their own on one of these resources, or limits on every resource.
    pub fn on(resources: impl IntoIterator<Item = Resource>) -> Self {
        Self {
            resources: resources.into_iter().collect(),
            prefix: String::new(),
            after: None,
        }
    }

    /// Only ids that begin with this text.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Only ids after this one.
    pub fn after(mut self, entity: EntityId) -> Self {
        self.after = Some(entity);
        self
    }

    fn check(&self) -> Result<()> {
        if self.resources.len() > Self::MAX_RESOURCES {
            let rule = format!("it must be at most {}", Self::MAX_RESOURCES);
            return Err(Error::invalid(
                "number of resources",
                self.resources.len().to_string(),
                rule,
            ));
        }
        if !self.prefix.is_empty() {
            EntityId::parse(&self.prefix)?;
        }
        Ok(())
    }

    /// The part of an index whose sort keys are this text and the id of an entity.
    fn range(&self, before_id: &str) -> Sort {
        let first = match &self.after {
            Some(after) if after.as_str() >= self.prefix.as_str() => format!("{before_id}{after}{FIRST}"),
            _ => format!("{before_id}{}", self.prefix),
        };
        let last = format!("{before_id}{}{LAST}", self.prefix);
        // An id after all that begin with the prefix: an empty range, which DynamoDB would refuse.
        if first > last {
            return Sort::Between(last.clone(), last);
        }
        Sort::Between(first, last)
    }

    /// The queries whose results together are the result.
    fn queries(&self) -> impl Iterator<Item = Query> {
        let of_buckets = self.resources.iter().map(|resource| {
            let partition = keys::gsi2_resource_partition(resource);
            Query::index(keys::GSI2, partition, self.range(prefix::GSI2_BUCKET))
        });
        let with_limits = self.resources.iter().map(Resource::as_str);
        let of_limits = with_limits
            .chain([ConfigLevel::DEFAULT_RESOURCE])
            .map(|resource| Query::index(keys::GSI3, keys::gsi3_partition(resource), self.range("")));
        of_buckets.chain(of_limits).map(Query::keys_only)
    }
}

impl Repository {
    /// The ids of at most `most` entities, in order. The last one is where the next search starts, see
    /// [`EntitySearch::after`].
    ///
    /// Costs two queries per resource and one more, each for at most `most` keys, however many entities there are. A query that
    /// reads more than 1 MB of keys takes several requests.
    /// An entity that has neither a bucket nor limits of its own is found by [`get_entity`](Self::get_entity) only.
    ///
    /// ```
    /// use zae_limiter::{EntitySearch, Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// for entity in ["team-a:1", "team-a:2", "team-b:1"] {
    ///     limiter.acquire(entity, "gpt-4").consume("rpm", 1).await?.commit().await?;
    /// }
    /// let search = EntitySearch::on(["gpt-4".parse()?]).prefix("team-a:");
    /// let found = limiter.repository().search_entities(&search, 100).await?;
    /// assert_eq!(found.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["team-a:1", "team-a:2"]);
    /// # Ok(()) }
    /// ```
    pub async fn search_entities(&self, search: &EntitySearch, most: usize) -> Result<Vec<EntityId>> {
        search.check()?;
        let mut found = BTreeSet::new();
        for query in search.queries() {
            found.extend(self.first_entities(&query, most).await?);
        }
        Ok(found.into_iter().take(most).collect())
    }

    /// The first entities of a query. Its pages end after 1 MB: with only one of them, the ids of another query could go
    /// beyond its end, and the next search would skip what was left of it.
    async fn first_entities(&self, query: &Query, most: usize) -> Result<Vec<EntityId>> {
        let (mut found, mut start) = (Vec::new(), None);
        loop {
            let page = self
                .inner
                .table
                .query_page(query, start, Some(most - found.len()))
                .await?;
            found.extend(page.items.iter().filter_map(entity_of));
            start = page.next;
            if start.is_none() || found.len() >= most {
                return Ok(found);
            }
        }
    }

    /// Entities with a record, in no particular order, by a single scan of at most 1 MB of the table. Unlike
    /// [`list_entities`](Self::list_entities), a page may hold fewer items than requested, or none, and still have a
    /// next one.
    ///
    /// ```
    /// use zae_limiter::{NewEntity, PageRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.create_entity(NewEntity::new("user-1")).await?;
    /// let page = repository.scan_entities(&PageRequest::new(50)).await?;
    /// assert_eq!(page.items[0].id.as_str(), "user-1");
    /// # Ok(()) }
    /// ```
    pub async fn scan_entities(&self, request: &PageRequest) -> Result<Page<EntityRecord>> {
        request.check()?;
        let start = request.after.as_ref().map(|after| to_sdk_key(&after.key));
        let page = self.inner.table.scan_page(keys::ENTITY_META, start).await?;
        let mut rows = page.items.iter().filter_map(|item| {
            let record = EntityRecord::from_item(item).ok()?;
            Some((record, key_of(item)?))
        });
        let cursor = |key| Cursor { key, in_index: None };
        let shown: Vec<_> = rows.by_ref().take(request.size).collect();
        let last = shown.last().map(|(_, key)| key.clone());
        let next = if rows.next().is_some() {
            last.map(cursor)
        } else {
            let unscanned = page.next.map(zae_limiter_dynamo::from_sdk_item).transpose()?;
            unscanned.as_ref().and_then(key_of).map(cursor)
        };
        Ok(Page {
            items: shown.into_iter().map(|(record, _)| record).collect(),
            next,
        })
    }
}

fn entity_of(item: &Item) -> Option<EntityId> {
    EntityId::parse(key_of(item)?.pk.strip_prefix(prefix::ENTITY)?).ok()
}
