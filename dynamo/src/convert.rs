//! Between the SDK's attribute values and the schema's. Total in both directions: a type that a newer DynamoDB might
//! send is an error here, not a panic.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use zae_limiter_schema::keys::{Key, attribute};
use zae_limiter_schema::{AttributeValue, Item, Malformed};

use crate::Result;

/// An item in the SDK's form.
pub type SdkItem = HashMap<String, SdkValue>;

/// An item as the schema reads it.
pub fn from_sdk_item(item: SdkItem) -> Result<Item> {
    Ok(Item::from(from_sdk_map(item)?))
}

fn from_sdk_map(map: SdkItem) -> Result<HashMap<String, AttributeValue>> {
    map.into_iter()
        .map(|(name, value)| from_sdk_value(&name, value).map(|value| (name, value)))
        .collect()
}

/// A value as the schema reads it. Errors name the attribute.
pub(crate) fn from_sdk_value(name: &str, value: SdkValue) -> Result<AttributeValue> {
    Ok(match value {
        SdkValue::S(text) => AttributeValue::S(text),
        SdkValue::N(digits) => AttributeValue::N(digits),
        SdkValue::Bool(flag) => AttributeValue::Bool(flag),
        SdkValue::Null(null) => AttributeValue::Null(null),
        SdkValue::B(bytes) => AttributeValue::B(bytes.into_inner()),
        SdkValue::Ss(set) => AttributeValue::Ss(set),
        SdkValue::Ns(set) => AttributeValue::Ns(set),
        SdkValue::Bs(set) => AttributeValue::Bs(set.into_iter().map(Blob::into_inner).collect()),
        SdkValue::L(list) => AttributeValue::L(
            list.into_iter()
                .map(|value| from_sdk_value(name, value))
                .collect::<Result<_>>()?,
        ),
        SdkValue::M(map) => AttributeValue::M(from_sdk_map(map)?),
        _ => {
            return Err(Malformed {
                record: "item",
                attribute: name.to_owned(),
                reason: "has a type that this version does not know".to_owned(),
            }
            .into());
        }
    })
}

/// An item as the SDK sends it.
pub fn to_sdk_item(item: Item) -> SdkItem {
    item.into_inner()
        .into_iter()
        .map(|(name, value)| (name, to_sdk_value(value)))
        .collect()
}

/// A value as the SDK sends it.
pub fn to_sdk_value(value: AttributeValue) -> SdkValue {
    match value {
        AttributeValue::S(text) => SdkValue::S(text),
        AttributeValue::N(digits) => SdkValue::N(digits),
        AttributeValue::Bool(flag) => SdkValue::Bool(flag),
        AttributeValue::Null(null) => SdkValue::Null(null),
        AttributeValue::B(bytes) => SdkValue::B(Blob::new(bytes)),
        AttributeValue::Ss(set) => SdkValue::Ss(set),
        AttributeValue::Ns(set) => SdkValue::Ns(set),
        AttributeValue::Bs(set) => SdkValue::Bs(set.into_iter().map(Blob::new).collect()),
        AttributeValue::L(list) => SdkValue::L(list.into_iter().map(to_sdk_value).collect()),
        AttributeValue::M(map) => SdkValue::M(
            map.into_iter()
                .map(|(name, value)| (name, to_sdk_value(value)))
                .collect(),
        ),
    }
}

/// A key as the SDK sends it.
pub fn to_sdk_key(key: &Key) -> SdkItem {
    into_sdk_key(key.clone())
}

/// The same for an owned key.
pub(crate) fn into_sdk_key(key: Key) -> SdkItem {
    HashMap::from([
        (attribute::PK.to_owned(), SdkValue::S(key.pk)),
        (attribute::SK.to_owned(), SdkValue::S(key.sk)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_the_way_there_and_back() {
        let item = Item::from(HashMap::from([
            ("s".to_owned(), AttributeValue::S("text".to_owned())),
            ("n".to_owned(), AttributeValue::N("-12.5".to_owned())),
            ("bool".to_owned(), AttributeValue::Bool(true)),
            ("null".to_owned(), AttributeValue::Null(true)),
            ("b".to_owned(), AttributeValue::B(vec![0, 255])),
            ("ss".to_owned(), AttributeValue::Ss(vec!["a".to_owned()])),
            ("ns".to_owned(), AttributeValue::Ns(vec!["1".to_owned()])),
            ("bs".to_owned(), AttributeValue::Bs(vec![vec![1]])),
            (
                "l".to_owned(),
                AttributeValue::L(vec![AttributeValue::M(HashMap::new())]),
            ),
        ]));
        assert_eq!(from_sdk_item(to_sdk_item(item.clone())).ok(), Some(item));
    }
}
