//! The limits of each level, by name. Everything else that a level holds is read and changed with
//! [`Repository::get_config`] and [`Repository::set_config`].

use zae_limiter_schema::{ConfigLevel, ConfigRecord, EntityId, Limit, LimitSet, Resource};

use crate::{ConfigChange, Repository, Result};

impl Repository {
    /// Sets the limits of the whole system.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// assert_eq!(repository.get_system_defaults().await?.len(), 1);
    /// assert!(repository.delete_system_defaults().await?);
    /// # Ok(()) }
    /// ```
    pub async fn set_system_defaults(&self, limits: impl IntoIterator<Item = Limit>) -> Result<ConfigRecord> {
        self.set_limits_of(ConfigLevel::System, limits).await
    }

    /// The limits stored for the whole system. Empty if there are none.
    pub async fn get_system_defaults(&self) -> Result<LimitSet> {
        self.limits_of(ConfigLevel::System).await
    }

    /// Deletes the limits of the whole system and its policy for outages; returns false if there were none.
    pub async fn delete_system_defaults(&self) -> Result<bool> {
        self.delete_config(&ConfigLevel::System).await
    }

    /// Sets the limits of a resource.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let limits = [Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 40_000)?];
    /// repository.set_resource_defaults("gpt-4", limits).await?;
    /// assert_eq!(repository.get_resource_defaults("gpt-4").await?.len(), 2);
    /// assert!(repository.delete_resource_defaults("gpt-4").await?);
    /// # Ok(()) }
    /// ```
    pub async fn set_resource_defaults(
        &self,
        resource: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<ConfigRecord> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        self.set_limits_of(level, limits).await
    }

    /// The limits stored for a resource. Empty if there are none.
    pub async fn get_resource_defaults(&self, resource: impl AsRef<str>) -> Result<LimitSet> {
        self.limits_of(ConfigLevel::Resource(Resource::parse(resource)?))
            .await
    }

    /// Deletes the configuration of a resource; returns false if there was none.
    pub async fn delete_resource_defaults(&self, resource: impl AsRef<str>) -> Result<bool> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        self.delete_config(&level).await
    }

    /// Sets the limits of an entity on a resource. The entity need not exist.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 1_000)?]).await?;
    /// assert_eq!(repository.get_limits("user-1", "gpt-4").await?.len(), 1);
    /// assert!(repository.delete_limits("user-1", "gpt-4").await?);
    /// assert!(repository.get_limits("user-1", "gpt-4").await?.is_empty());
    /// # Ok(()) }
    /// ```
    pub async fn set_limits(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<ConfigRecord> {
        let level = ConfigLevel::Entity(EntityId::parse(entity)?, Resource::parse(resource)?);
        self.set_limits_of(level, limits).await
    }

    /// The limits stored for an entity on a resource. Empty if there are none;
    /// [`resolve_limits`](Self::resolve_limits) says which apply then.
    pub async fn get_limits(&self, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Result<LimitSet> {
        let level = ConfigLevel::Entity(EntityId::parse(entity)?, Resource::parse(resource)?);
        self.limits_of(level).await
    }

    /// Deletes the configuration of an entity on a resource; returns false if there was none.
    pub async fn delete_limits(&self, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Result<bool> {
        let level = ConfigLevel::Entity(EntityId::parse(entity)?, Resource::parse(resource)?);
        self.delete_config(&level).await
    }

    /// Sets the limits of an entity on every resource for which it has none of its own.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_default_limits("user-1", [Limit::per_hour("rph", 500)?]).await?;
    /// let resolved = repository.resolve_limits("user-1", "gpt-4").await?;
    /// assert_eq!(resolved.limits_from.unwrap().as_str(), "entity_default");
    /// # Ok(()) }
    /// ```
    pub async fn set_default_limits(
        &self,
        entity: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<ConfigRecord> {
        let level = ConfigLevel::EntityDefault(EntityId::parse(entity)?);
        self.set_limits_of(level, limits).await
    }

    async fn set_limits_of(
        &self,
        level: ConfigLevel,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<ConfigRecord> {
        self.set_config(&level, ConfigChange::new().limits(limits)).await
    }

    async fn limits_of(&self, level: ConfigLevel) -> Result<LimitSet> {
        let config = self.get_config(&level).await?;
        Ok(config.map(|config| config.limits).unwrap_or_default())
    }
}
