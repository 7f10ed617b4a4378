//! Metadata of entities, checked before anything is written.

use serde_json::Value;
use zae_limiter_schema::{AttributeValue, Metadata};

use crate::json::from_json;
use crate::{Error, Result};

/// Metadata is stored in the entity and again in the audit event of its change, and an item holds 400 KB.
const MAX_BYTES: usize = 100 * 1024;
/// DynamoDB allows 32 levels, and an event's details are two levels around the metadata.
const MAX_LEVELS: usize = 30;
/// Numbers that DynamoDB can hold, by magnitude.
const LEAST: f64 = 1e-130;
const MOST: f64 = 1e126;

pub(super) fn to_metadata(entries: Vec<(String, Value)>) -> Result<Metadata> {
    for (key, value) in &entries {
        check_key(key)?;
        check(key, value, 1)?;
    }
    let metadata = entries
        .into_iter()
        .map(|(key, value)| (key, from_json(value)))
        .collect();
    check_size(&metadata)?;
    Ok(metadata)
}

/// Refuses more than an item and its audit event have room for.
pub(super) fn check_size(metadata: &Metadata) -> Result<()> {
    let bytes: usize = metadata.iter().map(|(key, value)| key.len() + size(value)).sum();
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Error::invalid(
        "metadata",
        format!("{bytes} bytes"),
        format!("it may have at most {MAX_BYTES} bytes in all"),
    ))
}

/// How much room a value takes. Each costs a little more than its content.
fn size(value: &AttributeValue) -> usize {
    const OVERHEAD: usize = 3;
    let content = match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(bytes) => bytes.len(),
        AttributeValue::Ss(texts) | AttributeValue::Ns(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::Bs(values) => values.iter().map(Vec::len).sum(),
        AttributeValue::L(values) => values.iter().map(size).sum(),
        AttributeValue::M(map) => map.iter().map(|(name, value)| name.len() + size(value)).sum(),
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 0,
    };
    OVERHEAD + content
}

fn check_key(key: &str) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid("metadata key", key, "it must not be empty"));
    }
    Ok(())
}

/// Refuses what the table cannot hold.
fn check(key: &str, value: &Value, level: usize) -> Result<()> {
    if level > MAX_LEVELS {
        return Err(Error::invalid(
            "metadata",
            key,
            format!("nesting exceeds {MAX_LEVELS} levels"),
        ));
    }
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => {}
        Value::Number(number) => {
            let magnitude = number.as_f64().unwrap_or(f64::INFINITY).abs();
            if magnitude != 0.0 && !(LEAST..MOST).contains(&magnitude) {
                return Err(Error::invalid(
                    "metadata",
                    number.to_string(),
                    format!("numbers must be 0, or from {LEAST:e} to below {MOST:e} in magnitude"),
                ));
            }
        }
        Value::Array(values) => {
            for value in values {
                check(key, value, level + 1)?;
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                check_key(name)?;
                check(key, value, level + 1)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
