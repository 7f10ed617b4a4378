//! The four levels of configuration: set, get, delete. The change, its registry and its audit event are one
//! transaction.

use std::collections::BTreeMap;
use std::fmt;

use zae_limiter_dynamo::{Placeholders, Transacted, Transaction, Update};
use zae_limiter_schema::keys::{self, attribute};
use zae_limiter_schema::{
    AttributeValue, AuditAction, ConfigLevel, ConfigRecord, Item, LimitSet, OnUnavailable,
};

use super::audit::{self, Details};
use super::change::ConfigChange;
use super::limit_count::MAX_LIMITS;
use super::registry;
use crate::config::cache::PolicyAfter;
use crate::error::Conflict;
use crate::{Error, Repository, Result};

/// How often a change is attempted if other writers change the same item.
pub(super) const MAX_ATTEMPTS: u32 = 10;

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

    async fn change_config(
        &self,
        level: &ConfigLevel,
        change: &ConfigChange,
        required: Required<'_>,
    ) -> Result<ConfigRecord> {
        change.apply(level, None)?;
        let this = self.for_one_operation();
        this.ready().await?;
        let table = this.table();
        for attempt in 1..=MAX_ATTEMPTS {
            let item = table.get(&keys::config(level), true).await?;
            let present = match item.as_ref().map(ConfigRecord::from_item).transpose() {
                // New limits are how a level that cannot be read is repaired.
                Err(malformed) if change.replaces_limits() => {
                    tracing::warn!(%level, %malformed, "a malformed configuration is replaced");
                    item.as_ref()
                        .map(|item| ConfigRecord::readable(level.clone(), item))
                }
                present => present?,
            };
            required.check(level, present.as_ref())?;
            let record = change.apply(level, present.as_ref())?;
            let details = audit::config_details(&record);
            let event = this.config_event(level, AuditAction::LimitsSet, details).await?;

            let mut transaction = Transaction::on(&table);
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
            let committed = transaction.commit().await.map_err(Error::from);
            this.note_write(level, &committed, record.on_unavailable);
            if let Transacted::Done = committed? {
                return Ok(record);
            }
            this.after_lost_race(level, attempt).await?;
        }
        Err(Error::contended(level))
    }

    /// Deletes the configuration of one level. False if it had none.
    ///
    /// At system level limits, policy and prices go; how long audit events are kept, `auto_update` and `strict_version` stay.
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
                        on_unavailable: None,
                        prices: None,
                        config_version: record.config_version.saturating_add(1),
                        ..record
                    };
                    transaction.update(write(&emptied, Some(&item), true));
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
            this.note_write(level, &committed, None);
            if let Transacted::Done = committed? {
                this.drop_empty_counts(level.resource_key()).await;
                return Ok(true);
            }
            this.after_lost_race(level, attempt).await?;
        }
        Err(Error::contended(level))
    }

    /// Forgets what the write has made untrue, or may have: an error leaves open whether it happened.
    fn note_write(&self, level: &ConfigLevel, outcome: &Result<Transacted>, policy: Option<OnUnavailable>) {
        let policy = match outcome {
            Ok(Transacted::Refused(_)) => return,
            Ok(Transacted::Done) => PolicyAfter::Is(policy),
            Err(_) => PolicyAfter::Unknown,
        };
        if *level == ConfigLevel::System {
            self.inner.audit.forget_retention();
        }
        self.inner.cache.wrote(level, policy);
    }

    /// Waits before the next attempt; an error if no time is left for one.
    pub(super) async fn after_lost_race(&self, what: &impl fmt::Display, attempt: u32) -> Result<()> {
        let table = self.table();
        if table.budget().pause(&table.entropy, attempt).await {
            Ok(())
        } else {
            Err(Error::contended(what))
        }
    }
}

/// The condition that the item still has the version and the limits that were read.
fn still_stored(item: &Item, p: &mut Placeholders) -> String {
    let mut conditions = vec![format!("attribute_exists({})", p.name(attribute::PK))];
    let compared = |name: &str| name == attribute::CONFIG_VERSION || ConfigRecord::is_limit_attribute(name);
    let stored: BTreeMap<_, _> = item.iter().filter(|(name, _)| compared(name)).collect();
    for (name, value) in stored.into_iter().take(MAX_COMPARED) {
        let name = p.name(name);
        conditions.push(format!("{name} = {}", p.value(value.clone())));
    }
    conditions.join(" AND ")
}

/// Whether an item, readable or not, holds what deleting the system's defaults removes.
fn has_what_is_deleted(item: &Item) -> bool {
    item.keys().any(|name| {
        [attribute::ON_UNAVAILABLE, attribute::MONEY_LIMIT].contains(&name.as_str())
            || ConfigRecord::is_limit_attribute(name)
    })
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

/// How many stored attributes of limits a write compares. An expression has no room for more.
const MAX_COMPARED: usize = 4 * MAX_LIMITS;

/// The write that turns what is stored into the record, on the condition that it is still stored so.
///
/// A version alone does not tell: it starts again at 1 when a level is deleted and set again, and the Python peer always
/// writes 1. So limits that are replaced are compared too, and written whole.
pub(crate) fn write(record: &ConfigRecord, stored: Option<&Item>, replaces_limits: bool) -> Update {
    let version = stored.and_then(|item| item.get(attribute::CONFIG_VERSION));
    let mut update = Update::of(keys::config(&record.level));
    update = if version.is_none_or(counts_up) {
        update.add(attribute::CONFIG_VERSION, AttributeValue::N("1".to_owned()))
    } else {
        update.set(
            attribute::CONFIG_VERSION,
            AttributeValue::N(record.config_version.to_string()),
        )
    };
    update = match stored {
        Some(_) => update
            .when_exists(attribute::PK)
            .when_still(attribute::CONFIG_VERSION, version.cloned()),
        None => update.when_absent(attribute::PK),
    };
    let wanted = record
        .to_item()
        .into_inner()
        .into_iter()
        .collect::<BTreeMap<_, _>>();
    let seen = stored
        .into_iter()
        .flat_map(|item| item.iter())
        .collect::<BTreeMap<_, _>>();
    let limits = seen
        .iter()
        .filter(|(name, _)| ConfigRecord::is_limit_attribute(name));
    if replaces_limits {
        for (name, value) in limits.take(MAX_COMPARED) {
            update = update.when_still(name, Some((*value).clone()));
        }
    }
    let keep = |name: &str| [attribute::PK, attribute::SK, attribute::CONFIG_VERSION].contains(&name);
    for (name, value) in &wanted {
        let is_limit = ConfigRecord::is_limit_attribute(name);
        let differs = seen.get(name).is_none_or(|seen| *seen != value);
        if !keep(name) && ((is_limit && replaces_limits) || (differs && (!is_limit || stored.is_none()))) {
            update = update.set(name, value.clone());
        }
    }
    for name in seen.keys().filter(|name| !wanted.contains_key(**name)) {
        if !ConfigRecord::is_limit_attribute(name) || replaces_limits {
            update = update.remove(name);
        }
    }
    update
}

/// True for a version that one can be added to.
fn counts_up(version: &AttributeValue) -> bool {
    match version {
        AttributeValue::N(digits) => digits.parse::<u64>().is_ok_and(|version| version < u64::MAX),
        _ => false,
    }
}
