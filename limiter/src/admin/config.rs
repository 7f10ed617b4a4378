//! Configuration: the four levels, their limits, modes and prices, and what applies to a call. A change, its registry and its
//! audit event are one transaction.

use std::future::IntoFuture;
use std::sync::Arc;

use zae_limiter_dynamo::{Query, Sort, Transacted, Transaction};
use zae_limiter_schema::keys;
use zae_limiter_schema::money::Prices;
use zae_limiter_schema::{
    AttributeValue, AuditAction, ConfigLevel, ConfigRecord, EntityConfigRegistry, EntityId, Limit, LimitName,
    LimitSet, Mode, OnUnavailable, Resource, ResourceRegistry, Timestamp,
};

use super::audit::{self, Details};
use super::change::ConfigChange;
use super::config_write::{config_write, has_what_is_deleted, still_stored};
use super::paging::{self, Rows};
use super::registry;
use super::repository::MAX_ATTEMPTS;
use crate::config::cache::{CacheStats, PolicyAfter};
use crate::config::resolution::{ResolvedConfig, Switches};
use crate::error::Conflict;
use crate::page::{Page, PageRequest};
use crate::store::BoxFuture;
use crate::{Error, Repository, Result};

/// What a level must store for a change to be made.
#[derive(Debug, Clone, Copy)]
enum Required<'a> {
    Anything,
    /// What was seen before.
    As(Option<&'a ConfigRecord>),
}

impl Required<'_> {
    fn check(self, level: &ConfigLevel, present: Option<&ConfigRecord>) -> Result<()> {
        match self {
            Self::As(seen) if seen != present => Err(Error::Conflict(Conflict::ConfigChanged {
                level: level.to_string(),
            })),
            _ => Ok(()),
        }
    }
}

/// Limits of a level that are about to be set: see [`Repository::set_limits`]. Nothing happens until it is awaited.
#[derive(Debug)]
#[must_use = "limits are not set until this is awaited"]
pub struct SetLimits {
    repository: Repository,
    level: Result<ConfigLevel>,
    change: ConfigChange,
}

impl SetLimits {
    /// The limits end at this time: see [`ConfigChange::until`].
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// repository.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
    /// repository.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 500)?]).until(tomorrow).await?;
    /// let resolved = repository.resolve_limits("user-1", "gpt-4").await?;
    /// assert_eq!(resolved.limits.named("rpm").unwrap().capacity().get(), 500);
    /// assert!(resolved.limits_until.is_some());
    /// # Ok(()) }
    /// ```
    pub fn until(mut self, end: impl Into<Timestamp>) -> Self {
        self.change = self.change.until(end);
        self
    }

    /// Why, for the audit event: at most 1,000 bytes.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.change = self.change.reason(reason);
        self
    }
}

impl IntoFuture for SetLimits {
    type Output = Result<ConfigRecord>;
    type IntoFuture = BoxFuture<'static, Result<ConfigRecord>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.repository.set_config(&self.level?, self.change).await })
    }
}

impl Repository {
    /// The configuration of one level. None if the level has none.
    ///
    /// ```
    /// use zae_limiter::{ConfigLevel, Limit};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// assert_eq!(repository.get_config(&ConfigLevel::System).await?, None);
    /// repository.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// assert_eq!(repository.get_config(&ConfigLevel::System).await?.unwrap().limits.len(), 1);
    /// # Ok(()) }
    /// ```
    pub async fn get_config(&self, level: &ConfigLevel) -> Result<Option<ConfigRecord>> {
        let item = self.inner.table.get(&keys::config(level), true).await?;
        Ok(item.map(|item| ConfigRecord::from_item(&item)).transpose()?)
    }

    /// Changes the configuration of one level and returns it as it is now. What the change does not mention stays.
    ///
    /// ```
    /// use zae_limiter::{ConfigChange, ConfigLevel, Limit, OnUnavailable, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// repository.set_config(&ConfigLevel::System, ConfigChange::new().audit_retention_days(30)).await?;
    /// let limits = [Limit::per_minute("rpm", 100)?];
    /// let change = ConfigChange::new().limits(limits).on_unavailable(OnUnavailable::Allow);
    /// let config = repository.set_config(&ConfigLevel::System, change).await?;
    /// assert_eq!(config.system.audit_retention_days, Some(30));
    /// assert_eq!(config.config_version, 2);
    /// # Ok(()) }
    /// ```
    pub async fn set_config(&self, level: &ConfigLevel, change: ConfigChange) -> Result<ConfigRecord> {
        self.change_config(level, &change, Required::Anything).await
    }

    /// [Changes](Self::set_config) the configuration of one level if it is still stored as it was seen: with this record,
    /// or with none. Otherwise the error is [`Conflict::ConfigChanged`] and nothing is written.
    ///
    /// ```
    /// use zae_limiter::error::Conflict;
    /// use zae_limiter::{ConfigChange, ConfigLevel, Error, Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().build_repository().await?;
    /// let system = ConfigLevel::System;
    /// let seen = repository.get_config(&system).await?;
    /// repository.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// let change = ConfigChange::new().limits([Limit::per_minute("rpm", 50)?]);
    /// let refused = repository.set_config_if_unchanged(&system, seen.as_ref(), change).await;
    /// assert!(matches!(refused, Err(Error::Conflict(Conflict::ConfigChanged { .. }))));
    /// # Ok(()) }
    /// ```
    pub async fn set_config_if_unchanged(
        &self,
        level: &ConfigLevel,
        seen: Option<&ConfigRecord>,
        change: ConfigChange,
    ) -> Result<ConfigRecord> {
        self.change_config(level, &change, Required::As(seen)).await
    }

    /// Deletes the configuration of one level. False if it had none.
    ///
    /// At system level limits, policy, mode and prices go; how long audit events are kept, `auto_update` and `strict_version` stay.
    ///
    /// ```
    /// use zae_limiter::{ConfigLevel, Limit};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// let level = ConfigLevel::Resource("gpt-4".parse()?);
    /// assert!(repository.delete_config(&level).await?);
    /// assert!(!repository.delete_config(&level).await?, "it had none any more");
    /// # Ok(()) }
    /// ```
    pub async fn delete_config(&self, level: &ConfigLevel) -> Result<bool> {
        self.remove_config(level, Required::Anything).await
    }

    /// [Deletes](Self::delete_config) the configuration of one level if it is still stored as it was seen. Otherwise the
    /// error is [`Conflict::ConfigChanged`] and nothing is written.
    pub async fn delete_config_if_unchanged(&self, seen: &ConfigRecord) -> Result<bool> {
        self.remove_config(&seen.level, Required::As(Some(seen))).await
    }

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
    pub fn set_system_defaults(&self, limits: impl IntoIterator<Item = Limit>) -> SetLimits {
        self.set_limits_of(Ok(ConfigLevel::System), limits)
    }

    /// The limits stored for the whole system, as they apply now. Empty if there are none.
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
    pub fn set_resource_defaults(
        &self,
        resource: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> SetLimits {
        let level = Resource::parse(resource).map(ConfigLevel::Resource);
        self.set_limits_of(level.map_err(Error::from), limits)
    }

    /// The limits stored for a resource, as they apply now. Empty if there are none.
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
    pub fn set_limits(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> SetLimits {
        let level = || {
            Ok(ConfigLevel::Entity(
                EntityId::parse(entity)?,
                Resource::parse(resource)?,
            ))
        };
        self.set_limits_of(level(), limits)
    }

    /// The limits stored for an entity on a resource, as they apply now. Empty if there are none;
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
    pub fn set_default_limits(
        &self,
        entity: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> SetLimits {
        let level = EntityId::parse(entity).map(ConfigLevel::EntityDefault);
        self.set_limits_of(level.map_err(Error::from), limits)
    }

    /// Sets the prices of a resource, in place of all that it has. Its limits stay. Every process uses them after at most
    /// the time to live of its configuration cache.
    ///
    /// Prices for every resource without prices of its own are set at the system level:
    /// [`set_config`](Self::set_config) with [`ConfigChange::prices`].
    ///
    /// ```
    /// use zae_limiter::money::Prices;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// // Per million tokens.
    /// let prices = Prices::new("$2.50".parse()?, "$10".parse()?);
    /// repository.set_prices("gpt-4o", prices.clone()).await?;
    /// assert_eq!(repository.get_prices("gpt-4o").await?, Some(prices));
    /// assert!(repository.delete_prices("gpt-4o").await?);
    /// assert_eq!(repository.get_prices("gpt-4o").await?, None);
    /// # Ok(()) }
    /// ```
    pub async fn set_prices(&self, resource: impl AsRef<str>, prices: Prices) -> Result<ConfigRecord> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        self.set_config(&level, ConfigChange::new().prices(prices)).await
    }

    /// The prices stored for a resource. None if there are none; those of the system apply then, if it has any.
    pub async fn get_prices(&self, resource: impl AsRef<str>) -> Result<Option<Prices>> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        let config = self.get_config(&level).await?;
        Ok(config.and_then(|config| config.prices))
    }

    /// The prices that apply to a resource: its own, else those of the system. As stored, not from the cache.
    pub async fn resolve_prices(&self, resource: impl AsRef<str>) -> Result<Option<Prices>> {
        let own = self.get_prices(resource).await?;
        if own.is_some() {
            return Ok(own);
        }
        let system = self.get_config(&ConfigLevel::System).await?;
        Ok(system.and_then(|system| system.prices))
    }

    /// The limit of a resource that counts money, in millionths of a dollar: the one that its prices name, else `usd`. A budget
    /// that several models share has no prices of its own.
    pub async fn resolve_money_limit(&self, resource: impl AsRef<str>) -> Result<LimitName> {
        let prices = self.resolve_prices(resource).await?;
        Ok(Prices::money_limit_of(prices.as_ref()))
    }

    /// Deletes the prices of a resource; returns false if there were none. Its limits stay.
    pub async fn delete_prices(&self, resource: impl AsRef<str>) -> Result<bool> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        let change = ConfigChange::new().without_prices();
        self.remove_setting(&level, change, |record| record.prices = None)
            .await
    }

    /// Sets the mode of a level: whether the limits of the calls that it concerns are enforced. What else is stored at the
    /// level stays. The most specific level with a mode decides, so that one entity can be let in on a resource that is
    /// disabled for all others.
    ///
    /// Every process follows it after at most the time to live of its configuration cache;
    /// [`refresh_buckets`](Self::refresh_buckets) makes it hold sooner.
    ///
    /// ```
    /// use zae_limiter::{ConfigLevel, Error, Limit, Mode, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// let repository = limiter.repository();
    /// let resource = ConfigLevel::Resource("gpt-5".parse()?);
    /// repository.set_mode(&resource, Mode::Disabled).await?;
    /// repository.set_mode(&ConfigLevel::Entity("tester".parse()?, "gpt-5".parse()?), Mode::Enforce).await?;
    ///
    /// let refused = limiter.acquire("user-1", "gpt-5").consume("rpm", 1).commit().await;
    /// assert!(matches!(refused, Err(Error::Disabled { .. })));
    /// limiter.acquire("tester", "gpt-5").consume("rpm", 1).commit().await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_mode(&self, level: &ConfigLevel, mode: Mode) -> Result<ConfigRecord> {
        self.set_config(level, ConfigChange::new().mode(mode)).await
    }

    /// The mode stored at a level. None if there is none; [`resolve_limits`](Self::resolve_limits) says which applies to a
    /// call.
    pub async fn get_mode(&self, level: &ConfigLevel) -> Result<Option<Mode>> {
        let config = self.get_config(level).await?;
        Ok(config.and_then(|config| config.mode))
    }

    /// Deletes the mode of a level; returns false if there was none. What else is stored at the level stays.
    ///
    /// ```
    /// use zae_limiter::{ConfigLevel, Mode};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_mode(&ConfigLevel::System, Mode::Observe).await?;
    /// assert!(repository.delete_mode(&ConfigLevel::System).await?);
    /// assert_eq!(repository.get_mode(&ConfigLevel::System).await?, None);
    /// # Ok(()) }
    /// ```
    pub async fn delete_mode(&self, level: &ConfigLevel) -> Result<bool> {
        let change = ConfigChange::new().without_mode();
        self.remove_setting(level, change, |record| record.mode = None)
            .await
    }

    /// Removes a setting of a level, and a level of which nothing is left. False if it is not set.
    async fn remove_setting(
        &self,
        level: &ConfigLevel,
        change: ConfigChange,
        remove: impl FnOnce(&mut ConfigRecord),
    ) -> Result<bool> {
        let Some(stored) = self.get_config(level).await? else {
            return Ok(false);
        };
        let mut without = stored.clone();
        remove(&mut without);
        if without == stored {
            return Ok(false);
        }
        let is_empty = without.limits.is_empty()
            && without.temporary.is_none()
            && without.on_unavailable.is_none()
            && without.mode.is_none()
            && without.prices.is_none()
            && without.unknown.is_empty();
        if is_empty && *level != ConfigLevel::System {
            return self.delete_config_if_unchanged(&stored).await;
        }
        self.set_config_if_unchanged(level, Some(&stored), change).await?;
        Ok(true)
    }

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

    /// The entities that have configuration of their own for a resource (limits, or a policy alone), in order of their
    /// ids. Without a resource: those that have it for every resource. Invalid ids are skipped.
    ///
    /// ```
    /// use zae_limiter::{Limit, PageRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// let resource = "gpt-4".parse()?;
    /// let page = repository.list_entities_with_custom_limits(Some(&resource), &PageRequest::new(100)).await?;
    /// assert_eq!(page.items[0].as_str(), "user-1");
    /// # Ok(()) }
    /// ```
    pub async fn list_entities_with_custom_limits(
        &self,
        resource: Option<&Resource>,
        page: &PageRequest,
    ) -> Result<Page<EntityId>> {
        let resource = resource.map_or(ConfigLevel::DEFAULT_RESOURCE, Resource::as_str);
        let query = Query::index(keys::GSI3, keys::gsi3_partition(resource), Sort::All);
        paging::query_page(&self.inner.table, &query, Rows::AsTheyAre, page, |item| {
            Ok(registry::entity_of_partition(item))
        })
        .await
    }

    /// The resources that have defaults, sorted: limits, or a policy alone.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// assert_eq!(repository.list_resources_with_defaults().await?, ["gpt-4"]);
    /// # Ok(()) }
    /// ```
    pub async fn list_resources_with_defaults(&self) -> Result<Vec<String>> {
        let item = self.inner.table.get(&keys::resource_registry(), true).await?;
        let registry = item.map(|item| ResourceRegistry::from_item(&item)).transpose()?;
        Ok(registry.unwrap_or_default().0.into_iter().collect())
    }

    /// The resources for which entities have configuration of their own, sorted: limits, or a policy alone.
    /// `_default_` stands for what an entity has on every resource.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// repository.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// repository.set_default_limits("user-1", [Limit::per_minute("rpm", 10)?]).await?;
    /// assert_eq!(repository.list_resources_with_entity_configs().await?, ["_default_", "gpt-4"]);
    /// # Ok(()) }
    /// ```
    pub async fn list_resources_with_entity_configs(&self) -> Result<Vec<String>> {
        let item = self
            .inner
            .table
            .get(&keys::entity_config_registry(), true)
            .await?;
        let registry = item
            .map(|item| EntityConfigRegistry::from_item(&item))
            .transpose()?
            .unwrap_or_default();
        Ok(registry.resources().map(str::to_owned).collect())
    }

    fn set_limits_of(
        &self,
        level: Result<ConfigLevel>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> SetLimits {
        SetLimits {
            repository: self.clone(),
            level,
            change: ConfigChange::new().limits(limits),
        }
    }

    async fn limits_of(&self, level: ConfigLevel) -> Result<LimitSet> {
        let config = self.get_config(&level).await?;
        let limits = config.map(|config| config.limits_at(self.now()).clone());
        Ok(limits.unwrap_or_default())
    }

    async fn change_config(
        &self,
        level: &ConfigLevel,
        change: &ConfigChange,
        required: Required<'_>,
    ) -> Result<ConfigRecord> {
        change.apply(level, None, self.now())?;
        let reason = change.reason_detail()?;
        let this = self.for_one_operation();
        this.ready().await?;
        let table = this.table();
        for attempt in 1..=MAX_ATTEMPTS {
            let item = table.get(&keys::config(level), true).await?;
            let present = match item.as_ref().map(ConfigRecord::from_item).transpose() {
                // New limits are how a level that cannot be read is repaired.
                Err(malformed) if change.repairs_limits() => {
                    tracing::warn!(%level, %malformed, "a malformed configuration is replaced");
                    item.as_ref()
                        .map(|item| ConfigRecord::readable(level.clone(), item))
                }
                present => present?,
            };
            required.check(level, present.as_ref())?;
            let record = change.apply(level, present.as_ref(), this.now())?;
            let mut details = audit::config_details(&record);
            details.extend(reason.clone());
            let event = this.config_event(level, AuditAction::LimitsSet, details).await?;

            let mut transaction = Transaction::on(&table);
            transaction.update(config_write(&record, item.as_ref(), change.replaces_limits()));
            match (level, item.is_some()) {
                // Entering a set twice changes nothing, and heals a registry that lost its entry.
                (ConfigLevel::Resource(resource), _) => {
                    transaction.update(registry::enter_resource(resource));
                }
                (ConfigLevel::Entity(..) | ConfigLevel::EntityDefault(_), false) => {
                    transaction.update(registry::count_entity_configs(level.resource_key(), 1));
                }
                _ => {}
            }
            transaction.put_new(event.to_item());
            let committed = transaction.commit().await.map_err(Error::from);
            this.note_write(level, &committed, Switches::from(&record));
            if let Transacted::Done = committed? {
                return Ok(record);
            }
            this.after_lost_race(level, attempt).await?;
        }
        Err(Error::contended(level))
    }

    async fn remove_config(&self, level: &ConfigLevel, required: Required<'_>) -> Result<bool> {
        let this = self.for_one_operation();
        this.ready().await?;
        let table = this.table();
        for attempt in 1..=MAX_ATTEMPTS {
            let item = table.get(&keys::config(level), true).await?;
            let Some(item) = item else {
                required.check(level, None)?;
                return Ok(false);
            };
            // What cannot be read can still be deleted.
            let record = ConfigRecord::readable(level.clone(), &item);
            required.check(level, Some(&record))?;
            if *level == ConfigLevel::System && !has_what_is_deleted(&item) {
                return Ok(false);
            }
            let details = deletion_details(level, &record);
            let event = this
                .config_event(level, AuditAction::LimitsDeleted, details)
                .await?;

            let mut transaction = Transaction::on(&table);
            match level {
                ConfigLevel::System => {
                    let emptied = ConfigRecord {
                        limits: LimitSet::default(),
                        temporary: None,
                        on_unavailable: None,
                        mode: None,
                        prices: None,
                        config_version: record.config_version.saturating_add(1),
                        ..record
                    };
                    transaction.update(config_write(&emptied, Some(&item), true));
                }
                ConfigLevel::Resource(resource) => {
                    transaction.delete_when(&keys::config(level), |p| still_stored(&item, p));
                    transaction.update(registry::leave_resource(resource));
                }
                ConfigLevel::Entity(..) | ConfigLevel::EntityDefault(_) => {
                    transaction.delete_when(&keys::config(level), |p| still_stored(&item, p));
                    transaction.update(registry::count_entity_configs(level.resource_key(), -1));
                }
            }
            transaction.put_new(event.to_item());
            let committed = transaction.commit().await.map_err(Error::from);
            this.note_write(level, &committed, Switches::default());
            if let Transacted::Done = committed? {
                registry::drop_empty_counts(&this.inner.table, level.resource_key()).await;
                return Ok(true);
            }
            this.after_lost_race(level, attempt).await?;
        }
        Err(Error::contended(level))
    }

    /// Forgets what the write has made untrue, or may have: an error leaves open whether it happened.
    fn note_write(&self, level: &ConfigLevel, outcome: &Result<Transacted>, switches: Switches) {
        let policy = match outcome {
            Ok(Transacted::Refused(_)) => return,
            Ok(Transacted::Done) => PolicyAfter::Is(switches),
            Err(_) => PolicyAfter::Unknown,
        };
        if *level == ConfigLevel::System {
            self.inner.audit.forget_retention();
        }
        self.inner.cache.wrote(level, policy);
    }
}

fn deletion_details(level: &ConfigLevel, record: &ConfigRecord) -> Details {
    if *level != ConfigLevel::System {
        return Details::new();
    }
    let names = record
        .limits
        .names()
        .map(|name| audit::text(name.as_str()))
        .collect();
    Details::from([
        ("limits".to_owned(), AttributeValue::L(names)),
        (
            "on_unavailable".to_owned(),
            audit::text_or_null(record.on_unavailable.map(OnUnavailable::as_str)),
        ),
    ])
}
