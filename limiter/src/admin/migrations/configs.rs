//! Schema 0.8.0: one configuration item per level, in place of one item per limit.

use std::collections::BTreeMap;

use zae_limiter_dynamo::{Transacted, Transaction};
use zae_limiter_schema::keys::{self, Key, attribute, prefix};
use zae_limiter_schema::{ConfigLevel, ConfigRecord, EntityId, Item, Limit, LimitName, Resource};

use super::legacy::Legacy;
use super::{Counts, Migration, OldItems};
use crate::admin::{check_limit_count, config_write, count_entity_configs, enter_resource, limit_set};
use crate::{Repository, Result};

pub(super) const MIGRATION: Migration = Migration {
    name: "composite-configs",
    description: "one configuration item per level in place of one #LIMIT# item per limit",
    old: OldItems {
        prefix: prefix::LEGACY_LIMIT,
        concerns: |_| true,
    },
    convert: |repository, old, dry_run| Box::pin(convert(repository, old, dry_run)),
};

/// The old items of one level.
#[derive(Default)]
struct OldLevel {
    limits: BTreeMap<LimitName, Limit>,
    items: Vec<Key>,
    problems: Vec<String>,
}

impl OldLevel {
    /// Two items of one limit must have the same values: it is unknown which of two is meant.
    fn add(&mut self, legacy: Legacy<'_>) {
        match limit_of(&legacy) {
            Err(problem) => self.problems.push(problem),
            Ok(limit) => {
                let name = limit.name().clone();
                if self.limits.get(&name).is_some_and(|other| *other != limit) {
                    let problem = format!("limit {name} is stored twice, with different values");
                    self.problems.push(legacy.problem(&problem));
                }
                self.limits.insert(name, limit);
            }
        }
        self.items.push(legacy.key);
    }
}

async fn convert(repository: &Repository, old: Vec<Item>, dry_run: bool) -> Result<Counts> {
    let mut counts = Counts {
        found: old.len() as u64,
        ..Counts::default()
    };
    let mut levels: BTreeMap<ConfigLevel, OldLevel> = BTreeMap::new();
    for legacy in old.iter().filter_map(Legacy::new) {
        match level_of(&legacy) {
            Ok(level) => levels.entry(level).or_default().add(legacy),
            Err(problem) => counts.problems.push(problem),
        }
    }
    for (level, old) in levels {
        // Half a level would pass for a whole one when the migration is run again.
        if !old.problems.is_empty() {
            counts.problems.extend(old.problems);
            continue;
        }
        let removed = old.items.len() as u64;
        let written = write(repository, &level, old, dry_run).await;
        counts.note(&level, removed, written)?;
    }
    Ok(counts)
}

/// The resource, if it names one, and the limit in an old item's sort key.
fn parts(sort_key: &str) -> (Option<&str>, &str) {
    let rest = sort_key.strip_prefix(prefix::LEGACY_LIMIT).unwrap_or_default();
    rest.rsplit_once('#')
        .map_or((None, rest), |(resource, name)| (Some(resource), name))
}

/// Which level an old item belongs to.
fn level_of(legacy: &Legacy<'_>) -> Result<ConfigLevel, String> {
    let pk = &legacy.key.pk;
    let (resource, _) = parts(&legacy.key.sk);
    let unusable = |what: String| legacy.problem(&what);
    let stored = |name: &str| Resource::from_stored(name).map_err(|error| unusable(error.to_string()));
    let general = |resource: Option<&str>| resource.is_none_or(|name| name == ConfigLevel::DEFAULT_RESOURCE);

    Ok(if let Some(id) = pk.strip_prefix(prefix::ENTITY) {
        let id = EntityId::parse(id).map_err(|error| unusable(error.to_string()))?;
        match resource {
            Some(name) if !general(resource) => ConfigLevel::Entity(id, stored(name)?),
            _ => ConfigLevel::EntityDefault(id),
        }
    } else if let Some(name) = pk.strip_prefix(prefix::RESOURCE) {
        ConfigLevel::Resource(stored(name)?)
    } else if pk == keys::SYSTEM_PARTITION {
        // The first design kept limits of single resources at system level.
        match resource {
            Some(name) if !general(resource) => ConfigLevel::Resource(stored(name)?),
            _ => ConfigLevel::System,
        }
    } else {
        return Err(unusable("belongs to no level".to_owned()));
    })
}

/// The limit that an old item holds.
fn limit_of(legacy: &Legacy<'_>) -> Result<Limit, String> {
    let (_, name) = parts(&legacy.key.sk);
    let unusable = |what: String| legacy.problem(&what);
    let number = |attribute: &str| {
        let number = legacy.number(attribute)?;
        u64::try_from(number).map_err(|_| unusable(format!("{attribute} is out of range: {number}")))
    };
    Limit::from_parts(
        LimitName::from_stored(name).map_err(|error| unusable(error.to_string()))?,
        number("capacity")?,
        number("burst")?,
        number("refill_amount")?,
        number("refill_period_seconds")?,
    )
    .map_err(|error| unusable(error.to_string()))
}

/// Writes the new item and deletes the old ones together. A level that has limits in the new form already keeps them:
/// they are newer. Nothing if another writer was faster.
async fn write(
    repository: &Repository,
    level: &ConfigLevel,
    old: OldLevel,
    dry_run: bool,
) -> Result<Option<bool>> {
    let table = &repository.inner.table;
    let key = keys::config(level);
    let item = table.get(&key, true).await?;
    let present = item.as_ref().map(ConfigRecord::from_item).transpose()?;
    check_limit_count("limits", old.limits.len())?;
    let mut transaction = Transaction::on(table);
    let writes = present.as_ref().is_none_or(|record| record.limits.is_empty());
    if dry_run {
        return Ok(Some(writes));
    }
    if writes {
        let limits = limit_set("limits", old.limits.into_values().collect())?;
        let record = match present {
            Some(present) => ConfigRecord { limits, ..present },
            None => ConfigRecord::new(level.clone(), limits),
        };
        transaction.update(config_write(&record, item.as_ref(), true));
        match level {
            ConfigLevel::Resource(resource) => drop(transaction.update(enter_resource(resource))),
            ConfigLevel::Entity(..) | ConfigLevel::EntityDefault(_) if item.is_none() => {
                transaction.update(count_entity_configs(level.resource_key(), 1));
            }
            _ => {}
        }
    } else {
        transaction.check(&key, |p| format!("attribute_exists({})", p.name(attribute::PK)));
    }
    for key in &old.items {
        transaction.delete_existing(key);
    }
    Ok(matches!(transaction.commit().await?, Transacted::Done).then_some(writes))
}
