//! The names of levels for people.

use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigLevel, ConfigOrigin, OnUnavailable};

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

/// Limits as the command writes them.
pub(super) fn limits(record: Option<&ConfigRecord>) -> String {
    let limits = record.into_iter().flat_map(|record| record.limits.iter());
    limits.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

pub(super) const fn policy(policy: OnUnavailable) -> &'static str {
    match policy {
        OnUnavailable::Allow => "allow",
        OnUnavailable::Block => "block",
    }
}
