//! Making clients read the configuration again before their cached copy expires.

use tokio::task::JoinSet;
use zae_limiter_dynamo::{Query, Sort, Table, Update, from_sdk_item, key_of, to_sdk_key};
use zae_limiter_schema::bucket::{BucketKey, Etag};
use zae_limiter_schema::keys::{self, Key, attribute, prefix};
use zae_limiter_schema::{AttributeValue, ConfigLevel, Timestamp};

use super::paging::{self, Rows};
use super::repository::MAX_ATTEMPTS;
use crate::error::Unavailable;
use crate::page::{Cursor, Page, PageRequest};
use crate::{Error, Repository, Result};

/// At most this many buckets are written at the same time.
const AT_A_TIME: usize = 32;

/// What one page of [`Repository::refresh_buckets`] has done.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RefreshedBuckets {
    /// Buckets whose clients read the configuration again before the next write.
    pub buckets: u64,
    /// The start of the next page. None if this was the last.
    pub next: Option<Cursor>,
}

impl Repository {
    /// Makes every client read the configuration again before its next write to a bucket, for the buckets that a level
    /// concerns: a change of limits or mode then holds with that write, and not only when the cache of each process has
    /// expired. Calls that a process decides without a write, because their mode is `bypass` or `disabled` or its tokens were
    /// taken ahead, are not affected.
    ///
    /// One page at a time, because there may be millions: a write unit and at most one read unit for each bucket. The system's
    /// buckets are found by a scan of the whole table, whose pages may be empty.
    ///
    /// ```
    /// use zae_limiter::{ConfigLevel, Mode, PageRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let level = ConfigLevel::Resource("gpt-4".parse()?);
    /// repository.set_mode(&level, Mode::Disabled).await?;
    /// let mut page = PageRequest::new(1_000);
    /// loop {
    ///     let refreshed = repository.refresh_buckets(&level, &page).await?;
    ///     println!("{} buckets", refreshed.buckets);
    ///     let Some(next) = refreshed.next else { break };
    ///     page = page.after(next);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn refresh_buckets(&self, level: &ConfigLevel, page: &PageRequest) -> Result<RefreshedBuckets> {
        let this = self.for_one_operation();
        this.ready().await?;
        let now = this.now();
        let table = this.table();
        let found = buckets_of(&table, level, page).await?;
        let (mut waiting, mut written) = (found.items.into_iter(), JoinSet::new());
        let mut buckets = 0;
        loop {
            while written.len() < AT_A_TIME
                && let Some(key) = waiting.next()
            {
                let table = table.clone();
                written.spawn(async move { bump(&table, key, now).await });
            }
            let Some(bumped) = written.join_next().await else {
                break;
            };
            let bumped = bumped.map_err(|error| {
                Error::Unavailable(Unavailable::NoResponse {
                    operation: "UpdateItem",
                    table: table.name.to_string(),
                    reason: error.to_string(),
                    within: table.budget,
                })
            })?;
            buckets += u64::from(bumped?);
        }
        Ok(RefreshedBuckets {
            buckets,
            next: found.next,
        })
    }
}

/// A page of the buckets that a level may concern.
async fn buckets_of(table: &Table, level: &ConfigLevel, page: &PageRequest) -> Result<Page<Key>> {
    let query = match level {
        ConfigLevel::Entity(entity, resource) => {
            page.check()?;
            let key = BucketKey {
                entity: entity.clone(),
                resource: resource.clone(),
            };
            return Ok(Page {
                items: vec![key.key()],
                next: None,
            });
        }
        ConfigLevel::EntityDefault(entity) => {
            let partition = keys::entity_meta(entity).pk;
            Query::table(partition, Sort::StartsWith(prefix::BUCKET.to_owned()))
        }
        ConfigLevel::Resource(resource) => Query::index(
            keys::GSI2,
            keys::gsi2_resource_partition(resource),
            Sort::StartsWith(prefix::GSI2_BUCKET.to_owned()),
        ),
        ConfigLevel::System => return scanned(table, page).await,
    };
    paging::query_page(table, &query.keys_only(), Rows::AsTheyAre, page, |item| {
        Ok(key_of(item))
    })
    .await
}

/// A page of a scan: as much as DynamoDB reads at a time, and at most the size of the page.
async fn scanned(table: &Table, page: &PageRequest) -> Result<Page<Key>> {
    page.check()?;
    let start = page.after.as_ref().map(|after| to_sdk_key(&after.key));
    let read = table.scan_prefix_page(prefix::BUCKET, start).await?;
    let cursor = |key| Cursor { key, in_index: None };
    let mut found = read.items.iter().filter_map(key_of);
    let items: Vec<Key> = found.by_ref().take(page.size).collect();
    let next = if found.next().is_some() {
        items.last().cloned()
    } else {
        let last_read = read.next.map(from_sdk_item).transpose()?;
        last_read.as_ref().and_then(key_of)
    };
    Ok(Page {
        items,
        next: next.map(cursor),
    })
}

/// Gives a bucket an etag that its clients do not expect. False if there is none, or one that only the Python package has
/// written: clients read the configuration before they write to it anyway.
async fn bump(table: &Table, key: Key, now: Timestamp) -> Result<bool> {
    for _ in 0..MAX_ATTEMPTS {
        let Some(item) = table.get(&key, true).await? else {
            return Ok(false);
        };
        let Some(stored @ AttributeValue::S(text)) = item.get(attribute::ETAG) else {
            return Ok(false);
        };
        let etag = Etag::from_stored(text.as_str());
        if etag.bumped_at().is_some_and(|at| at >= now) {
            return Ok(true);
        }
        let bumped = AttributeValue::S(etag.bumped(now).to_string());
        let update = Update::of(key.clone())
            .set(attribute::ETAG, bumped)
            .when_still(attribute::ETAG, Some(stored.clone()));
        if table.update(update).await? {
            return Ok(true);
        }
    }
    Err(Error::contended(&format!("the bucket {} {}", key.pk, key.sk)))
}
