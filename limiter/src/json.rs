//! Attribute values as JSON, for metadata of entities and details of audit events.

use serde_json::{Map, Number, Value};
use zae_limiter_schema::AttributeValue;

/// The JSON form of an attribute value: of an entity's metadata or an event's details. Sets become lists, and bytes
/// become lists of numbers.
///
/// ```
/// use zae_limiter::records::to_json;
/// use zae_limiter::{NewEntity, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let repository = RateLimiter::embedded().build_repository().await?;
/// let entity = repository.create_entity(NewEntity::new("user-1").metadata([("seats", 12)])).await?;
/// assert_eq!(to_json(&entity.metadata["seats"]), 12);
/// # Ok(()) }
/// ```
pub fn to_json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => Value::String(text.clone()),
        AttributeValue::N(digits) => number(digits),
        AttributeValue::Bool(flag) => Value::Bool(*flag),
        AttributeValue::Null(_) => Value::Null,
        AttributeValue::B(bytes) => Value::from(bytes.clone()),
        AttributeValue::Ss(set) => Value::from(set.clone()),
        AttributeValue::Ns(set) => set.iter().map(|digits| number(digits)).collect(),
        AttributeValue::Bs(set) => set.iter().map(|bytes| Value::from(bytes.clone())).collect(),
        AttributeValue::L(list) => list.iter().map(to_json).collect(),
        AttributeValue::M(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), to_json(value)))
                .collect::<Map<_, _>>(),
        ),
    }
}

/// A number that JSON cannot hold exactly stays text.
fn number(digits: &str) -> Value {
    let signed = digits.parse::<i64>().map(Number::from).ok();
    let unsigned = || digits.parse::<u64>().map(Number::from).ok();
    let exact = || {
        digits
            .parse::<f64>()
            .ok()
            .filter(|float| float.to_string() == digits)
            .and_then(Number::from_f64)
    };
    signed
        .or_else(unsigned)
        .or_else(exact)
        .map_or_else(|| Value::String(digits.to_owned()), Value::Number)
}

/// The attribute value of a JSON value.
pub(crate) fn from_json(value: Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(flag) => AttributeValue::Bool(flag),
        Value::Number(number) => AttributeValue::N(number.to_string()),
        Value::String(text) => AttributeValue::S(text),
        Value::Array(values) => AttributeValue::L(values.into_iter().map(from_json).collect()),
        Value::Object(map) => AttributeValue::M(
            map.into_iter()
                .map(|(key, value)| (key, from_json(value)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_can_say_survives_the_way_there_and_back() {
        let value = serde_json::json!({ "a": [1, -2.5, "text", null, true, u64::MAX], "b": { "c": [] } });
        assert_eq!(to_json(&from_json(value.clone())), value);
    }

    #[test]
    fn a_number_beyond_json_stays_exact() {
        let digits = "12345678901234567890123456789";
        assert_eq!(to_json(&AttributeValue::N(digits.to_owned())), digits);
    }
}
