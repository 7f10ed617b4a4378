//! The write of one level of configuration, and the condition that nobody else changed it meanwhile.

use std::collections::BTreeMap;

use zae_limiter_dynamo::{Placeholders, Update};
use zae_limiter_schema::keys::{self, attribute};
use zae_limiter_schema::{AttributeValue, ConfigRecord, Item};

use super::limit_count::MAX_LIMITS;

/// How many stored attributes of limits a write compares. An expression has no room for more.
const MAX_COMPARED: usize = 4 * MAX_LIMITS;

/// The write that turns what is stored into the record, on the condition that it is still stored so.
///
/// A version alone does not tell: it starts again at 1 when a level is deleted and set again, and the Python peer always
/// writes 1. So limits that are replaced are compared too, and written whole.
pub(crate) fn config_write(record: &ConfigRecord, stored: Option<&Item>, replaces_limits: bool) -> Update {
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

/// The condition that the item still has the version and the limits that were read.
pub(super) fn still_stored(item: &Item, p: &mut Placeholders) -> String {
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
pub(super) fn has_what_is_deleted(item: &Item) -> bool {
    item.keys().any(|name| {
        [attribute::ON_UNAVAILABLE, attribute::MODE, attribute::MONEY_LIMIT].contains(&name.as_str())
            || ConfigRecord::is_limit_attribute(name)
    })
}
