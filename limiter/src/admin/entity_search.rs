//! Entities by the beginning of their ids, at a cost that does not grow with the table.

use std::collections::BTreeSet;

use zae_limiter_dynamo::{Query, Sort, Table, key_of};
use zae_limiter_schema::keys::{self, prefix};
use zae_limiter_schema::{ConfigLevel, EntityId, Item, Resource};

use crate::{Error, Result};

/// Sorts behind every character of an entity id.
const LAST: char = '~';
/// Sorts before every character of an entity id.
const FIRST: char = ' ';

/// Which entities to look for, see [`Repository::search_entities`](crate::Repository::search_entities).
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

    /// The ids of at most `most` entities, in order.
    pub(super) async fn run(&self, table: &Table, most: usize) -> Result<Vec<EntityId>> {
        self.check()?;
        let mut found = BTreeSet::new();
        for query in self.queries() {
            found.extend(first_entities(table, &query, most).await?);
        }
        Ok(found.into_iter().take(most).collect())
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

/// The first entities of a query. Its pages end after 1 MB: with only one of them, the ids of another query could go
/// beyond its end, and the next search would skip what was left of it.
async fn first_entities(table: &Table, query: &Query, most: usize) -> Result<Vec<EntityId>> {
    let (mut found, mut start) = (Vec::new(), None);
    loop {
        let page = table.query_page(query, start, Some(most - found.len())).await?;
        found.extend(page.items.iter().filter_map(entity_of));
        start = page.next;
        if start.is_none() || found.len() >= most {
            return Ok(found);
        }
    }
}

fn entity_of(item: &Item) -> Option<EntityId> {
    EntityId::parse(key_of(item)?.pk.strip_prefix(prefix::ENTITY)?).ok()
}
