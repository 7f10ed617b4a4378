//! Levels, and what they store, in words.

use zae_limiter::money::Prices;
use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigLevel, ConfigOrigin, Limit, LimitName, OnUnavailable};

use crate::ui::text::{amount, rate_of};

/// Where a limit comes from.
pub(super) const fn source(source: ConfigOrigin) -> &'static str {
    match source {
        ConfigOrigin::Call => "the call",
        ConfigOrigin::Entity => "entity on resource",
        ConfigOrigin::EntityDefault => "entity",
        ConfigOrigin::Resource => "resource",
        ConfigOrigin::System => "system",
        ConfigOrigin::Builder => "application",
    }
}

pub(super) fn level(level: &ConfigLevel) -> String {
    match level {
        ConfigLevel::Entity(entity, resource) => format!("{entity} on {resource}"),
        ConfigLevel::EntityDefault(entity) => format!("{entity} on every resource"),
        ConfigLevel::Resource(resource) => format!("everyone on {resource}"),
        ConfigLevel::System => "everyone on every resource".to_owned(),
    }
}

/// A limit as the command writes it, or in dollars if it counts money.
pub(super) fn limit(limit: &Limit, money: Option<&LimitName>) -> String {
    if money != Some(limit.name()) {
        return limit.to_string();
    }
    let text = format!("{}:{}", limit.name(), rate_of(limit, true));
    if limit.burst() == limit.capacity() {
        return text;
    }
    format!("{text}, burst {}", amount(limit.burst().get(), true))
}

/// Limits as the command writes them.
pub(super) fn limits(record: Option<&ConfigRecord>) -> String {
    let limits = record.into_iter().flat_map(|record| record.limits.iter());
    limits.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Prices in a line.
pub(super) fn prices(prices: &Prices) -> String {
    let fields = prices.fields().into_iter();
    let fields: Vec<_> = fields
        .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
        .collect();
    fields.join(", ")
}

pub(super) const fn policy(policy: OnUnavailable) -> &'static str {
    match policy {
        OnUnavailable::Allow => "allow",
        OnUnavailable::Block => "block",
    }
}
