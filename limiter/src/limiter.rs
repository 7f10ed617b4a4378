//! The limiter itself.

use std::sync::Arc;

use crate::acquire::Acquire;
use crate::admin::Repository;
use crate::bucket::{Buckets, LimiterStats, Shutdown};
use crate::builder::{Builder, Settings};
use crate::store::connect::Connection;

/// A distributed rate limiter. Cheap to clone; clones share everything.
///
/// What is stored besides admission (entities, configuration, audit, usage) is reached through it as well: it
/// dereferences to its [`Repository`].
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let limiter = RateLimiter::embedded().await?;
/// limiter.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
/// let resolved = limiter.resolve_limits("user-1", "gpt-4").await?;
/// assert_eq!(resolved.limits_from.unwrap().to_string(), "resource");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct RateLimiter {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) repository: Repository,
    pub(crate) buckets: Arc<Buckets>,
    #[cfg(feature = "stack")]
    pub(crate) stack: Option<crate::StackSetup>,
}

impl RateLimiter {
    /// A limiter on the table of the stack with this name, on AWS or another endpoint.
    ///
    /// ```no_run
    /// # async fn example() -> zae_limiter::Result<()> {
    /// let limiter = zae_limiter::RateLimiter::builder("my-app").region("eu-west-1").await?;
    /// # Ok(()) }
    /// ```
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name.into(), Connection::Aws(Box::default()))
    }

    /// A limiter whose table lives in this process and ends with it: no account, no server, no port.
    #[cfg(feature = "embedded")]
    pub fn embedded() -> Builder {
        Builder::new(EMBEDDED_NAME.to_owned(), Connection::Memory)
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
    /// limiter.create_entity(NewEntity::new("user-1")).await?;
    /// drop(limiter);
    /// let limiter = RateLimiter::embedded_at(&path).await?;
    /// assert!(limiter.get_entity("user-1").await?.is_some());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "embedded")]
    pub fn embedded_at(path: impl AsRef<std::path::Path>) -> Builder {
        Builder::new(
            EMBEDDED_NAME.to_owned(),
            Connection::File(path.as_ref().to_owned()),
        )
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
    /// one.create_entity(NewEntity::new("user-1")).await?;
    /// assert!(other.get_entity("user-1").await?.is_some());
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "embedded")]
    pub fn embedded_in(store: &crate::EmbeddedStore) -> Builder {
        Builder::new(EMBEDDED_NAME.to_owned(), Connection::Store(store.clone()))
    }

    pub(crate) fn over(
        repository: Repository,
        settings: Settings,
        #[cfg(feature = "stack")] stack: Option<crate::StackSetup>,
    ) -> Self {
        let inner = &repository.inner;
        let buckets = Arc::new(Buckets::new(
            inner.store.clone(),
            inner.cache.clone(),
            inner.clock.clone(),
            inner.table.entropy.clone(),
            settings,
            repository.name().to_string(),
        ));
        Self {
            inner: Arc::new(Inner {
                repository,
                buckets,
                #[cfg(feature = "stack")]
                stack,
            }),
        }
    }

    /// Limits a call of an entity on a resource: say what it [consumes](Acquire::consume), then await it.
    pub fn acquire(&self, entity: impl Into<String>, resource: impl Into<String>) -> Acquire {
        Acquire::new(self.inner.buckets.clone(), entity.into(), resource.into())
    }

    /// True if the table answers within the time budget. Never an error.
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
        self.inner.buckets.is_available().await
    }

    /// What this limiter has done so far.
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
        self.inner.buckets.stats()
    }

    /// Refuses further acquires, those that wait for tokens among them; waits until every call that is under way has
    /// its answer and every adjustment and refund is written or given up; and tells what was given up. Call it before
    /// the process ends: a lease that was dropped is given back in the background. A lease that is still held then can
    /// be committed or rolled back later, but takes no more.
    ///
    /// It returns as soon as everything is written. While the table does not respond it waits for calls at most the
    /// [time budget](crate::Builder::time_budget), for adjustments and refunds after that at most the
    /// [settle budget](crate::Builder::settle_budget), and for nothing else: with none of them to be written, it takes no
    /// longer than the time budget.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// drop(limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?);
    /// let left = limiter.shutdown().await;
    /// assert_eq!(left.unwritten_total, 0, "what the lease took was given back");
    /// # Ok(()) }
    /// ```
    pub async fn shutdown(&self) -> Shutdown {
        self.inner.buckets.shut_down().await
    }

    /// Waits until every adjustment and refund that is under way is written or given up.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// drop(limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?);
    /// limiter.settled().await;
    /// assert_eq!(limiter.available("user-1", "gpt-4").await?["rpm"], 100);
    /// # Ok(()) }
    /// ```
    pub async fn settled(&self) {
        self.inner.buckets.settled().await;
    }

    /// Works on the runtime where it was made and on no other.
    #[cfg(feature = "blocking")]
    pub(crate) fn keep_runtime(&self) {
        self.inner.buckets.keep_runtime();
    }

    /// The data side: entities, configuration, audit, usage, versions.
    pub fn repository(&self) -> &Repository {
        &self.inner.repository
    }
}

#[cfg(feature = "embedded")]
const EMBEDDED_NAME: &str = "limiter";

impl std::ops::Deref for RateLimiter {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        self.repository()
    }
}
