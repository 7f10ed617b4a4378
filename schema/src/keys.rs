//! Where each record lives: keys of the table and of its three indexes.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{ConfigLevel, EntityId, LimitName, Resource, Timestamp, Ulid, Window};

pub mod attribute;

/// The name of the index from parent to children.
pub const GSI1: &str = "GSI1";
/// The name of the index from resource to buckets and usage.
pub const GSI2: &str = "GSI2";
/// The name of the index from resource to entities with limits of their own.
pub const GSI3: &str = "GSI3";

/// What sort keys of an entity's partition start with, by kind of record.
pub mod prefix {
    /// Partitions of entities.
    pub const ENTITY: &str = "ENTITY#";
    /// Partitions of resources.
    pub const RESOURCE: &str = "RESOURCE#";
    /// Partitions of audit events.
    pub const AUDIT: &str = "AUDIT#";
    /// Buckets of an entity.
    pub const BUCKET: &str = "#BUCKET#";
    /// Configurations of an entity.
    pub const CONFIG: &str = "#CONFIG#";
    /// Usage snapshots of an entity.
    pub const USAGE: &str = "#USAGE#";
    /// Changes of an entity's buckets by hand, by idempotency key.
    pub const IDEMPOTENCY: &str = "#ONCE#";
    /// Thresholds of quotas that an entity has reached.
    pub const THRESHOLD: &str = "#THRESHOLD#";
    /// Audit events of one partition.
    pub const AUDIT_EVENT: &str = "#AUDIT#";
    /// Buckets of a resource, in GSI2.
    pub const GSI2_BUCKET: &str = "BUCKET#";
    /// Usage snapshots of a resource, in GSI2.
    pub const GSI2_USAGE: &str = "USAGE#";
    /// Limits as the table kept them before schema 0.8.0, one item each.
    pub const LEGACY_LIMIT: &str = "#LIMIT#";
}

/// The partition of everything that belongs to the whole system.
pub const SYSTEM_PARTITION: &str = "SYSTEM#";

/// The sort key of an entity's own record.
pub const ENTITY_META: &str = "#META";
/// The sort key of the configuration of a resource or of the system.
pub const CONFIG: &str = "#CONFIG";

/// The primary key of an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Partition key.
    pub pk: String,
    /// Sort key.
    pub sk: String,
}

/// The key of an item in one of the indexes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey {
    /// Partition key of the index.
    pub pk: String,
    /// Sort key of the index.
    pub sk: String,
}

fn key(pk: impl Into<String>, sk: impl Into<String>) -> Key {
    Key {
        pk: pk.into(),
        sk: sk.into(),
    }
}

/// The partition that holds an entity's records.
pub fn entity_partition(entity: &EntityId) -> String {
    [prefix::ENTITY, entity.as_str()].concat()
}

/// An entity's own record.
pub fn entity_meta(entity: &EntityId) -> Key {
    key(entity_partition(entity), ENTITY_META)
}

/// The bucket of an entity and resource, with all its limits.
pub fn bucket(entity: &EntityId, resource: &Resource) -> Key {
    key(
        entity_partition(entity),
        [prefix::BUCKET, resource.as_str()].concat(),
    )
}

/// The record of a change of an entity's buckets that was made under an idempotency key. The key may have any
/// length, so its hash is stored instead.
pub fn idempotency(entity: &EntityId, idempotency_key: &str) -> Key {
    let hash = Sha256::digest(idempotency_key.as_bytes());
    let mut sort = prefix::IDEMPOTENCY.to_owned();
    for byte in hash {
        // Appending to a string cannot fail.
        let _ = write!(sort, "{byte:02x}");
    }
    key(entity_partition(entity), sort)
}

/// The configuration at one level.
pub fn config(level: &ConfigLevel) -> Key {
    match level {
        ConfigLevel::System => key(SYSTEM_PARTITION, CONFIG),
        ConfigLevel::Resource(resource) => key(format!("{}{resource}", prefix::RESOURCE), CONFIG),
        ConfigLevel::EntityDefault(entity) => key(
            entity_partition(entity),
            format!("{}{}", prefix::CONFIG, ConfigLevel::DEFAULT_RESOURCE),
        ),
        ConfigLevel::Entity(entity, resource) => {
            key(entity_partition(entity), format!("{}{resource}", prefix::CONFIG))
        }
    }
}

/// One usage snapshot.
pub fn usage(entity: &EntityId, resource: &Resource, window: Window) -> Key {
    key(
        entity_partition(entity),
        format!("{}{resource}#{}", prefix::USAGE, window.key()),
    )
}

/// The record that a quota has reached a threshold: of this period, in percent of this amount in whole tokens.
pub fn threshold(
    entity: &EntityId,
    resource: &Resource,
    limit: &LimitName,
    (period_end, percent, amount): (Timestamp, u8, i128),
) -> Key {
    key(
        entity_partition(entity),
        format!(
            "{}{resource}#{limit}#{period_end}#{percent}#{amount}",
            prefix::THRESHOLD
        ),
    )
}

/// The record of the table's version.
pub fn version() -> Key {
    key(SYSTEM_PARTITION, "#VERSION")
}

/// An item that never exists: a conditional write to it shows whether the table accepts writes.
pub fn write_probe() -> Key {
    key(prefix::ENTITY, "#PROBE")
}

/// The registry of resources that have defaults.
pub fn resource_registry() -> Key {
    key(SYSTEM_PARTITION, "#RESOURCES")
}

/// The registry of resources for which entities have limits of their own.
pub fn entity_config_registry() -> Key {
    key(SYSTEM_PARTITION, "#ENTITY_CONFIG_RESOURCES")
}

/// The record of the levels that a limits file manages.
pub fn applied_limits() -> Key {
    key(SYSTEM_PARTITION, "#PROVISIONER")
}

/// The partition of the audit events about one subject (see [`AuditSubject`](crate::AuditSubject)).
pub fn audit_partition(subject: &str) -> String {
    format!("{}{subject}", prefix::AUDIT)
}

/// One audit event.
pub fn audit(subject: &str, event: Ulid) -> Key {
    key(
        audit_partition(subject),
        format!("{}{event}", prefix::AUDIT_EVENT),
    )
}

/// GSI1: a child under its parent.
pub fn gsi1_child(parent: &EntityId, child: &EntityId) -> IndexKey {
    IndexKey {
        pk: gsi1_parent_partition(parent),
        sk: format!("CHILD#{child}"),
    }
}

/// GSI1: the partition with all children of a parent.
pub fn gsi1_parent_partition(parent: &EntityId) -> String {
    format!("PARENT#{parent}")
}

/// GSI2: the partition of a resource.
pub fn gsi2_resource_partition(resource: &Resource) -> String {
    format!("{}{resource}", prefix::RESOURCE)
}

/// GSI2: a bucket under its resource.
pub fn gsi2_bucket(resource: &Resource, entity: &EntityId) -> IndexKey {
    IndexKey {
        pk: gsi2_resource_partition(resource),
        sk: format!("{}{entity}", prefix::GSI2_BUCKET),
    }
}

/// GSI2: a usage snapshot under its resource, by window.
pub fn gsi2_usage(resource: &Resource, window: Window, entity: &EntityId) -> IndexKey {
    IndexKey {
        pk: gsi2_resource_partition(resource),
        sk: format!("{}{}#{entity}", prefix::GSI2_USAGE, window.key()),
    }
}

/// GSI3: the partition of the entities that have limits of their own for a resource (or `_default_`).
pub fn gsi3_partition(resource: &str) -> String {
    format!("ENTITY_CONFIG#{resource}")
}
