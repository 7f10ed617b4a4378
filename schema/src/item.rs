//! Reading and building items: the neutral form between our types and those of a client or a stream.

use std::collections::HashMap;
use std::fmt::Display;

pub use serde_dynamo::{AttributeValue, Item};

/// An item of the table that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed {record} in the table: attribute {attribute:?} {reason}")]
pub struct Malformed {
    /// The kind of record that was read.
    pub record: &'static str,
    /// The attribute at fault.
    pub attribute: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads the attributes of one item; each failure names the attribute.
pub(crate) struct Reader<'a> {
    record: &'static str,
    item: &'a HashMap<String, AttributeValue>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(record: &'static str, item: &'a Item) -> Self {
        Self {
            record,
            item: item.as_ref(),
        }
    }

    pub(crate) fn malformed(&self, attribute: &str, reason: impl Into<String>) -> Malformed {
        Malformed {
            record: self.record,
            attribute: attribute.chars().take(100).collect(),
            reason: reason.into(),
        }
    }

    fn wrong_type(&self, attribute: &str, expected: &str) -> Malformed {
        self.malformed(attribute, format!("must be {expected}"))
    }

    fn required<T>(&self, attribute: &str, value: Option<T>) -> Result<T, Malformed> {
        value.ok_or_else(|| self.malformed(attribute, "is missing"))
    }

    /// Text, or nothing where the attribute is absent or NULL.
    pub(crate) fn optional_text(&self, attribute: &str) -> Result<Option<&'a str>, Malformed> {
        match self.item.get(attribute) {
            None | Some(AttributeValue::Null(_)) => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong_type(attribute, "a string")),
        }
    }

    pub(crate) fn text(&self, attribute: &str) -> Result<&'a str, Malformed> {
        self.required(attribute, self.optional_text(attribute)?)
    }

    pub(crate) fn optional_integer(&self, attribute: &str) -> Result<Option<i128>, Malformed> {
        match self.item.get(attribute) {
            None | Some(AttributeValue::Null(_)) => Ok(None),
            Some(AttributeValue::N(digits)) => integer(digits).map(Some).ok_or_else(|| {
                self.malformed(attribute, format!("must be a whole number, not {digits:.40}"))
            }),
            Some(_) => Err(self.wrong_type(attribute, "a number")),
        }
    }

    /// A whole number that fits the wanted type.
    pub(crate) fn optional_number<T: TryFrom<i128>>(&self, attribute: &str) -> Result<Option<T>, Malformed> {
        self.optional_integer(attribute)?
            .map(|n| T::try_from(n).map_err(|_| self.malformed(attribute, format!("is out of range: {n}"))))
            .transpose()
    }

    pub(crate) fn number<T: TryFrom<i128>>(&self, attribute: &str) -> Result<T, Malformed> {
        self.required(attribute, self.optional_number(attribute)?)
    }

    pub(crate) fn optional_flag(&self, attribute: &str) -> Result<Option<bool>, Malformed> {
        match self.item.get(attribute) {
            None | Some(AttributeValue::Null(_)) => Ok(None),
            Some(AttributeValue::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong_type(attribute, "true or false")),
        }
    }

    pub(crate) fn optional_map(
        &self,
        attribute: &str,
    ) -> Result<Option<&'a HashMap<String, AttributeValue>>, Malformed> {
        match self.item.get(attribute) {
            None | Some(AttributeValue::Null(_)) => Ok(None),
            Some(AttributeValue::M(map)) => Ok(Some(map)),
            Some(_) => Err(self.wrong_type(attribute, "a map")),
        }
    }

    pub(crate) fn optional_string_set(&self, attribute: &str) -> Result<&'a [String], Malformed> {
        match self.item.get(attribute) {
            None | Some(AttributeValue::Null(_)) => Ok(&[]),
            Some(AttributeValue::Ss(set)) => Ok(set),
            Some(_) => Err(self.wrong_type(attribute, "a set of strings")),
        }
    }

    /// Text that must be one of our names, times and the like.
    pub(crate) fn parsed<T, E: Display>(
        &self,
        attribute: &str,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Result<T, Malformed> {
        parse(self.text(attribute)?)
            .map_err(|error| self.malformed(attribute, format!("is not usable: {error}")))
    }

    pub(crate) fn optional_parsed<T, E: Display>(
        &self,
        attribute: &str,
        parse: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Result<Option<T>, Malformed> {
        self.optional_text(attribute)?
            .map(|text| {
                parse(text).map_err(|error| self.malformed(attribute, format!("is not usable: {error}")))
            })
            .transpose()
    }
}

/// A whole number in the table's text form, if it is one.
pub(crate) fn integer(digits: &str) -> Option<i128> {
    // Parsing 128 bits takes several times as long, and few numbers need them.
    let short = |digits: &str| digits.parse::<i64>().ok().map(i128::from);
    short(digits).or_else(|| digits.parse().ok())
}

pub(crate) fn n(number: impl Into<i128>) -> AttributeValue {
    AttributeValue::N(number.into().to_string())
}

pub(crate) fn s(text: impl Display) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

/// Text, or NULL where there is none.
pub(crate) fn s_or_null(text: Option<impl Display>) -> AttributeValue {
    text.map_or(AttributeValue::Null(true), s)
}

/// Builds an item in the order in which people read it.
pub(crate) struct Builder(HashMap<String, AttributeValue>);

impl Builder {
    pub(crate) fn new(key: &crate::keys::Key) -> Self {
        Self(HashMap::new())
            .with(crate::keys::attribute::PK, s(&key.pk))
            .with(crate::keys::attribute::SK, s(&key.sk))
    }

    pub(crate) fn with(mut self, attribute: impl Into<String>, value: AttributeValue) -> Self {
        self.0.insert(attribute.into(), value);
        self
    }

    pub(crate) fn with_some(self, attribute: impl Into<String>, value: Option<AttributeValue>) -> Self {
        match value {
            Some(value) => self.with(attribute, value),
            None => self,
        }
    }

    pub(crate) fn build(self) -> Item {
        Item::from(self.0)
    }
}
