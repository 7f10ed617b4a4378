//! The four levels of configuration: set, get, delete. The change, its registry and its audit event are one
//! transaction.

use std::collections::BTreeSet;

use zae_limiter_schema::keys::{self, attribute};
use zae_limiter_schema::{
    AttributeValue, AuditAction, ConfigLevel, ConfigRecord, EntityConfigRegistry, EntityId, Item, Limit,
    LimitSet, OnUnavailable, Resource,
};

use super::audit::{self, Details};
use super::change::ConfigChange;
use super::registry;
use crate::dynamo::{Transacted, Transaction, Update};
use crate::{Error, Repository, Result};

/// How often a change is tried again because somebody else changed the same level meanwhile.
pub(super) const MOST_ATTEMPTS: u32 = 10;

impl Repository {
    /// The configuration of one level; nothing if the level has none.
    ///
    /// ```
    /// use zae_limiter::{ConfigLevel, Limit};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// assert_eq!(limiter.get_config(&ConfigLevel::System).await?, None);
    /// limiter.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// assert_eq!(limiter.get_config(&ConfigLevel::System).await?.unwrap().limits.len(), 1);
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
    /// let limiter = RateLimiter::embedded().await?;
    /// limiter.set_config(&ConfigLevel::System, ConfigChange::new().audit_retention_days(30)).await?;
    /// let limits = [Limit::per_minute("rpm", 100)?];
    /// let change = ConfigChange::new().limits(limits).on_unavailable(OnUnavailable::Allow);
    /// let config = limiter.set_config(&ConfigLevel::System, change).await?;
    /// assert_eq!(config.system.audit_retention_days, Some(30));
    /// assert_eq!(config.config_version, 2);
    /// # Ok(()) }
    /// ```
    pub async fn set_config(&self, level: &ConfigLevel, change: ConfigChange) -> Result<ConfigRecord> {
        change.apply(level, None)?;
        self.ready().await?;
        for attempt in 1..=MOST_ATTEMPTS {
            let item = self.inner.table.get(&keys::config(level), true).await?;
            let present = item.as_ref().map(ConfigRecord::from_item).transpose()?;
            let record = change.apply(level, present.as_ref())?;
            let details = audit::config_details(&record);
            let event = self
                .event(
                    audit::subject_of(level),
                    AuditAction::LimitsSet,
                    level.resource_key(),
                    details,
                )
                .await?;

            let mut transaction = Transaction::on(&self.inner.table);
            transaction.update(write(&record, item.as_ref(), change.replaces_limits()));
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
            if let Transacted::Done = transaction.commit().await? {
                self.wrote(level);
                return Ok(record);
            }
            self.after_lost_race(level, attempt).await?;
        }
        Err(self.contention(level))
    }

    /// Deletes the configuration of one level. False if it had none.
    ///
    /// At system level limits and policy go; how long audit events are kept, `auto_update` and `strict_version` stay.
    ///
    /// ```
    /// use zae_limiter::{ConfigLevel, Limit};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// let level = ConfigLevel::Resource("gpt-4".parse()?);
    /// assert!(limiter.delete_config(&level).await?);
    /// assert!(!limiter.delete_config(&level).await?, "it had none any more");
    /// # Ok(()) }
    /// ```
    pub async fn delete_config(&self, level: &ConfigLevel) -> Result<bool> {
        self.ready().await?;
        for attempt in 1..=MOST_ATTEMPTS {
            let item = self.inner.table.get(&keys::config(level), true).await?;
            let Some(item) = item else { return Ok(false) };
            let record = ConfigRecord::from_item(&item)?;
            if *level == ConfigLevel::System && record.limits.is_empty() && record.on_unavailable.is_none() {
                return Ok(false);
            }
            let details = deletion_details(level, &record);
            let event = self
                .event(
                    audit::subject_of(level),
                    AuditAction::LimitsDeleted,
                    level.resource_key(),
                    details,
                )
                .await?;

            let mut transaction = Transaction::on(&self.inner.table);
            match level {
                ConfigLevel::System => {
                    let emptied = ConfigRecord {
                        limits: LimitSet::default(),
                        on_unavailable: None,
                        ..record
                    };
                    transaction.update(write(&emptied, Some(&item), true));
                }
                ConfigLevel::Resource(resource) => {
                    transaction.delete_existing(&keys::config(level));
                    transaction.update(registry::leave_resource(resource));
                }
                ConfigLevel::Entity(..) | ConfigLevel::EntityDefault(_) => {
                    transaction.delete_existing(&keys::config(level));
                    transaction.update(registry::count_entity_configs(level.resource_key(), -1));
                }
            }
            transaction.put_new(event.to_item());
            if let Transacted::Done = transaction.commit().await? {
                self.wrote(level);
                self.drop_empty_counts(level.resource_key()).await;
                return Ok(true);
            }
            self.after_lost_race(level, attempt).await?;
        }
        Err(self.contention(level))
    }

    fn wrote(&self, level: &ConfigLevel) {
        if *level == ConfigLevel::System {
            self.inner.audit.forget_retention();
        }
        self.inner.cache.wrote(level);
    }

    async fn after_lost_race(&self, level: &ConfigLevel, attempt: u32) -> Result<()> {
        let table = &self.inner.table;
        if table.budget().pause(table, attempt).await {
            Ok(())
        } else {
            Err(self.contention(level))
        }
    }

    pub(super) fn contention(&self, what: &impl std::fmt::Display) -> Error {
        let table = &self.inner.table;
        Error::Unavailable {
            operation: "TransactWriteItems",
            table: table.name.to_string(),
            reason: format!("others kept changing {what}"),
            within: table.budget,
        }
    }

    /// Sets the limits of the whole system.
    pub async fn set_system_defaults(&self, limits: impl IntoIterator<Item = Limit>) -> Result<ConfigRecord> {
        self.set_config(&ConfigLevel::System, ConfigChange::new().limits(limits))
            .await
    }

    /// Sets the limits of a resource.
    pub async fn set_resource_defaults(
        &self,
        resource: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<ConfigRecord> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        self.set_config(&level, ConfigChange::new().limits(limits)).await
    }

    /// Sets the limits of an entity on a resource. The entity need not have been created.
    pub async fn set_limits(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<ConfigRecord> {
        let level = ConfigLevel::Entity(EntityId::parse(entity)?, Resource::parse(resource)?);
        self.set_config(&level, ConfigChange::new().limits(limits)).await
    }

    /// Sets the limits of an entity on every resource for which it has none of its own.
    pub async fn set_default_limits(
        &self,
        entity: impl AsRef<str>,
        limits: impl IntoIterator<Item = Limit>,
    ) -> Result<ConfigRecord> {
        let level = ConfigLevel::EntityDefault(EntityId::parse(entity)?);
        self.set_config(&level, ConfigChange::new().limits(limits)).await
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

/// The write that turns what is stored into the record, on the condition that it is still stored so.
pub(crate) fn write(record: &ConfigRecord, stored: Option<&Item>, replaces_limits: bool) -> Update {
    const VERSION: &str = "config_version";
    let update = Update::of(keys::config(&record.level)).add(VERSION, AttributeValue::N("1".to_owned()));
    let mut update = match stored {
        Some(item) => update
            .when_exists(attribute::PK)
            .when_still(VERSION, item.get(VERSION).cloned()),
        None => update.when_absent(attribute::PK),
    };
    let mut wanted: Vec<_> = record.to_item().into_inner().into_iter().collect();
    wanted.sort_by(|one, other| one.0.cmp(&other.0));
    let keep = |name: &str| [attribute::PK, attribute::SK, VERSION].contains(&name);
    for (name, value) in &wanted {
        if !keep(name) && stored.is_none_or(|item| item.get(name) != Some(value)) {
            update = update.set(name, value.clone());
        }
    }
    let wanted: BTreeSet<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
    let gone: BTreeSet<&str> = stored
        .into_iter()
        .flat_map(|item| item.keys())
        .map(String::as_str)
        .filter(|name| !wanted.contains(name))
        .collect();
    for name in gone {
        if !ConfigRecord::is_limit_attribute(name) || replaces_limits {
            update = update.remove(name);
        }
    }
    update
}

impl Repository {
    /// Forgets a count that has come down to nothing. Readers pass over it anyway, so failing here is harmless.
    pub(super) async fn drop_empty_counts(&self, resource: Option<&str>) {
        let Some(resource) = resource else { return };
        let update = Update::of(keys::entity_config_registry())
            .remove(resource)
            .when(|p| {
                let name = p.name(resource);
                format!("{name} <= {}", p.value(AttributeValue::N("0".to_owned())))
            });
        if let Err(error) = self.inner.table.update(update).await {
            tracing::debug!(%error, resource, "an empty count stays in the registry");
        }
    }

    /// The resources that have defaults, sorted.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// assert_eq!(limiter.list_resources_with_defaults().await?, ["gpt-4"]);
    /// # Ok(()) }
    /// ```
    pub async fn list_resources_with_defaults(&self) -> Result<Vec<String>> {
        let item = self.inner.table.get(&keys::resource_registry(), true).await?;
        let registry = item
            .map(|item| zae_limiter_schema::ResourceRegistry::from_item(&item))
            .transpose()?;
        Ok(registry.unwrap_or_default().0.into_iter().collect())
    }

    /// The resources for which entities have limits of their own, sorted. `_default_` stands for limits that an
    /// entity has on every resource.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 100)?]).await?;
    /// limiter.set_default_limits("user-1", [Limit::per_minute("rpm", 10)?]).await?;
    /// assert_eq!(limiter.list_resources_with_entity_configs().await?, ["_default_", "gpt-4"]);
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
}
