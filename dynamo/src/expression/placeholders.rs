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
        let known = self.names.iter().position(|name| name == attribute);
        let index = known.unwrap_or_else(|| {
            self.names.push(attribute.to_owned());
            self.names.len() - 1
        });
        format!("#{index}")
    }

    /// The placeholder of a value.
    pub fn value(&mut self, value: AttributeValue) -> String {
        self.values.push(to_sdk_value(value));
        format!(":{}", self.values.len() - 1)
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
            let all = all.into_iter().enumerate();
            let map: HashMap<_, _> = all.map(|(index, one)| (format!("{sign}{index}"), one)).collect();
            (!map.is_empty()).then_some(map)
        }
        (indexed("#", self.names), indexed(":", self.values))
    }
}
