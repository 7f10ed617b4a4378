//! Changes of a bucket by hand that were made under an idempotency key: what makes them happen once.

use std::collections::{BTreeMap, HashMap};

use crate::item::{AttributeValue, Builder, Item, Malformed, Reader, n, s};
use crate::keys::{Key, attribute};
use crate::{EntityId, Ulid};

/// A change that was made. It is written in one transaction with the change and its audit event, where there is no record under
/// the same key.
#[derive(Debug, Clone, PartialEq)]
pub struct IdempotencyRecord {
    /// Whose bucket.
    pub entity: EntityId,
    /// What was asked for. Another request may not use the key.
    pub request: String,
    /// The audit event of the change.
    pub event: Ulid,
    /// What the change came to, as in the event.
    pub details: BTreeMap<String, AttributeValue>,
    /// When the table may forget it, in epoch seconds: with the event.
    pub ttl: Option<i64>,
}

impl IdempotencyRecord {
    /// The item as it stands in the table, under the [key](crate::keys::idempotency) that it was made with.
    pub fn to_item(&self, key: &Key) -> Item {
        let details = self.details.clone().into_iter().collect::<HashMap<_, _>>();
        Builder::new(key)
            .with(attribute::ENTITY_ID, s(&self.entity))
            .with(attribute::REQUEST, s(&self.request))
            .with(attribute::EVENT_ID, s(self.event))
            .with(attribute::DETAILS, AttributeValue::M(details))
            .with_some(attribute::TTL, self.ttl.map(n))
            .build()
    }

    /// Reads the item.
    pub fn from_item(item: &Item) -> Result<Self, Malformed> {
        let reader = Reader::new("idempotency record", item);
        let details = reader.optional_map(attribute::DETAILS)?;
        let details = details.into_iter().flatten();
        Ok(Self {
            entity: reader.parsed(attribute::ENTITY_ID, EntityId::parse)?,
            request: reader.text(attribute::REQUEST)?.to_owned(),
            event: reader.parsed(attribute::EVENT_ID, |text| {
                Ulid::parse(text).ok_or("it is not a ULID")
            })?,
            details: details
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            ttl: reader.optional_number(attribute::TTL)?,
        })
    }
}
