//! Every record of the table except buckets, each with its encoding and a total decoding.

mod audit;
mod config;
mod entity;
mod idempotency;
mod prices;
mod registry;
mod usage;
mod version;

pub use audit::{AuditAction, AuditEvent, AuditSubject, InvalidSubject};
pub use config::{ConfigRecord, InvalidPolicy, OnUnavailable, SystemSettings, TemporaryLimits};
pub use entity::{EntityRecord, Metadata};
pub use idempotency::IdempotencyRecord;
pub use registry::{EntityConfigRegistry, ResourceRegistry};
pub use usage::{Progress, UsageSnapshot, attribute as usage_attribute, threshold_text};
pub use version::{InvalidVersion, Version, VersionRecord};

use std::collections::BTreeMap;

use crate::item::{AttributeValue, Item};

/// Attributes of an item that we do not know. They are kept, so that a newer version's survive us.
pub type Unknown = BTreeMap<String, AttributeValue>;

fn unknown(item: &Item, known: impl Fn(&str) -> bool) -> Unknown {
    item.iter()
        .filter(|(name, _)| !known(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
