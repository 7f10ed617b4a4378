//! The limiter itself.

use std::sync::Arc;

use crate::Clock;
use crate::Repository;
use crate::backend::Backend;
use crate::builder::{Builder, Settings};
use crate::cache::ConfigCache;
use crate::connect::Connection;
use crate::entropy::Entropy;

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
    pub(crate) settings: Settings,
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
    #[cfg(feature = "embedded")]
    pub fn embedded_at(path: impl AsRef<std::path::Path>) -> Builder {
        Builder::new(
            EMBEDDED_NAME.to_owned(),
            Connection::File(path.as_ref().to_owned()),
        )
    }

    /// A limiter on a store that is already open, so that several limiters can share one in memory.
    #[cfg(feature = "embedded")]
    pub fn embedded_in(store: &crate::EmbeddedStore) -> Builder {
        Builder::new(EMBEDDED_NAME.to_owned(), Connection::Store(store.clone()))
    }

    pub(crate) fn over(repository: Repository, settings: Settings) -> Self {
        Self {
            inner: Arc::new(Inner { repository, settings }),
        }
    }

    /// The data side: entities, configuration, audit, usage, versions.
    pub fn repository(&self) -> &Repository {
        &self.inner.repository
    }
}

#[cfg(feature = "embedded")]
const EMBEDDED_NAME: &str = "limiter";

/// What admission uses.
#[allow(dead_code, reason = "admission is built on these")]
impl RateLimiter {
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.repository().inner.backend
    }

    pub(crate) fn cache(&self) -> &Arc<ConfigCache> {
        &self.repository().inner.cache
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.repository().inner.clock
    }

    pub(crate) fn entropy(&self) -> &Arc<Entropy> {
        &self.repository().inner.table.entropy
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }
}

impl std::ops::Deref for RateLimiter {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        self.repository()
    }
}
