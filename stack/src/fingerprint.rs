//! The fingerprint of a desired state.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Length in hexadecimal digits.
const DIGITS: usize = 32;

/// The prefix of our change sets' names.
pub(crate) const CHANGE_SET_PREFIX: &str = "zl-";

/// The hash of a template and the stack's tags, independent of their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint(String);

impl Fingerprint {
    pub(crate) fn of(template: &Value, tags: &BTreeMap<String, String>) -> Self {
        let mut text = String::new();
        canonical(template, &mut text);
        let tags = tags
            .iter()
            .map(|(key, value)| (key.clone(), value.clone().into()))
            .collect();
        canonical(&Value::Object(tags), &mut text);
        let mut digits = hex(&Sha256::digest(text));
        digits.truncate(DIGITS);
        Self(digits)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A token for one request. CloudFormation accepts a token only once per stack, so it has a random part; the
    /// fingerprint can still be read from it.
    pub(crate) fn token(&self) -> String {
        format!("zl-{}-{}", self.0, random())
    }

    /// Whether a token was made for this desired state.
    pub(crate) fn made(&self, token: &str) -> bool {
        token
            .strip_prefix("zl-")
            .and_then(|rest| rest.strip_prefix(self.as_str()))
            .is_some_and(|rest| rest.starts_with('-'))
    }

    pub(crate) fn change_set_name(&self) -> String {
        format!("{CHANGE_SET_PREFIX}{}-{}", &self.0[..8], random())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name that no change set has. It cannot be guessed.
pub(crate) fn absent_change_set() -> String {
    format!("{CHANGE_SET_PREFIX}none-{}{}", random(), random())
}

fn random() -> String {
    format!("{:010x}", fastrand::u64(..) >> 24)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// JSON with sorted keys.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<_, _> = fields.iter().collect();
            out.push('{');
            for (key, value) in sorted {
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        leaf => out.push_str(&leaf.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn fingerprint(json: &str) -> Fingerprint {
        Fingerprint::of(&serde_json::from_str(json).unwrap(), &BTreeMap::new())
    }

    #[test]
    fn order_does_not_change_it_and_values_do() {
        assert_eq!(
            fingerprint(r#"{"a":1,"b":{"c":[1,2],"d":""}}"#),
            fingerprint(r#"{"b":{"d":"","c":[1,2]},"a":1}"#)
        );
        assert_ne!(fingerprint(r#"{"a":[1,2]}"#), fingerprint(r#"{"a":[2,1]}"#));
        assert_ne!(fingerprint(r#"{"a":1}"#), fingerprint(r#"{"a":"1"}"#));
        let tags = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
        assert_ne!(
            Fingerprint::of(&Value::Null, &tags),
            Fingerprint::of(&Value::Null, &BTreeMap::new())
        );
    }

    #[test]
    fn h8_a_token_tells_what_it_was_for_and_is_never_the_same() {
        let (one, other) = (fingerprint("1"), fingerprint("2"));
        let token = one.token();
        assert!(one.made(&token) && !other.made(&token) && !one.made("zl-") && !one.made("another-process"));
        assert_ne!(token, one.token());
        // CloudFormation's rules for tokens and names of change sets.
        for name in [token, one.change_set_name()] {
            assert!(
                name.len() <= 128 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'),
                "{name}"
            );
        }
    }
}
