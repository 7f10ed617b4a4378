//! The chain of parents above an entity: it exists, it ends, and it is not too long.

use tokio::task::JoinSet;
use zae_limiter_dynamo::{Query, Sort, Table, Transaction, is_none};
use zae_limiter_schema::keys::{self, attribute};
use zae_limiter_schema::{AttributeValue, EntityId, EntityRecord};

use crate::config::MAX_PARENTS;
use crate::error::{Conflict, NotFound, Unavailable};
use crate::{Error, Result};

/// How many entities' children are queried at the same time.
const QUERIES_AT_A_TIME: usize = 16;

/// The entity, as it is stored.
pub(super) async fn read_entity(table: &Table, entity: &EntityId) -> Result<Option<EntityRecord>> {
    let item = table.get(&keys::entity_meta(entity), true).await?;
    Ok(item.map(|item| EntityRecord::from_item(&item)).transpose()?)
}

/// The query for the children of an entity.
pub(super) fn children_of(parent: &EntityId) -> Query {
    Query::index(keys::GSI1, keys::gsi1_parent_partition(parent), Sort::All)
}

/// The chain above an entity that gets this parent and has the given number of levels below it.
pub(super) async fn parents_above(
    table: &Table,
    entity: &EntityId,
    parent: Option<&EntityId>,
    below: usize,
) -> Result<Vec<EntityRecord>> {
    let Some(direct) = parent else { return Ok(vec![]) };
    let mut above: Vec<EntityRecord> = vec![];
    let mut next = Some(direct.clone());
    while let Some(id) = next {
        if id == *entity {
            return Err(Error::Conflict(Conflict::ParentCycle {
                entity: entity.clone(),
                parent: direct.clone(),
            }));
        }
        // A cycle that others have stored above it.
        if let Some(last) = above.last()
            && above.iter().any(|one| one.id == id)
        {
            return Err(Error::Conflict(Conflict::ParentCycle {
                parent: last.id.clone(),
                entity: id,
            }));
        }
        let Some(record) = read_entity(table, &id).await? else {
            if above.is_empty() {
                return Err(Error::NotFound(NotFound::Parent {
                    entity: entity.clone(),
                    parent: id,
                }));
            }
            break;
        };
        let higher = record.parent.clone();
        above.push(record);
        next = higher;
        if above.len() + below > MAX_PARENTS {
            return Err(Error::Conflict(Conflict::TooManyParents {
                entity: entity.clone(),
                parent: direct.clone(),
                limit: MAX_PARENTS,
            }));
        }
    }
    Ok(above)
}

/// How many levels of children are below an entity, counted up to as many as no entity with a parent may have.
pub(super) async fn levels_below(table: &Table, entity: &EntityId) -> Result<usize> {
    let mut level = vec![entity.clone()];
    for depth in 0..MAX_PARENTS {
        // Of the last level it only matters whether there is anybody.
        let enough = if depth + 1 == MAX_PARENTS { 1 } else { usize::MAX };
        level = children_of_all(table, level, enough).await?;
        if level.is_empty() {
            return Ok(depth);
        }
    }
    Ok(MAX_PARENTS)
}

/// The children of all these, several queries at a time, until enough are found.
async fn children_of_all(table: &Table, parents: Vec<EntityId>, enough: usize) -> Result<Vec<EntityId>> {
    let (mut waiting, mut queries) = (parents.into_iter(), JoinSet::new());
    let mut children = vec![];
    while children.len() < enough {
        while queries.len() < QUERIES_AT_A_TIME
            && let Some(parent) = waiting.next()
        {
            let table = table.clone();
            queries.spawn(async move { table.query_all(&children_of(&parent)).await });
        }
        let Some(found) = queries.join_next().await else {
            break;
        };
        let found = found.map_err(|error| {
            Error::Unavailable(Unavailable::NoResponse {
                operation: "Query",
                table: table.name.to_string(),
                reason: error.to_string(),
                within: table.budget,
            })
        })?;
        for item in found? {
            children.push(EntityRecord::from_item(&item)?.id);
        }
    }
    Ok(children)
}

/// Requires that the chain is still as it was walked, so that no two changes can close a circle together.
pub(super) fn check_parents(transaction: &mut Transaction<'_>, above: &[EntityRecord]) {
    for one in above {
        transaction.check(&keys::entity_meta(&one.id), |p| {
            let exists = format!("attribute_exists({})", p.name(attribute::PK));
            let parent = match &one.parent {
                Some(parent) => {
                    format!(
                        "{} = {}",
                        p.name(attribute::PARENT_ID),
                        p.value(AttributeValue::S(parent.to_string()))
                    )
                }
                None => is_none(p, attribute::PARENT_ID),
            };
            format!("{exists} AND {parent}")
        });
    }
}
