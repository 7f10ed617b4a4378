//! The usage of a resource in one window, at a cost that does not grow with other windows.

use zae_limiter_dynamo::{Query, Sort};
use zae_limiter_schema::keys::{self, Key, prefix};
use zae_limiter_schema::{Resource, UsageSnapshot, Window};

use super::paging::Rows;
use crate::page::{Page, PageRequest};
use crate::{Repository, Result};

impl Repository {
    /// What each entity used of a resource in one window, in order of ids.
    ///
    /// Unlike [`usage_snapshots`](Self::usage_snapshots), a page costs one query and its items, however much usage there
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
    /// let page = repository.window_usage(&"gpt-4".parse()?, noon, &PageRequest::new(100)).await?;
    /// assert!(page.items.is_empty(), "nothing was used yet");
    /// # Ok(()) }
    /// ```
    pub async fn window_usage(
        &self,
        resource: &Resource,
        window: Window,
        page: &PageRequest,
    ) -> Result<Page<UsageSnapshot>> {
        let sort = Sort::StartsWith(format!("{}{}#", prefix::GSI2_USAGE, window.key()));
        let query = Query::index(keys::GSI2, keys::gsi2_resource_partition(resource), sort).keys_only();
        let every = |_: &Key| true;
        self.page_of(&query, Rows::ByKey(&every), page, |item| {
            let snapshot = UsageSnapshot::from_item(item)?;
            Ok((snapshot.window == window).then_some(snapshot))
        })
        .await
    }
}
