//! Reading items of older formats: attributes at the top, or in a map named `data`.

use zae_limiter_dynamo::{Placeholders, key_of};
use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{AttributeValue, Item};

/// The map that held all attributes but the keys in the oldest items.
const NESTED: &str = "data";

/// An attribute as it was read.
pub(super) struct Seen {
    path: Vec<&'static str>,
    value: AttributeValue,
}

impl Seen {
    /// The condition that it is still so.
    pub(super) fn still(&self, placeholders: &mut Placeholders) -> String {
        let path: Vec<_> = self.path.iter().map(|name| placeholders.name(name)).collect();
        format!("{} = {}", path.join("."), placeholders.value(self.value.clone()))
    }
}

/// An old item.
pub(super) struct Legacy<'a> {
    item: &'a Item,
    pub(super) key: Key,
}

impl<'a> Legacy<'a> {
    pub(super) fn new(item: &'a Item) -> Option<Self> {
        Some(Self {
            key: key_of(item)?,
            item,
        })
    }

    fn get(&self, attribute: &str) -> Option<&'a AttributeValue> {
        let nested = || match self.item.get(NESTED) {
            Some(AttributeValue::M(data)) => data.get(attribute),
            _ => None,
        };
        self.item.get(attribute).or_else(nested)
    }

    /// A whole number.
    pub(super) fn number(&self, attribute: &str) -> Result<i128, String> {
        match self.get(attribute) {
            Some(AttributeValue::N(digits)) => digits
                .parse()
                .map_err(|_| self.problem(&format!("{attribute} is not a whole number: {digits:.40}"))),
            Some(_) => Err(self.problem(&format!("{attribute} is not a number"))),
            None => Err(self.problem(&format!("{attribute} is missing"))),
        }
    }

    /// The path and the value of an attribute, for the condition that it has not changed.
    pub(super) fn seen(&self, attribute: &'static str) -> Option<Seen> {
        let value = self.get(attribute)?.clone();
        let path = if self.item.contains_key(attribute) {
            vec![attribute]
        } else {
            vec![NESTED, attribute]
        };
        Some(Seen { path, value })
    }

    pub(super) fn problem(&self, what: &str) -> String {
        format!("{} {}: {what}", self.key.pk, self.key.sk)
    }
}
