//! Counting the usage of an embedded table in the process, with the aggregator's own code.

use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_dynamo::EmbeddedStore;
use zae_limiter_function::{EmbeddedMapping, LoggedDeadLetters};
use zae_limiter_schema::{StackName, WindowKind};

use super::Repository;
use crate::Result;

/// For how many days a stack keeps a snapshot unless told otherwise.
const RETENTION_DAYS: u32 = 90;

/// Counts the changes of an embedded table every two seconds, for as long as it exists.
#[derive(Debug)]
pub(crate) struct UsageCounter(EmbeddedMapping<Aggregator<DynamoDb, LoggedDeadLetters>>);

impl UsageCounter {
    async fn start(store: &EmbeddedStore, table: &StackName) -> Result<Self> {
        let client = aws_sdk_dynamodb::Client::from_conf(store.sdk_config().build());
        let table = table.as_str();
        let aggregator = Aggregator::new(
            DynamoDb::new(client, table),
            LoggedDeadLetters,
            WindowKind::ALL.to_vec(),
            RETENTION_DAYS,
        );
        let changes = store.stream(table, "usage").await?;
        Ok(Self(EmbeddedMapping::start(changes, aggregator)?))
    }
}

impl Repository {
    /// Begins to count usage, if the table is embedded.
    pub(crate) async fn count_usage(&self) -> Result<()> {
        if let Some(store) = &self.inner.embedded {
            let start = || UsageCounter::start(store, self.name());
            self.inner.usage_counter.get_or_try_init(start).await?;
        }
        Ok(())
    }

    /// Counts the usage of an embedded table up to now, instead of within two seconds. Returns how many changes of the table it
    /// has read. Without [`Builder::count_usage`](crate::Builder::count_usage) it does nothing.
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
    /// let usage = repository.usage_summary(&UsageQuery::of_entity("user-1")?, WindowKind::Daily).await?;
    /// assert_eq!(usage.totals["rpm"], 3);
    /// # Ok(()) }
    /// ```
    pub async fn catch_up_usage(&self) -> Result<u64> {
        match self.inner.usage_counter.get() {
            Some(counter) => Ok(counter.0.catch_up().await?),
            None => Ok(0),
        }
    }
}
