//! The item in the response to a bucket write, read in one pass and without the maps of the SDK's output.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use aws_smithy_types::base64;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::bucket::{Attributes, Scalar};

/// The attributes of a bucket that has two limits and a few slots.
const USUAL_ATTRIBUTES: usize = 24;

/// A bucket's attributes, its key aside, from the body of a response.
pub(super) fn attributes(body: &[u8]) -> serde_json::Result<Attributes> {
    let response: Response = serde_json::from_slice(body)?;
    Ok(response.attributes.unwrap_or_default().0)
}

/// The consumed capacity that the body of a response reports.
pub(super) fn consumed_units(body: &[u8]) -> serde_json::Result<Option<f64>> {
    let response: Value = serde_json::from_slice(body)?;
    Ok(response["ConsumedCapacity"]["CapacityUnits"].as_f64())
}

#[derive(serde::Deserialize)]
struct Response {
    #[serde(rename = "Attributes", default)]
    attributes: Option<Bucket>,
}

#[derive(Default)]
struct Bucket(Attributes);

impl<'de> Deserialize<'de> for Bucket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;

        impl<'de> Visitor<'de> for Named {
            type Value = Bucket;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an item")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Bucket, M::Error> {
                let mut named = Vec::with_capacity(USUAL_ATTRIBUTES);
                while let Some(Text(name)) = map.next_key()? {
                    if name == "PK" || name == "SK" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        named.push((name, map.next_value::<Typed>()?.0));
                    }
                }
                Ok(Bucket(named.into_iter().collect()))
            }
        }

        deserializer.deserialize_map(Named)
    }
}

/// A value with its type: `{"N": "5"}`.
struct Typed(Scalar);

impl<'de> Deserialize<'de> for Typed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneMember;

        impl<'de> Visitor<'de> for OneMember {
            type Value = Typed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its type")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Typed, M::Error> {
                let Some(Text(name)) = map.next_key()? else {
                    return Err(M::Error::custom("a value has no type"));
                };
                let value = match name.as_ref() {
                    "N" => Scalar::from_digits(&map.next_value::<Text<'_>>()?.0),
                    "S" => Scalar::Text(map.next_value::<Text<'_>>()?.0.as_ref().into()),
                    "BOOL" => Scalar::Flag(map.next_value()?),
                    kind => {
                        let value = typed_value(kind, map.next_value()?);
                        Scalar::Other(
                            value.ok_or_else(|| M::Error::custom(format!("{kind} has another value")))?,
                        )
                    }
                };
                if map.next_key::<IgnoredAny>()?.is_some() {
                    return Err(M::Error::custom("a value has two types"));
                }
                Ok(Typed(value))
            }
        }

        deserializer.deserialize_map(OneMember)
    }
}

/// Text that is copied only where it has escapes.
struct Text<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;

        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(Borrowing)
    }
}

/// A value of any type. Buckets have none of these but what other writers leave on them.
fn typed_value(kind: &str, value: Value) -> Option<AttributeValue> {
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    let bytes = |value: Value| base64::decode(text(value)?).ok();
    Some(match (kind, value) {
        ("S", value) => AttributeValue::S(text(value)?),
        ("N", value) => AttributeValue::N(text(value)?),
        ("B", value) => AttributeValue::B(bytes(value)?),
        ("BOOL", Value::Bool(flag)) => AttributeValue::Bool(flag),
        ("NULL", Value::Bool(null)) => AttributeValue::Null(null),
        ("SS", Value::Array(set)) => AttributeValue::Ss(set.into_iter().map(text).collect::<Option<_>>()?),
        ("NS", Value::Array(set)) => AttributeValue::Ns(set.into_iter().map(text).collect::<Option<_>>()?),
        ("BS", Value::Array(set)) => AttributeValue::Bs(set.into_iter().map(bytes).collect::<Option<_>>()?),
        ("L", Value::Array(list)) => {
            AttributeValue::L(list.into_iter().map(value_of).collect::<Option<_>>()?)
        }
        ("M", Value::Object(map)) => {
            let members = map
                .into_iter()
                .map(|(name, value)| Some((name, value_of(value)?)));
            AttributeValue::M(members.collect::<Option<HashMap<_, _>>>()?)
        }
        _ => return None,
    })
}

fn value_of(value: Value) -> Option<AttributeValue> {
    let Value::Object(map) = value else { return None };
    let (kind, value) = map.into_iter().next()?;
    typed_value(&kind, value)
}
