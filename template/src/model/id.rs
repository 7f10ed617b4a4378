//! Logical ids.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::Error;

/// The name of a resource, parameter or output inside a template: letters and digits, at most 255 of them.
///
/// CloudFormation identifies a resource by it; a new id is a new resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalId(Cow<'static, str>);

impl LogicalId {
    /// The longest id that CloudFormation accepts.
    pub const MAX_LENGTH: usize = 255;

    /// An id that is a constant in the source.
    pub(crate) const fn fixed(id: &'static str) -> Self {
        Self(Cow::Borrowed(id))
    }

    /// Parses an id of letters and digits.
    pub fn parse(id: impl Into<String>) -> Result<Self, Error> {
        let id = id.into();
        let fits =
            !id.is_empty() && id.len() <= Self::MAX_LENGTH && id.bytes().all(|b| b.is_ascii_alphanumeric());
        if fits {
            Ok(Self(Cow::Owned(id)))
        } else {
            Err(Error::LogicalId { id })
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LogicalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for LogicalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_letters_and_digits_only() {
        assert!(LogicalId::parse("Topic2").is_ok());
        for bad in ["", "my-topic", "a b", "ä"] {
            assert!(LogicalId::parse(bad).is_err(), "{bad:?}");
        }
        assert!(LogicalId::parse("a".repeat(256)).is_err());
    }
}
