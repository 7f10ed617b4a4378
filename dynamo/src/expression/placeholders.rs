//! Names and values of an expression, by index: an attribute's name never becomes part of an expression's text.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use zae_limiter_schema::AttributeValue;

use crate::to_sdk_value;

/// Attributes by placeholder; none if empty.
pub type Names = Option<HashMap<String, String>>;
/// Values by placeholder; none if empty.
pub type Values = Option<HashMap<String, SdkValue>>;

/// Collects what an expression refers to.
#[derive(Debug, Default)]
pub struct Placeholders {
    names: Vec<String>,
    values: Vec<SdkValue>,
}

impl Placeholders {
    /// The placeholder of an attribute; the same one each time.
    pub fn name(&mut self, attribute: &str) -> String {
        let mut text = String::with_capacity(4);
        self.write_name(&mut text, attribute);
        text
    }

    /// The placeholder of a value.
    pub fn value(&mut self, value: AttributeValue) -> String {
        let mut text = String::with_capacity(4);
        self.write_value(&mut text, value);
        text
    }

    /// Appends the placeholder of an attribute.
    pub(super) fn write_name(&mut self, text: &mut String, attribute: &str) {
        let known = self.names.iter().position(|name| name == attribute);
        let index = known.unwrap_or_else(|| {
            self.names.push(attribute.to_owned());
            self.names.len() - 1
        });
        write_index(text, "#a", index);
    }

    /// Appends the placeholder of a value.
    pub(super) fn write_value(&mut self, text: &mut String, value: AttributeValue) {
        self.values.push(to_sdk_value(value));
        write_index(text, ":v", self.values.len() - 1);
    }

    /// An expression with its own names and values.
    pub fn expression(write: impl FnOnce(&mut Self) -> String) -> (String, Names, Values) {
        let mut placeholders = Self::default();
        let text = write(&mut placeholders);
        let (names, values) = placeholders.into_maps();
        (text, names, values)
    }

    /// Both maps, in the form of the SDK.
    pub fn into_maps(self) -> (Names, Values) {
        fn indexed<T>(sign: &str, all: Vec<T>) -> Option<HashMap<String, T>> {
            let map: HashMap<_, _> = all
                .into_iter()
                .enumerate()
                .map(|(index, one)| {
                    let mut text = String::with_capacity(4);
                    write_index(&mut text, sign, index);
                    (text, one)
                })
                .collect();
            (!map.is_empty()).then_some(map)
        }
        (indexed("#a", self.names), indexed(":v", self.values))
    }
}

/// Without the formatting machinery: every acquire writes dozens of these.
fn write_index(text: &mut String, sign: &str, index: usize) {
    text.push_str(sign);
    let digit = |number: usize| char::from_digit(u32::try_from(number % 10).unwrap_or_default(), 10);
    if index >= 100 {
        text.push_str(&index.to_string());
        return;
    }
    if index >= 10 {
        text.extend(digit(index / 10));
    }
    text.extend(digit(index));
}
