//! A minimal JSON reader. A general parser took most of a function's CPU time.

use serde_json::value::RawValue;

use crate::image::Text;

/// A place in the text of a JSON value.
///
/// The text must be valid JSON: the cursor checks only what its caller expects. On invalid text it may return errors or garbage, but it
/// never panics and always terminates.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    place: usize,
}

/// The text of one JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Json<'a>(&'a str);

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(raw.get())
    }
}

impl<'a> Json<'a> {
    pub(crate) const NULL: Self = Self("null");

    /// The text.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self == Self::NULL
    }

    /// A cursor in front of it.
    pub(crate) fn cursor(self) -> Cursor<'a> {
        Cursor {
            text: self.0,
            place: 0,
        }
    }
}

impl<'a> Cursor<'a> {
    /// Reads an object. Calls `read` after the name of each member; `read` must consume the value.
    pub(crate) fn members(
        &mut self,
        mut read: impl FnMut(&mut Self, Text<'a>) -> Result<(), String>,
    ) -> Result<(), String> {
        self.take(b'{', "an object")?;
        if self.peek() == Some(b'}') {
            return self.take(b'}', "an object");
        }
        loop {
            let name = self.text()?;
            self.take(b':', "a member")?;
            read(self, name)?;
            if self.peek() != Some(b',') {
                return self.take(b'}', "the end of an object");
            }
            self.place += 1;
        }
    }

    /// Reads a string.
    pub(crate) fn text(&mut self) -> Result<Text<'a>, String> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        let start = self.place;
        let (end, has_escapes) = end_of_string(self.text.as_bytes(), start + 1);
        self.place = end;
        if has_escapes {
            let json = self.text.get(start..end).unwrap_or_default();
            let text: String = serde_json::from_str(json).map_err(|error| error.to_string())?;
            return Ok(Text::from(text));
        }
        let text = self.text.get(start + 1..end - 1);
        text.map(Text::from).ok_or_else(|| self.expected("a string"))
    }

    /// Skips a value of any type and returns its text.
    pub(crate) fn value(&mut self) -> Result<Json<'a>, String> {
        let first = self.peek();
        let start = self.place;
        match first {
            Some(b'"') => (self.place, _) = end_of_string(self.text.as_bytes(), start + 1),
            Some(b'{' | b'[') => self.place = end_of_nested(self.text.as_bytes(), start),
            _ => self.pass_word(),
        }
        let text = self.text.get(start..self.place).filter(|text| !text.is_empty());
        text.map(Json).ok_or_else(|| self.expected("a value"))
    }

    /// The next character that is not blank.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let next = self.text.as_bytes().get(self.place).copied();
            match next {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.place += 1,
                _ => return next,
            }
        }
    }

    fn take(&mut self, byte: u8, what: &str) -> Result<(), String> {
        if self.peek() != Some(byte) {
            return Err(self.expected(what));
        }
        self.place += 1;
        Ok(())
    }

    fn expected(&self, what: &str) -> String {
        format!("{what} was expected at byte {}", self.place)
    }

    /// A number, a flag or null.
    fn pass_word(&mut self) {
        while let Some(byte) = self.text.as_bytes().get(self.place) {
            if matches!(byte, b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                return;
            }
            self.place += 1;
        }
    }
}

/// The position after the closing quote of the string whose first character is at `start`, and whether it has escapes. Past the end of
/// the text if the string is not terminated.
#[inline]
fn end_of_string(text: &[u8], start: usize) -> (usize, bool) {
    let (mut place, mut has_escapes) = (start, false);
    loop {
        place = quote_or_escape(text, place);
        match text.get(place) {
            Some(b'"') => return (place + 1, has_escapes),
            Some(_) => (place, has_escapes) = (place + 2, true),
            None => return (text.len() + 1, has_escapes),
        }
    }
}

/// The position of the next quote or backslash. Checks eight bytes at a time; most names and numbers are about that long.
#[inline]
fn quote_or_escape(text: &[u8], mut place: usize) -> usize {
    const EACH: u64 = u64::MAX / 0xff;
    // The lowest high bit that is set belongs to the first byte that is zero.
    let zeros = |word: u64| word.wrapping_sub(EACH) & !word & (EACH << 7);
    while let Some(word) = text.get(place..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ (EACH * u64::from(b'"'))) | zeros(word ^ (EACH * u64::from(b'\\')));
        if found != 0 {
            return place + (found.trailing_zeros() / 8) as usize;
        }
        place += 8;
    }
    let rest = text.get(place..).unwrap_or_default();
    let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
    place + found.unwrap_or(rest.len())
}

/// The position after the bracket that closes the one at `start`. Past the end of the text if there is none.
fn end_of_nested(text: &[u8], start: usize) -> usize {
    let (mut place, mut depth) = (start, 0_usize);
    while let Some(byte) = text.get(place) {
        place += 1;
        match byte {
            b'"' => (place, _) = end_of_string(text, place),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return place,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    text.len() + 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    /// The value, read with cursors alone.
    fn read(json: Json<'_>) -> Result<Value, String> {
        let mut cursor = json.cursor();
        match json.as_str().as_bytes().first() {
            Some(b'{') => {
                let mut members = Map::new();
                cursor.members(|cursor, name| {
                    members.insert(name.to_string(), read(cursor.value()?)?);
                    Ok(())
                })?;
                Ok(Value::Object(members))
            }
            Some(b'"') => Ok(Value::String(cursor.text()?.to_string())),
            _ => serde_json::from_str(json.as_str()).map_err(|error| error.to_string()),
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = || prop_oneof!["[a-z]{0,8}", any::<String>(), r#"[\\"{}\[\]:, ]{0,4}"#];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(|number: f64| Value::from(number)),
            text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, move |inner| {
            let members = prop::collection::vec((text(), inner.clone()), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Value::from),
                members.prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_is_the_one_that_serde_reads(value in value(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let mut cursor = Json(&text).cursor();
            prop_assert_eq!(cursor.value().unwrap(), Json(&text));
            prop_assert_eq!(cursor.place, text.len());
            prop_assert_eq!(read(Json(&text)).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        }

        #[test]
        fn any_text_has_an_end(text in r#"[a\\"{}\[\]:, ]{0,12}|.{0,12}"#) {
            let mut cursor = Json(&text).cursor();
            let _ = cursor.value();
            let _ = Json(&text).cursor().text();
            let _ = Json(&text).cursor().members(|cursor, _| cursor.value().map(drop));
        }
    }

    #[test]
    fn what_is_not_there_is_named_with_its_place() {
        let members = |text: &'static str| {
            let mut texts = Vec::new();
            let read = Json(text).cursor().members(|cursor, _| {
                texts.push(cursor.text()?.to_string());
                Ok(())
            });
            read.map(|()| texts.join(","))
        };
        assert_eq!(members(r#" { "a" : "b" , "c" : "d\n" } "#).unwrap(), "b,d\n");
        assert_eq!(members("{}").unwrap(), "");
        assert_eq!(members("[]").unwrap_err(), "an object was expected at byte 0");
        assert_eq!(
            members(r#"{"a": 1}"#).unwrap_err(),
            "a string was expected at byte 6"
        );
        assert_eq!(
            members(r#"{"a": "b" "#).unwrap_err(),
            "the end of an object was expected at byte 10"
        );
    }
}
