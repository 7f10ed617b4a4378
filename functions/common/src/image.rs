//! The attributes of an item, borrowed from the text of a stream record.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The attributes of an item, by name.
#[derive(Debug, Deserialize)]
#[serde(from = "Attributes<'a>", bound(deserialize = "'de: 'a"))]
pub struct Image<'a> {
    attributes: Vec<(Text<'a>, Value<'a>)>,
    /// The indexes of the attributes, sorted by name.
    by_name: Vec<usize>,
}

impl<'a> Image<'a> {
    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        let found = self
            .by_name
            .binary_search_by(|index| (*self.attributes[*index].0).cmp(name));
        found.ok().map(|place| &self.attributes[self.by_name[place]].1)
    }

    /// The attributes in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> {
        let attributes = self.by_name.iter().map(|index| &self.attributes[*index]);
        attributes.map(|(name, value)| (&**name, value))
    }

    /// An image that most likely has the names of another one, in the same order: that is sorted once.
    pub(crate) fn like(other: &Self, attributes: Attributes<'a>) -> Self {
        let names = attributes.0.iter().map(|(name, _)| name);
        if names.eq(other.attributes.iter().map(|(name, _)| name)) {
            let by_name = other.by_name.clone();
            let attributes = attributes.0;
            return Self { attributes, by_name };
        }
        attributes.into()
    }
}

impl<'a> From<Attributes<'a>> for Image<'a> {
    fn from(Attributes(attributes): Attributes<'a>) -> Self {
        let name = |index: usize| &*attributes[index].0;
        let mut by_name: Vec<_> = (0..attributes.len()).collect();
        // JSON allows a name twice: the last one counts.
        by_name.sort_unstable_by(|a, b| name(*a).cmp(name(*b)).then(b.cmp(a)));
        by_name.dedup_by(|next, kept| name(*next) == name(*kept));
        Self { attributes, by_name }
    }
}

/// The attributes of an item in the order of delivery.
#[derive(Debug, Default)]
pub(crate) struct Attributes<'a>(Vec<(Text<'a>, Value<'a>)>);

/// The value of an attribute.
#[derive(Debug)]
pub enum Value<'a> {
    /// A string.
    S(Text<'a>),
    /// The digits of a number.
    N(Text<'a>),
    /// A flag.
    Bool(bool),
    /// A value of any other type, as it was delivered.
    Other(&'a RawValue),
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::S(a), Self::S(b)) | (Self::N(a), Self::N(b)) => a == b,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Other(a), Self::Other(b)) => a.get() == b.get(),
            _ => false,
        }
    }
}

/// A text, copied only if it is written with escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Attributes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttributesVisitor).map(Self)
    }
}

/// More attributes than this are rare in a bucket.
const USUAL_ATTRIBUTES: usize = 40;

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Vec<(Text<'de>, Value<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut attributes: Self::Value = Vec::with_capacity(USUAL_ATTRIBUTES);
        while let Some(attribute) = map.next_entry()? {
            attributes.push(attribute);
        }
        Ok(attributes)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an attribute value, such as {\"N\": \"1\"}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let kind: Text<'de> = map
            .next_key()?
            .ok_or_else(|| M::Error::custom("an attribute value without a type"))?;
        let value = match &*kind {
            "S" => Value::S(map.next_value()?),
            "N" => Value::N(map.next_value()?),
            "BOOL" => Value::Bool(map.next_value()?),
            "B" | "BS" | "L" | "M" | "NS" | "NULL" | "SS" => Value::Other(map.next_value()?),
            other => {
                return Err(M::Error::custom(format_args!(
                    "{other:?} is not a type of attribute values"
                )));
            }
        };
        match map.next_key::<IgnoredAny>()? {
            None => Ok(value),
            Some(_) => Err(M::Error::custom("an attribute value of two types")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn image(text: &str) -> Image<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn attributes_are_found_and_sorted_by_name_and_the_last_of_a_name_counts() {
        let image = image(r#"{"b": {"N": "1"}, "a": {"S": "x\ny"}, "c": {"BOOL": true}, "b": {"N": "2"}}"#);
        let names: Vec<_> = image.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(matches!(image.get("a"), Some(Value::S(text)) if &**text == "x\ny"));
        assert!(matches!(image.get("b"), Some(Value::N(digits)) if &**digits == "2"));
        assert!(matches!(image.get("c"), Some(Value::Bool(true))));
        assert_eq!(image.get("d"), None);
    }

    #[test]
    fn values_of_other_types_are_kept_as_they_were_delivered() {
        let list = |text: &'static str| image(text).attributes.remove(0).1;
        assert_eq!(
            list(r#"{"a": {"L": [{"N": "1"}]}}"#),
            list(r#"{"a": {"L": [{"N": "1"}]}}"#)
        );
        assert_ne!(
            list(r#"{"a": {"L": [{"N": "1"}]}}"#),
            list(r#"{"a": {"L": [{"N": "2"}]}}"#)
        );
    }

    #[test]
    fn a_value_of_no_one_and_two_types_is_refused() {
        for value in [
            r"{}",
            r#"{"X": 1}"#,
            r#"{"N": "1", "S": "x"}"#,
            r#"{"N": 1}"#,
            "1",
            "null",
        ] {
            let text = format!(r#"{{"a": {value}}}"#);
            assert!(serde_json::from_str::<Image<'_>>(&text).is_err(), "{value}");
        }
    }

    #[test]
    fn null_is_an_empty_image() {
        assert_eq!(image("null").iter().len(), 0);
    }
}
