//! The two registries: resources with defaults, and resources for which entities have limits of their own.

use std::collections::{BTreeMap, BTreeSet};

use crate::item::{AttributeValue, Builder, Item, Malformed, Reader, integer, n};
use crate::keys;
use crate::keys::attribute;

/// The resources that have defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRegistry(pub BTreeSet<String>);

impl ResourceRegistry {
    /// The attribute, a set of strings.
    pub const ATTRIBUTE: &'static str = "resources";

    /// The item as it is stored, where a set is never empty.
    pub fn to_item(&self) -> Item {
        let names =
            (!self.0.is_empty()).then(|| AttributeValue::Ss(self.0.iter().cloned().collect::<Vec<_>>()));
        Builder::new(&keys::resource_registry())
            .with_some(Self::ATTRIBUTE, names)
            .build()
    }

    /// Reads the item.
    pub fn from_item(item: &Item) -> Result<Self, Malformed> {
        let names = Reader::new("registry of resources", item).optional_string_set(Self::ATTRIBUTE)?;
        Ok(Self(names.iter().cloned().collect()))
    }
}

/// For each resource (or `_default_`), how many entities have limits of their own. One number attribute each,
/// named like the resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EntityConfigRegistry(pub BTreeMap<String, i128>);

impl EntityConfigRegistry {
    /// The item as it is stored.
    pub fn to_item(&self) -> Item {
        let key = Builder::new(&keys::entity_config_registry());
        let counts = self.0.iter();
        counts
            .fold(key, |item, (name, count)| item.with(name, n(*count)))
            .build()
    }

    /// Reads the item.
    pub fn from_item(item: &Item) -> Result<Self, Malformed> {
        let reader = Reader::new("registry of entity configurations", item);
        let mut counts = BTreeMap::new();
        for (name, value) in item
            .iter()
            .filter(|(name, _)| ![attribute::PK, attribute::SK].contains(&name.as_str()))
        {
            if let AttributeValue::N(digits) = value {
                let count =
                    integer(digits).ok_or_else(|| reader.malformed(name, "must be a whole number"))?;
                counts.insert(name.clone(), count);
            }
        }
        Ok(Self(counts))
    }

    /// The resources for which at least one entity has limits of its own, sorted.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(name, _)| name.as_str())
    }
}
