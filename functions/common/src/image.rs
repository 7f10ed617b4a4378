//! The attributes of an item, borrowed from the text of a stream record.

use std::borrow::Cow;
use std::ops::Deref;

use crate::cursor::{Cursor, Json};

/// The attributes of an item, by name.
#[derive(Debug)]
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

    /// Reads an image, or no attributes from null.
    pub fn read(json: Json<'a>) -> Result<Self, String> {
        attributes(json).map(Self::sorted)
    }

    /// Reads an image that most likely has the names of another one, in the same order: they are sorted once.
    pub fn read_like(other: &Self, json: Json<'a>) -> Result<Self, String> {
        let attributes = attributes(json)?;
        let names = attributes.iter().map(|(name, _)| name);
        if names.eq(other.attributes.iter().map(|(name, _)| name)) {
            let by_name = other.by_name.clone();
            return Ok(Self { attributes, by_name });
        }
        Ok(Self::sorted(attributes))
    }

    fn sorted(attributes: Vec<(Text<'a>, Value<'a>)>) -> Self {
        let name = |index: usize| &*attributes[index].0;
        let mut by_name: Vec<_> = (0..attributes.len()).collect();
        // JSON allows a name twice: the last one counts.
        by_name.sort_unstable_by(|a, b| name(*a).cmp(name(*b)).then(b.cmp(a)));
        by_name.dedup_by(|next, kept| name(*next) == name(*kept));
        Self { attributes, by_name }
    }
}

/// The value of an attribute.
#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    /// A string.
    S(Text<'a>),
    /// The digits of a number.
    N(Text<'a>),
    /// A flag.
    Bool(bool),
    /// A value of any other type, as it was delivered.
    Other(Json<'a>),
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

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

/// More attributes than this are rare in a bucket.
const USUAL_ATTRIBUTES: usize = 40;

/// The attributes in the order of delivery.
fn attributes(json: Json<'_>) -> Result<Vec<(Text<'_>, Value<'_>)>, String> {
    if json.is_null() {
        return Ok(Vec::new());
    }
    let mut attributes = Vec::with_capacity(USUAL_ATTRIBUTES);
    json.cursor().members(|cursor, name| {
        attributes.push((name, value(cursor)?));
        Ok(())
    })?;
    Ok(attributes)
}

/// Reads an attribute value, such as `{"N": "1"}`.
fn value<'a>(cursor: &mut Cursor<'a>) -> Result<Value<'a>, String> {
    let mut value = None;
    cursor.members(|cursor, kind| {
        if value.is_some() {
            return Err("an attribute value of two types".to_owned());
        }
        value = Some(match &*kind {
            "S" => Value::S(cursor.text()?),
            "N" => Value::N(cursor.text()?),
            "BOOL" => match cursor.value()?.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                other => return Err(format!("{other} is not a flag")),
            },
            "B" | "BS" | "L" | "M" | "NS" | "NULL" | "SS" => Value::Other(cursor.value()?),
            other => return Err(format!("{other:?} is not a type of attribute values")),
        });
        Ok(())
    })?;
    value.ok_or_else(|| "an attribute value without a type".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::value::RawValue;

    use super::*;

    fn read(text: &str) -> Result<Image<'_>, String> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        Image::read(raw.into())
    }

    fn image(text: &str) -> Image<'_> {
        read(text).unwrap()
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
            r#"{"BOOL": "true"}"#,
            "1",
            "null",
        ] {
            let text = format!(r#"{{"a": {value}}}"#);
            assert!(read(&text).is_err(), "{value}");
        }
    }

    #[test]
    fn null_is_an_empty_image() {
        assert_eq!(image("null").iter().len(), 0);
    }

    #[test]
    fn images_are_sorted_alike_whether_or_not_they_have_the_same_names() {
        let names = |image: &Image<'_>| image.iter().map(|(name, _)| name.to_owned()).collect::<String>();
        let other = image(r#"{"b": {"N": "1"}, "a": {"N": "2"}}"#);
        assert_eq!(names(&other), "ab");
        for (text, expected) in [
            (r#"{"b": {"N": "5"}, "a": {"N": "6"}}"#, "ab"),
            (r#"{"a": {"N": "5"}, "b": {"N": "6"}}"#, "ab"),
            (r#"{"b": {"N": "5"}}"#, "b"),
            (r#"{"b": {"N": "5"}, "a": {"N": "6"}, "0": {"N": "6"}}"#, "0ab"),
            ("null", ""),
        ] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            let like = Image::read_like(&other, raw.into()).unwrap();
            assert_eq!(names(&like), expected);
            assert!(like.iter().eq(image(text).iter()));
        }
    }
}
