//! Schema 0.8.0: one configuration item per level, in place of one item per limit.

use std::collections::BTreeMap;

use zae_limiter_schema::keys::{self, Key, prefix};
use zae_limiter_schema::{
    ConfigLevel, ConfigRecord, EntityId, Item, Limit, LimitName, LimitSet, Resource, Version,
};

use super::legacy::Legacy;
use super::{Counts, Migration};
use crate::backend::Pending;
use crate::dynamo::{Transacted, Transaction};
use crate::repository::{config_write, count_entity_configs, enter_resource};
use crate::{Repository, Result};

pub(super) struct CompositeConfigs;

impl Migration for CompositeConfigs {
    fn version(&self) -> Version {
        super::composite_version()
    }

    fn name(&self) -> &'static str {
        "composite-configs"
    }

    fn description(&self) -> &'static str {
        "one configuration item per level in place of one #LIMIT# item per limit"
    }

    fn prefix(&self) -> &'static str {
        prefix::LEGACY_LIMIT
    }

    fn concerns(&self, _: &str) -> bool {
        true
    }

    fn convert<'a>(
        &'a self,
        repository: &'a Repository,
        old: Vec<Item>,
        dry_run: bool,
    ) -> Pending<'a, Counts> {
        Box::pin(convert(repository, old, dry_run))
    }
}

/// The old items of one level.
#[derive(Default)]
struct OldLevel {
    limits: Vec<Limit>,
    items: Vec<Key>,
}

async fn convert(repository: &Repository, old: Vec<Item>, dry_run: bool) -> Result<Counts> {
    let mut counts = Counts {
        found: old.len() as u64,
        ..Counts::default()
    };
    let mut levels: BTreeMap<ConfigLevel, OldLevel> = BTreeMap::new();
    for legacy in old.iter().filter_map(Legacy::new) {
        match read(&legacy) {
            Ok((level, limit)) => {
                let level = levels.entry(level).or_default();
                level.limits.push(limit);
                level.items.push(legacy.key);
            }
            Err(problem) => counts.problems.push(problem),
        }
    }
    for (level, old) in levels {
        let removed = old.items.len() as u64;
        if dry_run {
            counts.written += 1;
            counts.removed += removed;
            continue;
        }
        match write(repository, &level, old).await? {
            Some(written) => {
                counts.written += u64::from(written);
                counts.removed += removed;
            }
            None => counts
                .problems
                .push(format!("{level} was changed meanwhile; run the migration again")),
        }
    }
    Ok(counts)
}

/// Which level an old item belongs to, and the limit it holds.
fn read(legacy: &Legacy<'_>) -> Result<(ConfigLevel, Limit), String> {
    let Key { pk, sk } = &legacy.key;
    let rest = sk.strip_prefix(prefix::LEGACY_LIMIT).unwrap_or_default();
    let (resource, name) = rest
        .rsplit_once('#')
        .map_or((None, rest), |(resource, name)| (Some(resource), name));
    let unusable = |what: String| legacy.problem(&what);
    let stored = |name: &str| Resource::from_stored(name).map_err(|error| unusable(error.to_string()));
    let general = |resource: Option<&str>| resource.is_none_or(|name| name == ConfigLevel::DEFAULT_RESOURCE);

    let level = if let Some(id) = pk.strip_prefix(prefix::ENTITY) {
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
    };
    let number = |attribute: &str| {
        let number = legacy.number(attribute)?;
        u64::try_from(number).map_err(|_| unusable(format!("{attribute} is out of range: {number}")))
    };
    let limit = Limit::from_parts(
        LimitName::from_stored(name).map_err(|error| unusable(error.to_string()))?,
        number("capacity")?,
        number("burst")?,
        number("refill_amount")?,
        number("refill_period_seconds")?,
    )
    .map_err(|error| unusable(error.to_string()))?;
    Ok((level, limit))
}

/// Writes the new item and deletes the old ones together. A level that has limits in the new form already keeps them:
/// they are newer. Nothing if somebody else was faster.
async fn write(repository: &Repository, level: &ConfigLevel, old: OldLevel) -> Result<Option<bool>> {
    let table = &repository.inner.table;
    let item = table.get(&keys::config(level), true).await?;
    let present = item.as_ref().map(ConfigRecord::from_item).transpose()?;
    let mut transaction = Transaction::on(table);
    let writes = present.as_ref().is_none_or(|record| record.limits.is_empty());
    if writes {
        let limits = LimitSet::new(old.limits).unwrap_or_default();
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
    }
    for key in &old.items {
        transaction.delete_existing(key);
    }
    Ok(matches!(transaction.commit().await?, Transacted::Done).then_some(writes))
}
