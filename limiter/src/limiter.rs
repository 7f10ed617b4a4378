//! The limiter itself.

use std::sync::Arc;

use aws_config::SdkConfig;

use crate::acquire::Acquire;
use crate::admin::Repository;
use crate::bucket::{Buckets, LimiterStats, Shutdown};
use crate::builder::RateLimiterBuilder;
use crate::store::connect::{AwsSettings, Connection};

/// A distributed rate limiter. Cheap to clone; clones share everything.
///
/// Entities, stored limits, audit events and usage are managed through its [`repository`](Self::repository).
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let limiter = RateLimiter::embedded().await?;
/// limiter.repository().set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
///
/// limiter.acquire("user-1", "gpt-4").consume("rpm", 1).commit().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct RateLimiter {
    repository: Repository,
    buckets: Arc<Buckets>,
}

impl RateLimiter {
    /// A limiter on the table of the stack with this name, on AWS or another endpoint.
    ///
    /// ```no_run
    /// # async fn example() -> zae_limiter::Result<()> {
    /// let limiter = zae_limiter::RateLimiter::builder("my-app").region("eu-west-1").await?;
    /// # Ok(()) }
    /// ```
    pub fn builder(name: impl AsRef<str>) -> RateLimiterBuilder {
        let settings = AwsSettings {
            look_up: true,
            ..AwsSettings::default()
        };
        RateLimiterBuilder::new(name.as_ref(), Connection::Aws(Box::new(settings)))
    }

    /// A limiter with this configuration, which looks nothing up: region and credentials are those of the configuration,
    /// and audit events name a principal only if one is [set](RateLimiterBuilder::principal).
    ///
    /// ```no_run
    /// # async fn example(config: aws_config::SdkConfig) -> zae_limiter::Result<()> {
    /// let limiter = zae_limiter::RateLimiter::with_sdk_config("my-app", config).principal("billing-job").await?;
    /// # Ok(()) }
    /// ```
    pub fn with_sdk_config(name: impl AsRef<str>, config: SdkConfig) -> RateLimiterBuilder {
        let settings = AwsSettings {
            sdk_config: Some(config),
            ..AwsSettings::default()
        };
        RateLimiterBuilder::new(name.as_ref(), Connection::Aws(Box::new(settings)))
    }

    /// A limiter whose table lives in this process and ends with it: no account, no server, no port.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> RateLimiterBuilder {
        RateLimiterBuilder::new(EMBEDDED_NAME, Connection::Memory)
    }

    /// A limiter whose table is a file that survives restarts. Several processes on one machine may share it.
    ///
    /// ```
    /// use zae_limiter::{NewEntity, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("limiter.db");
    /// let limiter = RateLimiter::embedded_at(&path).await?;
    /// limiter.repository().create_entity(NewEntity::new("user-1")).await?;
    /// drop(limiter);
    /// let limiter = RateLimiter::embedded_at(&path).await?;
    /// assert!(limiter.repository().get_entity("user-1").await?.is_some());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "embedded")]
    pub fn embedded_at(path: impl AsRef<std::path::Path>) -> RateLimiterBuilder {
        RateLimiterBuilder::new(EMBEDDED_NAME, Connection::File(path.as_ref().to_owned()))
    }

    /// A limiter on a store that is already open, so that several limiters can share one in memory.
    ///
    /// ```
    /// use zae_limiter::{EmbeddedStore, NewEntity, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let store = EmbeddedStore::memory()?;
    /// let (one, other) = (RateLimiter::embedded_in(&store).await?, RateLimiter::embedded_in(&store).await?);
    /// one.repository().create_entity(NewEntity::new("user-1")).await?;
    /// assert!(other.repository().get_entity("user-1").await?.is_some());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "embedded")]
    pub fn embedded_in(store: &crate::EmbeddedStore) -> RateLimiterBuilder {
        RateLimiterBuilder::new(EMBEDDED_NAME, Connection::Store(store.clone()))
    }

    /// A limiter on a repository, with the settings that the repository was built with. Limiters on the same
    /// repository share its configuration cache.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// repository.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// let limiter = RateLimiter::from_repository(repository);
    /// limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?.commit().await?;
    /// # Ok(()) }
    /// ```
    pub fn from_repository(repository: Repository) -> Self {
        let inner = &repository.inner;
        let buckets = Arc::new(Buckets::new(
            inner.store.clone(),
            inner.cache.clone(),
            inner.clock.clone(),
            inner.table.entropy.clone(),
            inner.settings.clone(),
            repository.name().to_string(),
        ));
        Self { repository, buckets }
    }

    /// Starts a call of `entity` on `resource`. Add what it [consumes](Acquire::consume), then
    /// [commit](Acquire::commit) it, await it for a [`Lease`](crate::Lease), or [peek](Acquire::peek) at what is left.
    pub fn acquire(&self, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Acquire {
        Acquire::new(self.buckets.clone(), entity, resource)
    }

    /// Reports whether the table responds within the time budget. Never fails.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// assert!(limiter.is_available().await);
    /// # Ok(()) }
    /// ```
    pub async fn is_available(&self) -> bool {
        self.buckets.is_available().await
    }

    /// Counters of this limiter since it was built.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?.commit().await?;
    /// assert_eq!(limiter.stats().granted, 1);
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> LimiterStats {
        self.buckets.stats()
    }

    /// Shuts the limiter down, including its clones. Call it before the process ends, because dropped leases are
    /// rolled back in the background.
    ///
    /// New acquires, and those that wait for tokens, fail with [`Error::ShutDown`](crate::Error::ShutDown). The
    /// method returns once every call in flight has its result and every adjustment and refund is written or was
    /// given up; the report lists those that were given up. Leases still held can be committed or rolled back later,
    /// but cannot consume more.
    ///
    /// It returns as soon as everything is written. While the table does not respond it waits for calls at most the
    /// [time budget](crate::RateLimiterBuilder::time_budget), for adjustments and refunds after that at most the
    /// [settle budget](crate::RateLimiterBuilder::settle_budget), and for nothing else: with none of them to be written, it takes no
    /// longer than the time budget.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// drop(limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?);
    /// let report = limiter.shutdown().await;
    /// assert_eq!(report.unwritten_total, 0, "the dropped lease was rolled back");
    /// # Ok(()) }
    /// ```
    pub async fn shutdown(&self) -> Shutdown {
        let report = self.buckets.shut_down().await;
        #[cfg(feature = "usage")]
        self.count_usage_that_is_left().await;
        report
    }

    /// Within the time budget. What is not counted then is counted by the next process that counts.
    #[cfg(feature = "usage")]
    async fn count_usage_that_is_left(&self) {
        let budget = self.repository.inner.settings.time_budget;
        let counted = tokio::time::timeout(budget, self.repository.catch_up_usage()).await;
        if let Ok(Err(error)) = counted {
            tracing::warn!(%error, "usage is not counted yet");
        }
    }

    /// Waits until every adjustment and refund in flight is written or was given up.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// drop(limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?);
    /// limiter.settled().await;
    /// assert_eq!(limiter.acquire("user-1", "gpt-4").peek().await?.tokens("rpm"), Some(100));
    /// # Ok(()) }
    /// ```
    pub async fn settled(&self) {
        self.buckets.settled().await;
    }

    /// Runs background work only on the runtime where the limiter was built.
    #[cfg(feature = "blocking")]
    pub(crate) fn keep_runtime(&self) {
        self.buckets.keep_runtime();
    }

    pub(crate) fn buckets(&self) -> &Arc<Buckets> {
        &self.buckets
    }

    /// Everything that is stored: entities, configuration, audit events, usage and versions.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }
}

#[cfg(feature = "embedded")]
const EMBEDDED_NAME: &str = "limiter";
