//! Line numbers in YAML and JSON files, for error messages.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The line of a field, by its path such as `resources.gpt-4.limits[2]`; `None` if it is not in the text.
///
/// Parses the text up to the field and fails there on purpose: an error of the parser has a position, and a value has none.
pub(crate) fn line_of(text: &str, path: &str) -> Option<usize> {
    let found = Cell::new(false);
    let search = Search { path, found: &found };
    let error = search
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .err()?;
    found.get().then(|| error.location())?.map(|place| place.line())
}

/// Looks for a path below a value. Fails at the field, and nowhere else in a valid file.
#[derive(Clone, Copy)]
struct Search<'a> {
    path: &'a str,
    found: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.path.is_empty() {
            self.found.set(true);
            return deserializer.deserialize_any(Nothing);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(below) = map.next_key_seed(Key(self))? {
            match below {
                Some(path) => map.next_value_seed(Search { path, ..self })?,
                None => map.next_value().map(|_: IgnoredAny| ())?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let wanted = self.path.strip_prefix('[').and_then(|path| path.split_once(']'));
        let Some((Ok(wanted), path)) = wanted.map(|(index, path)| (index.parse::<usize>(), path)) else {
            return skip(list);
        };
        for _ in 0..wanted {
            if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        let path = path.strip_prefix('.').unwrap_or(path);
        list.next_element_seed(Search { path, ..self })?;
        skip(list)
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

fn skip<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// A key of a map: the rest of the path if the key is its beginning. A key may contain dots.
struct Key<'a>(Search<'a>);

impl<'de, 'a> DeserializeSeed<'de> for Key<'a> {
    type Value = Option<&'a str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Key<'a> {
    type Value = Option<&'a str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let Some(rest) = self.0.path.strip_prefix(key) else {
            return Ok(None);
        };
        if rest.is_empty() {
            self.0.found.set(true);
            return Err(E::custom("the field"));
        }
        Ok(match rest.strip_prefix('.') {
            Some(below) => Some(below),
            None => rest.starts_with('[').then_some(rest),
        })
    }
}

/// Accepts no value.
struct Nothing;

impl Visitor<'_> for Nothing {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_below_those_above_it() {
        let text =
            "system:\n  limits: [rpm:1]\nresources:\n  gpt-4:\n    limits:\n      - rpm:1\n      - tpm:x\n";
        assert_eq!(line_of(text, "system.limits"), Some(2));
        assert_eq!(line_of(text, "resources.gpt-4.limits"), Some(5));
        assert_eq!(line_of(text, "resources.gpt-4.limits[1]"), Some(7));
        assert_eq!(line_of(text, "system.limits[0]"), Some(2));
        assert_eq!(line_of(text, "system.limits[1]"), None);
        assert_eq!(line_of(text, "entities"), None);
    }

    #[test]
    fn the_same_name_elsewhere_is_not_the_field() {
        let text = "entities:\n  user-1:\n    resources:\n      gpt-4: {limits: {rpm: 1}}\nresources:\n  gpt-4:\n    # limits: {}\n    limits: {rpm: x}\n";
        assert_eq!(line_of(text, "resources.gpt-4.limits.rpm"), Some(8));
        assert_eq!(
            line_of(text, "entities.user-1.resources.gpt-4.limits.rpm"),
            Some(4)
        );
    }

    #[test]
    fn names_may_contain_dots() {
        let text = "resources:\n  gpt-3: 1\n  gpt-3.5-turbo:\n    limits:\n      - {capacity: x}\n  9: {}\n";
        assert_eq!(line_of(text, "resources.gpt-3.5-turbo"), Some(3));
        assert_eq!(
            line_of(text, "resources.gpt-3.5-turbo.limits[0].capacity"),
            Some(5)
        );
        assert_eq!(line_of(text, "resources.9"), Some(6));
    }

    #[test]
    fn a_key_is_a_whole_word_in_yaml_and_json() {
        assert_eq!(
            line_of("lambda_memory_size: 1\nlambda_memory: 2\n", "lambda_memory"),
            Some(2)
        );
        assert_eq!(line_of("{\n  \"a\": 1,\n  \"b\" : 2\n}", "b"), Some(3));
        assert_eq!(line_of("{a: 1, b: 2}", "b"), Some(1));
    }
}
