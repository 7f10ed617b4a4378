//! What applies to an entity on a resource, and the cache of it.

use std::sync::Arc;

use zae_limiter_schema::{EntityId, Resource};

use crate::config::cache::CacheStats;
use crate::config::resolution::ResolvedConfig;
use crate::{Repository, Result};

impl Repository {
    /// What applies to an entity on a resource, and where each thing comes from.
    ///
    /// The most specific level that has limits decides: entity and resource, entity, resource, system, then the
    /// builder's defaults. From memory as far as each level was read within the cache's time to live, otherwise by one
    /// read. A level that cannot be reloaded stays in use (see [`CacheStats::stale_hits`]).
    ///
    /// ```
    /// use zae_limiter::{Limit, ConfigOrigin};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// repository.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 1_000)?]).await?;
    /// assert_eq!(repository.resolve_limits("user-1", "gpt-4").await?.limits_from, Some(ConfigOrigin::Entity));
    /// assert_eq!(repository.resolve_limits("user-2", "gpt-4").await?.limits_from, Some(ConfigOrigin::System));
    /// # Ok(()) }
    /// ```
    pub async fn resolve_limits(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
    ) -> Result<Arc<ResolvedConfig>> {
        let (entity, resource) = (EntityId::parse(entity)?, Resource::parse(resource)?);
        let lookup = self.inner.cache.resolve(&entity, &resource).await?;
        Ok(lookup.resolved().clone())
    }

    /// Clears the configuration cache.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.resolve_limits("user-1", "gpt-4").await?;
    /// repository.invalidate_config_cache();
    /// assert_eq!(repository.cache_stats().entries, 0);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_config_cache(&self) {
        self.inner.cache.invalidate_all();
    }

    /// Forgets everything that applies to one entity and resource, the defaults of the resource and the system included.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.resolve_limits("user-1", "gpt-4").await?;
    /// repository.resolve_limits("user-2", "gpt-4").await?;
    /// repository.invalidate_config("user-1", "gpt-4")?;
    /// assert_eq!(repository.cache_stats().entries, 1);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_config(&self, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Result<()> {
        self.inner
            .cache
            .invalidate(&EntityId::parse(entity)?, &Resource::parse(resource)?);
        Ok(())
    }

    /// Forgets what belongs to one entity: its record and its own configuration, on every resource.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.resolve_limits("user-1", "gpt-4").await?;
    /// repository.resolve_limits("user-1", "gpt-3").await?;
    /// repository.resolve_limits("user-2", "gpt-4").await?;
    /// repository.invalidate_entity_config("user-1")?;
    /// assert_eq!(repository.cache_stats().entries, 1);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_entity_config(&self, entity: impl AsRef<str>) -> Result<()> {
        self.inner.cache.invalidate_entity(&EntityId::parse(entity)?);
        Ok(())
    }

    /// Forgets the defaults of one resource, and what belongs to entities on that resource.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.resolve_limits("user-1", "gpt-4").await?;
    /// repository.resolve_limits("user-1", "gpt-3").await?;
    /// repository.invalidate_resource_config("gpt-4")?;
    /// assert_eq!(repository.cache_stats().entries, 1);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_resource_config(&self, resource: impl AsRef<str>) -> Result<()> {
        self.inner.cache.invalidate_resource(&Resource::parse(resource)?);
        Ok(())
    }

    /// How well the configuration cache works.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.resolve_limits("user-1", "gpt-4").await?;
    /// repository.resolve_limits("user-1", "gpt-4").await?;
    /// let stats = repository.cache_stats();
    /// assert_eq!((stats.hits, stats.misses, stats.entries), (1, 1, 1));
    /// # Ok(()) }
    /// ```
    pub fn cache_stats(&self) -> CacheStats {
        self.inner.cache.stats()
    }
}
