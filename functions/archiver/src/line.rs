//! An audit event as a line of JSON.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_dynamo::{AttributeValue, Item};
use serde_json::value::RawValue;
use zae_limiter_schema::keys::attribute;

/// The first attributes of a line, in this order. Others follow by name.
const FIRST: [&str; 7] = [
    attribute::EVENT_ID,
    attribute::TIMESTAMP,
    attribute::ACTION,
    attribute::ENTITY_ID,
    attribute::PRINCIPAL,
    attribute::RESOURCE,
    attribute::DETAILS,
];
/// Attributes that belong to the table and not to the event.
const LEFT_OUT: [&str; 3] = [attribute::PK, attribute::SK, attribute::TTL];

/// One line of JSON with every attribute of the event except its key and expiry. Numbers keep all their digits. The same
/// event always gives the same bytes.
pub fn line(event: &Item) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string(&Event(event))? + "\n")
}

struct Event<'a>(&'a Item);

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rest: BTreeMap<_, _> = self
            .0
            .iter()
            .filter(|(name, _)| !FIRST.contains(&name.as_str()))
            .collect();
        let mut map = serializer.serialize_map(None)?;
        for name in FIRST {
            if let Some(value) = self.0.get(name) {
                map.serialize_entry(name, &Untagged(value))?;
            }
        }
        for (name, value) in rest {
            if !LEFT_OUT.contains(&name.as_str()) {
                map.serialize_entry(name, &Untagged(value))?;
            }
        }
        map.end()
    }
}

/// A value without DynamoDB's type tags.
struct Untagged<'a>(&'a AttributeValue);

impl Serialize for Untagged<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            AttributeValue::S(text) => serializer.serialize_str(text),
            AttributeValue::N(digits) => number(digits, serializer),
            AttributeValue::Bool(flag) => serializer.serialize_bool(*flag),
            AttributeValue::Null(_) => serializer.serialize_unit(),
            AttributeValue::B(bytes) => serializer.serialize_str(&BASE64_STANDARD.encode(bytes)),
            AttributeValue::L(list) => serializer.collect_seq(list.iter().map(Untagged)),
            AttributeValue::M(map) => {
                let sorted: BTreeMap<_, _> =
                    map.iter().map(|(name, value)| (name, Untagged(value))).collect();
                sorted.serialize(serializer)
            }
            AttributeValue::Ss(set) => sorted(set.iter(), serializer),
            AttributeValue::Bs(set) => {
                sorted(set.iter().map(|bytes| BASE64_STANDARD.encode(bytes)), serializer)
            }
            AttributeValue::Ns(set) => {
                let mut digits: Vec<_> = set.iter().collect();
                digits.sort();
                let mut numbers = serializer.serialize_seq(Some(digits.len()))?;
                for number in digits {
                    numbers.serialize_element(&Untagged(&AttributeValue::N(number.clone())))?;
                }
                numbers.end()
            }
        }
    }
}

/// A number as DynamoDB wrote it: valid JSON, with up to 38 digits.
fn number<S: Serializer>(digits: &str, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(digits.to_owned())
        .map_err(S::Error::custom)?
        .serialize(serializer)
}

/// Sets have no order: sorted, they are always the same bytes.
fn sorted<S: Serializer, T: Ord + Serialize>(
    items: impl Iterator<Item = T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut items: Vec<_> = items.collect();
    items.sort();
    serializer.collect_seq(items)
}
