//! A list of entities.

use zae_limiter::pagination::Cursor;
use zae_limiter::records::EntityRecord;
use zae_limiter::{EntityId, EntitySearch, PageRequest, Resource};

use super::{KnownResources, Loaded, known_resources};
use crate::ui::Ui;
use crate::ui::failure::Failure;
use crate::ui::params::Params;

/// Where a list comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFrom {
    /// Entities with buckets or limits on known resources: in order, by prefix, at a constant cost.
    Buckets,
    /// Entities with a record: in no order, by scanning a part of the table.
    Records,
}

/// An entity of the list.
#[derive(Debug, Clone)]
pub(crate) struct EntityRow {
    pub(crate) id: EntityId,
    /// Its record, if it was read and there is one.
    pub(crate) record: Option<EntityRecord>,
}

/// A page of entities.
#[derive(Debug, Clone)]
pub(crate) struct EntityList {
    pub(crate) from: ListFrom,
    pub(crate) prefix: Option<String>,
    pub(crate) resource: Option<Resource>,
    pub(crate) known: KnownResources,
    pub(crate) rows: Vec<EntityRow>,
    /// The value of `after` of the next page.
    pub(crate) next: Option<String>,
}

pub(crate) async fn entity_list(ui: &Ui, params: &Params, size: usize) -> Loaded<EntityList> {
    let repository = ui.app.limiter.repository();
    let known = known_resources(repository).await?;
    let resource = params.resource()?;
    let prefix = params.get("prefix").map(str::to_owned);
    let nowhere = known.names.is_empty() && resource.is_none() && prefix.is_none();
    let from = if nowhere || params.get("from") == Some("records") {
        ListFrom::Records
    } else {
        ListFrom::Buckets
    };
    let (rows, next) = match from {
        ListFrom::Records => records(ui, params.cursor()?, size).await?,
        ListFrom::Buckets => {
            let resources = match &resource {
                Some(resource) => vec![resource.clone()],
                None => known.names.clone(),
            };
            let search = EntitySearch::on(resources).prefix(prefix.clone().unwrap_or_default());
            buckets(ui, search, params, size).await?
        }
    };
    Ok(EntityList {
        from,
        prefix,
        resource,
        known,
        rows,
        next,
    })
}

type Rows = (Vec<EntityRow>, Option<String>);

async fn records(ui: &Ui, after: Option<Cursor>, size: usize) -> Loaded<Rows> {
    let request = match after {
        Some(cursor) => PageRequest::new(size).after(cursor),
        None => PageRequest::new(size),
    };
    let page = ui.app.limiter.repository().scan_entities(&request).await?;
    let rows = page.items.into_iter().map(|record| EntityRow {
        id: record.id.clone(),
        record: Some(record),
    });
    Ok((rows.collect(), page.next.map(|cursor| cursor.to_string())))
}

async fn buckets(ui: &Ui, search: EntitySearch, params: &Params, size: usize) -> Loaded<Rows> {
    let repository = ui.app.limiter.repository();
    let after = params.get("after").map(EntityId::parse).transpose();
    let after = after.map_err(|error| Failure::from(zae_limiter::Error::from(error)))?;
    let search = match after.clone() {
        Some(after) => search.after(after),
        None => search,
    };
    // One more than shown tells whether anything follows.
    let mut ids = repository.search_entities(&search, size + 1).await?;
    let next = (ids.len() > size).then(|| {
        ids.truncate(size);
        ids.last().map(ToString::to_string)
    });
    let mut rows: Vec<_> = ids.into_iter().map(|id| EntityRow { id, record: None }).collect();
    // An entity that was created and never used is found by its whole id.
    let whole = params.get("prefix").filter(|_| after.is_none());
    if let Some(id) = whole.filter(|id| !rows.iter().any(|row| row.id.as_str() == *id)) {
        let record = repository.get_entity(id).await?;
        let found = record.map(|record| EntityRow {
            id: record.id.clone(),
            record: Some(record),
        });
        rows.splice(0..0, found);
    }
    Ok((rows, next.flatten()))
}
