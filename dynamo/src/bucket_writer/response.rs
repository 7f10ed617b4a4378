//! The response to a bucket write: the item, read in one pass, or the error.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use aws_smithy_types::base64;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::bucket::{Attributes, Scalar};

use crate::meter::FAILED_WRITE;
use crate::{CallError, Updated};

/// The attributes of a bucket that has two limits and a few slots.
const USUAL_ATTRIBUTES: usize = 24;

/// What a response says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: Result<Updated<Attributes>, CallError>,
    /// The consumed capacity, if it was asked for.
    pub(super) write_units: f64,
}

impl Answer {
    /// Of a response with this status, header `x-amzn-errortype` and body.
    pub(super) fn read(status: u16, error_type: Option<&str>, body: &[u8]) -> Self {
        if !(200..300).contains(&status) {
            return Self::of_error(status, error_type, body);
        }
        match serde_json::from_slice::<Success>(body) {
            Ok(success) => Self {
                outcome: Ok(Updated::Done(success.attributes.unwrap_or_default().attributes)),
                write_units: success.consumed_capacity.map_or(0.0, |consumed| consumed.units),
            },
            Err(error) => Self::unreadable(&error),
        }
    }

    /// Of a response whose body did not arrive, or makes no sense. The write may have been carried out.
    pub(super) fn unreadable(error: &dyn fmt::Display) -> Self {
        Self::failed(CallError::Unavailable(format!("unreadable answer: {error}")))
    }

    fn failed(cause: CallError) -> Self {
        Self {
            outcome: Err(cause),
            write_units: 0.0,
        }
    }

    /// As the SDK reads it: an error without readable JSON has no code, and its status decides.
    fn of_error(status: u16, error_type: Option<&str>, body: &[u8]) -> Self {
        let unknown = || Self::failed(CallError::from_code("", "", status));
        let Some(failure) = members::<Failure>(body) else {
            return unknown();
        };
        let Some(code) = error_type.or(failure.code()) else {
            return unknown();
        };
        match CallError::from_code(without_namespace(code), failure.message(), status) {
            CallError::ConditionFailed => match members::<Refusal>(body) {
                Some(refusal) => Self {
                    outcome: Ok(Updated::ConditionFailed(refusal.item.and_then(Bucket::existing))),
                    write_units: FAILED_WRITE,
                },
                None => unknown(),
            },
            cause => Self::failed(cause),
        }
    }
}

/// Members of an error. One without a body has none.
fn members<'a, T: Default + Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    if body.is_empty() {
        return Some(T::default());
    }
    serde_json::from_slice(body).ok()
}

/// `ThrottlingException` of `com.amazon.coral.availability#ThrottlingException:http://...`.
fn without_namespace(code: &str) -> &str {
    let code = code.split(':').next().unwrap_or(code);
    code.split_once('#').map_or(code, |(_, name)| name)
}

#[derive(serde::Deserialize)]
struct Success {
    #[serde(rename = "Attributes", default)]
    attributes: Option<Bucket>,
    #[serde(rename = "ConsumedCapacity", default)]
    consumed_capacity: Option<Consumed>,
}

#[derive(serde::Deserialize)]
struct Consumed {
    #[serde(rename = "CapacityUnits", default)]
    units: f64,
}

/// The members of an error. A member that is no text counts as missing.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Failure {
    code: Value,
    #[serde(rename = "__type")]
    kind: Value,
    message: Value,
    #[serde(rename = "Message")]
    capital_message: Value,
    #[serde(rename = "errorMessage")]
    error_message: Value,
}

impl Failure {
    fn code(&self) -> Option<&str> {
        self.code.as_str().or(self.kind.as_str())
    }

    fn message(&self) -> &str {
        let texts = [&self.message, &self.capital_message, &self.error_message];
        texts.into_iter().find_map(Value::as_str).unwrap_or_default()
    }
}

/// A write whose condition was false.
#[derive(Default, serde::Deserialize)]
struct Refusal {
    #[serde(rename = "Item", default)]
    item: Option<Bucket>,
}

/// A bucket's attributes, its key aside.
#[derive(Default)]
struct Bucket {
    attributes: Attributes,
    /// The key counts.
    is_empty: bool,
}

impl Bucket {
    fn existing(self) -> Option<Attributes> {
        (!self.is_empty).then_some(self.attributes)
    }
}

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
                let mut is_empty = true;
                while let Some(Text(name)) = map.next_key()? {
                    is_empty = false;
                    if name == "PK" || name == "SK" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        named.push((name, map.next_value::<Typed>()?.0));
                    }
                }
                Ok(Bucket {
                    attributes: named.into_iter().collect(),
                    is_empty,
                })
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
