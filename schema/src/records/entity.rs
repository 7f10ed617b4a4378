//! An entity's own record.

use std::collections::{BTreeMap, HashMap};

use super::{Unknown, unknown};
use crate::item::{AttributeValue, Builder, Item, Malformed, Reader, n, s, s_or_null};
use crate::keys::attribute;
use crate::{EntityId, Timestamp, keys};

/// What an application notes about an entity.
pub type Metadata = BTreeMap<String, AttributeValue>;

/// Who is limited: a name, perhaps a parent, and whether its calls count on the parent too.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityRecord {
    /// The entity's id.
    pub id: EntityId,
    /// A name for people; the id where none was given.
    pub name: String,
    /// The parent, if it has one.
    pub parent: Option<EntityId>,
    /// Whether acquires cascade to the parent.
    pub cascade: bool,
    /// Free notes.
    pub metadata: Metadata,
    /// When it was created.
    pub created_at: Timestamp,
    /// How often it was written, for optimistic locking; 0 for a record without a version, as the Python package
    /// writes it.
    pub version: u64,
    /// Attributes that this version does not know.
    pub unknown: Unknown,
}

const KNOWN: [&str; 11] = [
    attribute::PK,
    attribute::SK,
    attribute::GSI1PK,
    attribute::GSI1SK,
    attribute::ENTITY_ID,
    attribute::NAME,
    attribute::PARENT_ID,
    attribute::CASCADE,
    attribute::METADATA,
    attribute::CREATED_AT,
    attribute::VERSION,
];

impl EntityRecord {
    /// The item as it is stored.
    pub fn to_item(&self) -> Item {
        let index = self
            .parent
            .as_ref()
            .map(|parent| keys::gsi1_child(parent, &self.id));
        let mut item = Builder::new(&keys::entity_meta(&self.id))
            .with(attribute::ENTITY_ID, s(&self.id))
            .with(attribute::NAME, s(&self.name))
            .with(attribute::PARENT_ID, s_or_null(self.parent.as_ref()))
            .with(attribute::CASCADE, AttributeValue::Bool(self.cascade))
            .with(
                attribute::METADATA,
                AttributeValue::M(self.metadata.clone().into_iter().collect::<HashMap<_, _>>()),
            )
            .with(attribute::CREATED_AT, s(self.created_at))
            .with_some(attribute::VERSION, (self.version > 0).then(|| n(self.version)))
            .with_some(attribute::GSI1PK, index.as_ref().map(|index| s(&index.pk)))
            .with_some(attribute::GSI1SK, index.as_ref().map(|index| s(&index.sk)));
        for (name, value) in &self.unknown {
            item = item.with(name, value.clone());
        }
        item.build()
    }

    /// Reads the item.
    pub fn from_item(item: &Item) -> Result<Self, Malformed> {
        let reader = Reader::new("entity", item);
        let id = reader.parsed(attribute::ENTITY_ID, EntityId::parse)?;
        Ok(Self {
            name: reader
                .optional_text(attribute::NAME)?
                .map_or_else(|| id.to_string(), str::to_owned),
            parent: reader.optional_parsed(attribute::PARENT_ID, EntityId::parse)?,
            cascade: reader.optional_flag(attribute::CASCADE)?.unwrap_or(false),
            metadata: reader
                .optional_map(attribute::METADATA)?
                .map(|map| {
                    map.iter()
                        .map(|(name, value)| (name.clone(), value.clone()))
                        .collect()
                })
                .unwrap_or_default(),
            created_at: reader.parsed(attribute::CREATED_AT, Timestamp::parse)?,
            version: reader.optional_number(attribute::VERSION)?.unwrap_or(0),
            unknown: unknown(item, |name| KNOWN.contains(&name)),
            id,
        })
    }
}
