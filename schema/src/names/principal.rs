//! Who made a change.

use std::fmt;
use std::sync::Arc;

use super::rule::InvalidName;
use super::{ENTITY, letter_or_digit};

/// Who made a change, as audit events record it: an identifier of the application's, or the ARN of an AWS identity.
///
/// ```
/// use zae_limiter_schema::Principal;
///
/// assert!(Principal::parse("ops@example.com").is_ok());
/// assert!(Principal::parse("arn:aws:sts::123456789012:assumed-role/deploy/session").is_ok());
/// assert!(Principal::parse("ops team").is_err());
/// # Ok::<(), zae_limiter_schema::InvalidName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The longest ARN that AWS makes.
    const MAX_ARN: usize = 2048;

    /// Accepts an identifier (the rules of [`EntityId`](crate::EntityId)) or an ARN.
    pub fn parse(value: impl AsRef<str>) -> Result<Self, InvalidName> {
        let value = value.as_ref();
        if value.starts_with("arn:") {
            Self::check_arn(value)?;
        } else {
            ENTITY
                .check(value)
                .map_err(|error| InvalidName::new("principal", value, error.rule()))?;
        }
        Ok(Self(value.into()))
    }

    fn check_arn(value: &str) -> Result<(), InvalidName> {
        if value.len() > Self::MAX_ARN {
            return Err(InvalidName::new(
                "principal",
                value,
                "an ARN must have at most 2048 characters",
            ));
        }
        let allowed = |c: char| letter_or_digit(c) || "_.-:@/+=,*".contains(c);
        match value.chars().find(|c| !allowed(*c)) {
            Some(bad) => Err(InvalidName::new(
                "principal",
                value,
                format!("an ARN must not contain {bad:?}"),
            )),
            None => Ok(()),
        }
    }

    /// The principal as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Principal {
    type Err = InvalidName;

    fn from_str(value: &str) -> Result<Self, InvalidName> {
        Self::parse(value)
    }
}
