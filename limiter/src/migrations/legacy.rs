//! Reading items of older formats: attributes at the top, or in a map named `data`.

use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{AttributeValue, Item};

use crate::dynamo::key_of;

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
        let nested = || match self.item.get("data") {
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

    /// What stands under an attribute at the top, for the condition that it has not changed.
    pub(super) fn at_top(&self, attribute: &str) -> Option<AttributeValue> {
        self.item.get(attribute).cloned()
    }

    pub(super) fn problem(&self, what: &str) -> String {
        format!("{} {}: {what}", self.key.pk, self.key.sk)
    }
}
