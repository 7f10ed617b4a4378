//! What was used, and what is left: usage snapshots by hour, day and month, their sums, and buckets as they are now.

use zae_limiter_dynamo::{Query, Sort};
use zae_limiter_schema::keys::{self, Key, prefix};
use zae_limiter_schema::{EntityId, LimitName, Resource, UsageSnapshot, Window, WindowKind};

use super::buckets::{self, BucketState};
use super::capacity::{self, CapacityScope, ResourceCapacity};
use super::paging::{self, Rows};
#[cfg(feature = "usage")]
use super::usage_counter::UsageCounter;
use super::usage_query::{UsageQuery, UsageSummary};
use crate::page::{Page, PageRequest};
use crate::{Repository, Result};

impl Repository {
    /// Usage snapshots, a full page at a time, newest first (by resource, if an entity's usage of several resources is
    /// asked for).
    ///
    /// ```
    /// use zae_limiter::PageRequest;
    /// use zae_limiter::usage::{UsageQuery, WindowKind};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let query = UsageQuery::of_resource("gpt-4")?.window(WindowKind::Hourly);
    /// let page = repository.list_usage_snapshots(&query, &PageRequest::new(24)).await?;
    /// for snapshot in page.items {
    ///     println!("{} {}: {:?}", snapshot.window.start(), snapshot.entity, snapshot.counters);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn list_usage_snapshots(
        &self,
        query: &UsageQuery,
        page: &PageRequest,
    ) -> Result<Page<UsageSnapshot>> {
        let (sent, keys_only) = query.plan()?;
        let may_be_at = |key: &Key| query.may_be_at(key);
        let rows = if keys_only {
            Rows::ByKey(&may_be_at)
        } else {
            Rows::AsTheyAre
        };
        paging::query_page(&self.inner.table, &sent, rows, page, |item| {
            let snapshot = UsageSnapshot::from_item(item)?;
            Ok(query.accepts(&snapshot).then_some(snapshot))
        })
        .await
    }

    /// The sum over all snapshots of one length of window, however many there are. Hours are never added to days.
    ///
    /// ```
    /// use zae_limiter::usage::{UsageQuery, WindowKind};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let query = UsageQuery::of_entity("user-1")?.resource("gpt-4")?;
    /// let summary = repository.get_usage_summary(&query, WindowKind::Daily).await?;
    /// assert_eq!(summary.snapshots, 0, "nothing was used yet");
    /// # Ok(()) }
    /// ```
    pub async fn get_usage_summary(&self, query: &UsageQuery, window: WindowKind) -> Result<UsageSummary> {
        let query = query.clone().window(window);
        let mut summary = UsageSummary::of(window);
        let mut request = PageRequest::new(PageRequest::MAX_SIZE);
        loop {
            let page = self.list_usage_snapshots(&query, &request).await?;
            page.items.iter().for_each(|snapshot| summary.add(snapshot));
            match page.next {
                Some(cursor) => request = PageRequest::new(PageRequest::MAX_SIZE).after(cursor),
                None => return Ok(summary),
            }
        }
    }

    /// What each entity used of a resource in one window, in order of ids.
    ///
    /// Unlike [`list_usage_snapshots`](Self::list_usage_snapshots), a page costs one query and its items, however much usage there
    /// is in other windows. Days and months that the Python package wrote under the key of their first hour are not
    /// found.
    ///
    /// ```
    /// use zae_limiter::usage::WindowKind;
    /// use zae_limiter::{PageRequest, Timestamp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let noon = WindowKind::Hourly.window_at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap());
    /// let page = repository.list_window_usage(&"gpt-4".parse()?, noon, &PageRequest::new(100)).await?;
    /// assert!(page.items.is_empty(), "nothing was used yet");
    /// # Ok(()) }
    /// ```
    pub async fn list_window_usage(
        &self,
        resource: &Resource,
        window: Window,
        page: &PageRequest,
    ) -> Result<Page<UsageSnapshot>> {
        let sort = Sort::StartsWith(format!("{}{}#", prefix::GSI2_USAGE, window.key()));
        let query = Query::index(keys::GSI2, keys::gsi2_resource_partition(resource), sort).keys_only();
        let every = |_: &Key| true;
        paging::query_page(&self.inner.table, &query, Rows::ByKey(&every), page, |item| {
            let snapshot = UsageSnapshot::from_item(item)?;
            Ok((snapshot.window == window).then_some(snapshot))
        })
        .await
    }

    /// How much of one limit of a resource is in use, over all buckets of the resource that can be read.
    ///
    /// ```
    /// use zae_limiter::usage::CapacityScope;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let capacity = repository.get_resource_capacity("gpt-4", "rpm", CapacityScope::Everyone).await?;
    /// assert!(capacity.entities.is_empty(), "not used yet");
    /// # Ok(()) }
    /// ```
    pub async fn get_resource_capacity(
        &self,
        resource: impl AsRef<str>,
        limit: impl AsRef<str>,
        scope: CapacityScope,
    ) -> Result<ResourceCapacity> {
        let (resource, limit) = (Resource::parse(resource)?, LimitName::parse(limit)?);
        capacity::measure(&self.inner.table, resource, limit, scope, self.now()).await
    }

    /// The bucket of an entity and resource. None before the first acquire, or after it expired.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("rph", 60)?]).await?;
    /// assert_eq!(limiter.repository().get_bucket("user-1", "gpt-4").await?, None);
    /// limiter.acquire("user-1", "gpt-4").consume("rph", 15).await?.commit().await?;
    /// let bucket = limiter.repository().get_bucket("user-1", "gpt-4").await?.unwrap();
    /// assert_eq!(bucket.limits[0].available, 45);
    /// assert_eq!(bucket.writers.len(), 1);
    /// # Ok(()) }
    /// ```
    pub async fn get_bucket(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
    ) -> Result<Option<BucketState>> {
        let (entity, resource) = (EntityId::parse(entity)?, Resource::parse(resource)?);
        let item = self
            .inner
            .table
            .get(&keys::bucket(&entity, &resource), true)
            .await?;
        let image = item.as_ref().map(buckets::decode).transpose()?.flatten();
        Ok(image.map(|image| BucketState::new(entity, resource, &image, self.now())))
    }

    /// The buckets of an entity, in order of resources. Buckets that cannot be read are skipped.
    ///
    /// ```
    /// use zae_limiter::{Limit, PageRequest, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("rph", 60)?]).await?;
    /// for resource in ["gpt-4", "gpt-3"] {
    ///     limiter.acquire("user-1", resource).consume("rph", 1).await?.commit().await?;
    /// }
    /// let buckets = limiter.repository().list_buckets("user-1", &PageRequest::default()).await?;
    /// assert_eq!(buckets.items[0].resource.as_str(), "gpt-3");
    /// # Ok(()) }
    /// ```
    pub async fn list_buckets(
        &self,
        entity: impl AsRef<str>,
        page: &PageRequest,
    ) -> Result<Page<BucketState>> {
        let entity = EntityId::parse(entity)?;
        let sort = Sort::StartsWith(prefix::BUCKET.to_owned());
        let query = Query::table(keys::entity_partition(&entity), sort).consistent();
        let now = self.now();
        paging::query_page(&self.inner.table, &query, Rows::AsTheyAre, page, |item| {
            Ok(buckets::read_bucket(item, &entity, now))
        })
        .await
    }

    /// Counts the usage of an embedded table up to now, instead of within two seconds. Returns how many changes of the table it
    /// has read. Without [`RateLimiterBuilder::count_usage`](crate::RateLimiterBuilder::count_usage) it does nothing.
    ///
    /// ```
    /// use zae_limiter::usage::{UsageQuery, WindowKind};
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limits = [Limit::per_minute("rpm", 100)?];
    /// let limiter = RateLimiter::embedded().default_limits(limits).count_usage(true).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rpm", 3).commit().await?;
    ///
    /// let repository = limiter.repository();
    /// repository.catch_up_usage().await?;
    /// let usage = repository.get_usage_summary(&UsageQuery::of_entity("user-1")?, WindowKind::Daily).await?;
    /// assert_eq!(usage.totals["rpm"], 3);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "usage")]
    pub async fn catch_up_usage(&self) -> Result<u64> {
        match self.inner.usage_counter.get() {
            Some(counter) => counter.catch_up().await,
            None => Ok(0),
        }
    }

    /// Begins to count usage, if the table is embedded.
    #[cfg(feature = "usage")]
    pub(crate) async fn count_usage(&self) -> Result<()> {
        if let Some(store) = &self.inner.embedded {
            let start = || UsageCounter::start(store, self.name());
            self.inner.usage_counter.get_or_try_init(start).await?;
        }
        Ok(())
    }
}
