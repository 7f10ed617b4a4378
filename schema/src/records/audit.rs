//! Audit events: who changed what, and when.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

use super::{Unknown, unknown};
use crate::item::{AttributeValue, Builder, Item, Malformed, Reader, n, s, s_or_null};
use crate::keys::attribute;
use crate::{EntityId, InvalidName, Resource, Timestamp, Ulid, keys};

/// What an event is about: an entity, the defaults of a resource (`$RESOURCE:{name}`), or the system (`$SYSTEM`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AuditSubject {
    /// An entity or its limits.
    Entity(EntityId),
    /// The defaults of a resource.
    Resource(Resource),
    /// The defaults of the system.
    System,
}

/// Text that is no subject of audit events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("audit subject is invalid: {0}; it is an entity id, $RESOURCE:NAME or $SYSTEM")]
pub struct InvalidSubject(#[from] InvalidName);

impl fmt::Display for AuditSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entity(entity) => entity.fmt(f),
            Self::Resource(resource) => write!(f, "$RESOURCE:{resource}"),
            Self::System => f.write_str("$SYSTEM"),
        }
    }
}

impl FromStr for AuditSubject {
    type Err = InvalidSubject;

    fn from_str(value: &str) -> Result<Self, InvalidSubject> {
        match value.strip_prefix("$RESOURCE:") {
            Some(resource) => Ok(Self::Resource(Resource::from_stored(resource)?)),
            None if value == "$SYSTEM" => Ok(Self::System),
            None => Ok(Self::Entity(EntityId::parse(value)?)),
        }
    }
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditAction {
    /// An entity was created.
    EntityCreated,
    /// An entity's name, metadata, parent or cascade flag was changed.
    EntityUpdated,
    /// An entity and its records were deleted.
    EntityDeleted,
    /// Limits or settings of a level were set.
    LimitsSet,
    /// The configuration of a level was deleted.
    LimitsDeleted,
    /// Something was added to what was left of a limit.
    ToppedUp,
    /// Limits of a bucket were made as if nothing were used.
    LimitsReset,
    /// Something that a newer version writes.
    Other(String),
}

impl AuditAction {
    const KNOWN: [(Self, &'static str); 7] = [
        (Self::EntityCreated, "entity_created"),
        (Self::EntityUpdated, "entity_updated"),
        (Self::EntityDeleted, "entity_deleted"),
        (Self::LimitsSet, "limits_set"),
        (Self::LimitsDeleted, "limits_deleted"),
        (Self::ToppedUp, "topped_up"),
        (Self::LimitsReset, "limits_reset"),
    ];

    /// The value of the attribute `action`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => Self::KNOWN
                .iter()
                .find(|(action, _)| action == known)
                .map_or("", |(_, name)| name),
        }
    }
}

impl From<&str> for AuditAction {
    fn from(value: &str) -> Self {
        Self::KNOWN
            .into_iter()
            .find(|(_, name)| *name == value)
            .map_or_else(|| Self::Other(value.to_owned()), |(action, _)| action)
    }
}

impl fmt::Display for AuditAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEvent {
    /// Its id, which sorts by time.
    pub id: Ulid,
    /// What it is about.
    pub subject: AuditSubject,
    /// When it happened.
    pub timestamp: Timestamp,
    /// What was done.
    pub action: AuditAction,
    /// Who did it, if that is known.
    pub principal: Option<String>,
    /// The resource, or `_default_`, if one is concerned.
    pub resource: Option<String>,
    /// The particulars.
    pub details: BTreeMap<String, AttributeValue>,
    /// When the table may forget it, in epoch seconds.
    pub ttl: Option<i64>,
    /// Attributes that this version does not know.
    pub unknown: Unknown,
}

const KNOWN: [&str; 10] = [
    attribute::PK,
    attribute::SK,
    attribute::EVENT_ID,
    attribute::ENTITY_ID,
    attribute::TIMESTAMP,
    attribute::ACTION,
    attribute::PRINCIPAL,
    attribute::RESOURCE,
    attribute::DETAILS,
    attribute::TTL,
];

impl AuditEvent {
    /// The item as it is stored.
    pub fn to_item(&self) -> Item {
        let subject = self.subject.to_string();
        let mut item = Builder::new(&keys::audit(&subject, self.id))
            .with(attribute::ENTITY_ID, s(&subject))
            .with(attribute::EVENT_ID, s(self.id))
            .with(attribute::TIMESTAMP, s(self.timestamp))
            .with(attribute::ACTION, s(&self.action))
            .with(attribute::PRINCIPAL, s_or_null(self.principal.as_ref()))
            .with(attribute::RESOURCE, s_or_null(self.resource.as_ref()))
            .with(
                attribute::DETAILS,
                AttributeValue::M(self.details.clone().into_iter().collect::<HashMap<_, _>>()),
            )
            .with_some(attribute::TTL, self.ttl.map(n));
        for (name, value) in &self.unknown {
            item = item.with(name, value.clone());
        }
        item.build()
    }

    /// Reads the item.
    pub fn from_item(item: &Item) -> Result<Self, Malformed> {
        let reader = Reader::new("audit event", item);
        Ok(Self {
            id: reader.parsed(attribute::EVENT_ID, |text| {
                Ulid::parse(text).ok_or("it is not a ULID")
            })?,
            subject: reader.parsed(attribute::ENTITY_ID, AuditSubject::from_str)?,
            timestamp: reader.parsed(attribute::TIMESTAMP, Timestamp::parse)?,
            action: AuditAction::from(reader.text(attribute::ACTION)?),
            principal: reader.optional_text(attribute::PRINCIPAL)?.map(str::to_owned),
            resource: reader.optional_text(attribute::RESOURCE)?.map(str::to_owned),
            details: reader
                .optional_map(attribute::DETAILS)?
                .map(|map| {
                    map.iter()
                        .map(|(name, value)| (name.clone(), value.clone()))
                        .collect()
                })
                .unwrap_or_default(),
            ttl: reader.optional_number(attribute::TTL)?,
            unknown: unknown(item, |name| KNOWN.contains(&name)),
        })
    }
}
