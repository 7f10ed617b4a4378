//! Deleting an entity: its records first, then the entity itself with its registry counts and audit event in one
//! transaction. Stopped half-way, it can be run again.

use zae_limiter_dynamo::{MAX_WRITES, Query, Sort, Table, Transacted, Transaction, key_of};
use zae_limiter_schema::keys::{self, Key, prefix};
use zae_limiter_schema::{AttributeValue, AuditAction, EntityId, EntityRecord};

use super::audit::Details;
use super::parents::children_of;
use super::registry;
use super::repository::MAX_ATTEMPTS;
use crate::error::{Conflict, NotFound};
use crate::{Error, Repository, Result};

/// How many configurations one transaction deletes; the rest of its room is for registry, entity and event.
const CONFIGS_PER_TRANSACTION: usize = MAX_WRITES - 10;

/// What an entity's partition holds.
#[derive(Debug, Default)]
struct Records {
    entity: Option<Key>,
    configs: Vec<Key>,
    others: Vec<Key>,
}

impl Records {
    fn is_empty(&self) -> bool {
        self.entity.is_none() && self.configs.is_empty() && self.others.is_empty()
    }
}

/// Each call has its own time budget: an entity may have very many records.
pub(super) async fn delete_records(repository: &Repository, id: &EntityId) -> Result<usize> {
    let mut deleted = 0;
    for attempt in 1..=MAX_ATTEMPTS {
        let records = records_of(&repository.inner.table, id).await?;
        if records.is_empty() {
            return if deleted > 0 {
                Ok(deleted)
            } else {
                Err(Error::NotFound(NotFound::Entity { entity: id.clone() }))
            };
        }
        repository.inner.table.batch_delete(&records.others).await?;
        deleted += records.others.len();
        // What does not fit into the last transaction goes before it.
        let (first, last) = records
            .configs
            .split_at(records.configs.len().saturating_sub(CONFIGS_PER_TRANSACTION));
        let first_done = delete_some(&repository.inner.table, first).await?;
        deleted += first_done;
        let total = deleted + last.len() + usize::from(records.entity.is_some());
        if first_done == first.len()
            && delete_last(repository, id, records.entity.as_ref(), last, total).await?
        {
            for config in &records.configs {
                registry::drop_empty_counts(&repository.inner.table, resource_of(config)).await;
            }
            return Ok(total);
        }
        repository
            .after_lost_race(&format!("entity {id}"), attempt)
            .await?;
    }
    Err(Error::contended(&format!("entity {id}")))
}

/// Deletes configurations with their registry counts, and returns how many. Stops where another writer was faster.
async fn delete_some(table: &Table, configs: &[Key]) -> Result<usize> {
    let mut deleted = 0;
    for some in configs.chunks(CONFIGS_PER_TRANSACTION) {
        let mut transaction = Transaction::on(table);
        delete_configs(&mut transaction, some);
        if !matches!(transaction.commit().await?, Transacted::Done) {
            break;
        }
        deleted += some.len();
    }
    Ok(deleted)
}

async fn delete_last(
    repository: &Repository,
    id: &EntityId,
    entity: Option<&Key>,
    configs: &[Key],
    total: usize,
) -> Result<bool> {
    let details = Details::from([("records_deleted".to_owned(), AttributeValue::N(total.to_string()))]);
    let event = repository
        .entity_event(id, AuditAction::EntityDeleted, details)
        .await?;
    let mut transaction = Transaction::on(&repository.inner.table);
    delete_configs(&mut transaction, configs);
    if let Some(entity) = entity {
        transaction.delete_existing(entity);
    }
    transaction.put_new(event.to_item());
    Ok(matches!(transaction.commit().await?, Transacted::Done))
}

pub(super) async fn refuse_if_parent(table: &Table, id: &EntityId) -> Result<()> {
    let page = table.query_page(&children_of(id), None, Some(1)).await?;
    match page.items.first() {
        Some(child) => {
            let child = EntityRecord::from_item(child)?.id;
            Err(Error::Conflict(Conflict::HasChildren {
                entity: id.clone(),
                child,
            }))
        }
        None => Ok(()),
    }
}

async fn records_of(table: &Table, id: &EntityId) -> Result<Records> {
    let query = Query::table(keys::entity_partition(id), Sort::All)
        .consistent()
        .keys_only();
    let meta = keys::entity_meta(id);
    let mut records = Records::default();
    for key in table.query_all(&query).await?.iter().filter_map(key_of) {
        if key == meta {
            records.entity = Some(key);
        } else if key.sk.starts_with(prefix::CONFIG) {
            records.configs.push(key);
        } else {
            records.others.push(key);
        }
    }
    Ok(records)
}

fn resource_of(config: &Key) -> Option<&str> {
    config.sk.strip_prefix(prefix::CONFIG)
}

fn delete_configs(transaction: &mut Transaction<'_>, configs: &[Key]) {
    if configs.is_empty() {
        return;
    }
    for key in configs {
        transaction.delete_existing(key);
    }
    transaction.update(registry::count_entity_configs(
        configs.iter().filter_map(resource_of),
        -1,
    ));
}
