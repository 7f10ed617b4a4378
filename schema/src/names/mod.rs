//! Validated names: a value need not be checked again.
//!
//! Character sets and lengths are those of the Python system that shares the table, checked over the whole value.

mod principal;
mod rule;

pub use principal::Principal;
pub use rule::InvalidName;
use rule::Rule;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

fn letter(c: char) -> bool {
    c.is_ascii_alphabetic()
}

fn letter_or_digit(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

fn id_character(c: char) -> bool {
    letter_or_digit(c) || "_.-:@".contains(c)
}

fn limit_character(c: char) -> bool {
    letter_or_digit(c) || "_.-".contains(c)
}

fn resource_character(c: char) -> bool {
    limit_character(c) || c == '/'
}

fn stack_character(c: char) -> bool {
    letter_or_digit(c) || c == '-'
}

const ENTITY: Rule = Rule {
    field: "entity id",
    min: 1,
    max: 256,
    first: letter_or_digit,
    first_text: "a letter or a digit",
    rest: id_character,
    rest_text: "letters, digits and _ . - : @",
    reserved: &[],
    reserved_text: "",
};

const RESOURCE: Rule = Rule {
    field: "resource",
    min: 1,
    max: 64,
    first: letter,
    first_text: "a letter",
    rest: resource_character,
    rest_text: "letters, digits and _ . - /",
    reserved: &["PK", "SK"],
    reserved_text: "it is the name of a key attribute of the registry of resources",
};

const LIMIT: Rule = Rule {
    field: "limit name",
    min: 1,
    max: 64,
    first: letter,
    first_text: "a letter",
    rest: limit_character,
    rest_text: "letters, digits and _ . -",
    reserved: &[
        "PK",
        "SK",
        "GSI2PK",
        "GSI2SK",
        "entity_id",
        "resource",
        "window",
        "window_start",
        "total_events",
        "ttl",
        "wcu",
    ],
    reserved_text: "it is an attribute of usage snapshots or reserved for one",
};

const STACK: Rule = Rule {
    field: "stack name",
    // The rule of DynamoDB for table names.
    min: 3,
    max: 55,
    first: letter,
    first_text: "a letter",
    rest: stack_character,
    rest_text: "letters, digits and hyphens (CloudFormation's rule)",
    reserved: &[],
    reserved_text: "",
};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $rule:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The longest accepted name, in characters.
            pub const MAX_LENGTH: usize = $rule.max;

            /// Accepts the text if every rule holds for all of it.
            pub fn parse(value: impl AsRef<str>) -> Result<Self, InvalidName> {
                let value = value.as_ref();
                $rule.check(value)?;
                Ok(Self(value.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(value: &str) -> Result<Self, InvalidName> {
                Self::parse(value)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidName;

            fn try_from(value: &str) -> Result<Self, InvalidName> {
                Self::parse(value)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(value: String) -> Result<Self, InvalidName> {
                Self::parse(value)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = <String as serde::Deserialize>::deserialize(deserializer)?;
                Self::parse(value).map_err(serde::de::Error::custom)
            }
        }
    };
}

name! {
    /// Who is limited: a user, an API key, a project, a tenant.
    ///
    /// Letters, digits and `_ . - : @`, starting with a letter or digit, at most 256.
    ///
    /// ```
    /// use zae_limiter_schema::EntityId;
    ///
    /// assert_eq!(EntityId::parse("user-1@example.com")?.as_str(), "user-1@example.com");
    /// assert!(EntityId::parse("user-1\n").is_err());
    /// # Ok::<(), zae_limiter_schema::InvalidName>(())
    /// ```
    EntityId, ENTITY
}

name! {
    /// What is limited: a model, an endpoint, a queue, such as `gpt-4` or `openai/gpt-4`.
    ///
    /// Letters, digits and `_ . - /`, starting with a letter, at most 64. `_default_` is a
    /// [level of configuration](crate::ConfigLevel), not a resource.
    Resource, RESOURCE
}

name! {
    /// One limit on a resource, such as `rpm` or `tpm`.
    ///
    /// Letters, digits and `_ . -`, starting with a letter, at most 64. Names that are attributes of
    /// usage snapshots (`ttl`, `window`, …) are refused.
    LimitName, LIMIT
}

name! {
    /// The name of a stack, which is the name of its table.
    ///
    /// Letters, digits and hyphens, starting with a letter, 3 to 55 characters.
    StackName, STACK
}

impl LimitName {
    /// A name in the source code, which follows the rules.
    pub(crate) fn literal(name: &'static str) -> Self {
        Self(name.into())
    }

    /// A name as found in the table. The Python peer refuses fewer names than [`LimitName::parse`] does;
    /// what it has stored must stay readable.
    pub fn from_stored(value: &str) -> Result<Self, InvalidName> {
        LIMIT.check_shape(value)?;
        Ok(Self(value.into()))
    }

    /// True for a stored name that [`LimitName::parse`] would refuse because it is an attribute of usage snapshots.
    pub fn is_reserved(&self) -> bool {
        LIMIT.reserved.contains(&self.as_str())
    }
}

impl Resource {
    /// A name as found in the table, without the refusal of reserved names.
    pub fn from_stored(value: &str) -> Result<Self, InvalidName> {
        RESOURCE.check_shape(value)?;
        Ok(Self(value.into()))
    }
}
