//! Full pages from queries whose pages are not.

use std::future::Future;

use zae_limiter_dynamo::{Query, RawPage, SdkItem, Table, key_of, to_sdk_key};
use zae_limiter_schema::keys::{Key, attribute};
use zae_limiter_schema::{AttributeValue, Item};

use crate::Result;
use crate::page::{Cursor, Page, PageRequest};

const SMALLEST_FETCH: usize = 25;

/// How rows of an index become items.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// What the query brings is enough.
    AsTheyAre,
    /// The index has keys only: the items are read by those keys that may be of interest.
    ByKey(&'a (dyn Fn(&Key) -> bool + Sync)),
}

/// An item and its place in the list.
struct Row {
    cursor: Cursor,
    item: Item,
}

/// A page of what `accept` makes of the items of a query. It is full unless the list has ended, however many
/// items are not accepted.
pub(super) async fn query_page<T>(
    table: &Table,
    query: &Query,
    rows: Rows<'_>,
    request: &PageRequest,
    accept: impl Fn(&Item) -> Result<Option<T>>,
) -> Result<Page<T>> {
    request.check()?;
    let start = match &request.after {
        Some(after) => {
            after.check(query.holds(&after.key, after.in_index.as_ref()))?;
            Some(query.start_after(&after.key, after.in_index.as_ref()))
        }
        None => None,
    };
    // One more than wanted shows whether anything follows; fewer than some are not worth a call.
    let most = if query.is_filtered() {
        None
    } else {
        Some((request.size + 1).max(SMALLEST_FETCH))
    };
    collect(request, start, accept, |start| async move {
        let page = table.query_page(query, start, most).await?;
        let next = page.next.clone();
        Ok((into_rows(table, query, rows, page).await?, next))
    })
    .await
}

/// A page of a scan over the whole table.
pub(super) async fn scan_page<T>(
    table: &Table,
    sort_key: &str,
    request: &PageRequest,
    accept: impl Fn(&Item) -> Result<Option<T>>,
) -> Result<Page<T>> {
    request.check()?;
    let start = match &request.after {
        Some(after) => {
            after.check(after.in_index.is_none() && after.key.sk == sort_key)?;
            Some(to_sdk_key(&after.key))
        }
        None => None,
    };
    collect(request, start, accept, |start| async move {
        let page = table.scan_page(sort_key, start).await?;
        let rows = page.items.into_iter().filter_map(|item| {
            let cursor = Cursor {
                key: key_of(&item)?,
                in_index: None,
            };
            Some(Row { cursor, item })
        });
        Ok((rows.collect(), page.next))
    })
    .await
}

async fn collect<T, Fetched>(
    request: &PageRequest,
    mut start: Option<SdkItem>,
    accept: impl Fn(&Item) -> Result<Option<T>>,
    fetch: impl Fn(Option<SdkItem>) -> Fetched,
) -> Result<Page<T>>
where
    Fetched: Future<Output = Result<(Vec<Row>, Option<SdkItem>)>>,
{
    let mut items = Vec::with_capacity(request.size.min(100));
    let mut last = None;
    loop {
        let (rows, next) = fetch(start).await?;
        for row in rows {
            let Some(item) = accept(&row.item)? else { continue };
            if items.len() == request.size {
                return Ok(Page { items, next: last });
            }
            items.push(item);
            last = Some(row.cursor);
        }
        start = next;
        if start.is_none() {
            return Ok(Page { items, next: None });
        }
    }
}

async fn into_rows(table: &Table, query: &Query, rows: Rows<'_>, page: RawPage) -> Result<Vec<Row>> {
    let (partition, sort) = query.key_attributes();
    let in_index = |item: &Item| match (item.get(partition), item.get(sort)) {
        (Some(AttributeValue::S(pk)), Some(AttributeValue::S(sk))) if sort != attribute::SK => Some(Key {
            pk: pk.clone(),
            sk: sk.clone(),
        }),
        _ => None,
    };
    let placed = page.items.into_iter().filter_map(|item| {
        let cursor = Cursor {
            key: key_of(&item)?,
            in_index: in_index(&item),
        };
        Some(Row { cursor, item })
    });
    let Rows::ByKey(interests) = rows else {
        return Ok(placed.collect());
    };
    let placed: Vec<Row> = placed.filter(|row| interests(&row.cursor.key)).collect();
    let keys = placed.iter().map(|row| row.cursor.key.clone());
    let mut found = table.batch_get(keys, false).await?;
    // An item that was deleted since the index was read is not there any more.
    Ok(placed
        .into_iter()
        .filter_map(|row| {
            Some(Row {
                item: found.remove(&row.cursor.key)?,
                cursor: row.cursor,
            })
        })
        .collect())
}
