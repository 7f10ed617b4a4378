//! The record of the table's version.

use std::fmt;
use std::str::FromStr;

use super::{Unknown, unknown};
use crate::item::{Builder, Item, Malformed, Reader, s, s_or_null};
use crate::keys::attribute;
use crate::{Timestamp, keys};

/// A version such as `0.8.0` or `1.2.3-dev`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// Changes that break.
    pub major: u64,
    /// Changes that add.
    pub minor: u64,
    /// Changes that mend.
    pub patch: u64,
    /// What follows a hyphen: a pre-release.
    pub pre: Option<String>,
}

/// Text that is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("version {value:?} is invalid: it must look like 1.2.3")]
pub struct InvalidVersion {
    value: String,
}

impl Version {
    /// Major, minor and patch: what compatibility is decided by.
    pub const fn release(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    /// Accepts a leading `v`, a pre-release after a hyphen, and Python's `.devN`.
    fn from_str(value: &str) -> Result<Self, InvalidVersion> {
        let invalid = || InvalidVersion {
            value: value.chars().take(50).collect(),
        };
        let text = value.strip_prefix('v').unwrap_or(value);
        let (numbers, pre) = match (text.split_once('-'), text.split_once(".dev")) {
            (Some((_, "")), _) => return Err(invalid()),
            (Some((numbers, pre)), _) => (numbers, Some(pre.to_owned())),
            (None, Some((numbers, _))) => (numbers, Some("dev".to_owned())),
            (None, None) => (text, None),
        };
        let mut parts = numbers.split('.').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if digits {
                part.parse().map_err(|_| invalid())
            } else {
                Err(invalid())
            }
        });
        let mut next = || parts.next().unwrap_or_else(|| Err(invalid()));
        let (major, minor, patch) = (next()?, next()?, next()?);
        if parts.next().is_some() {
            Err(invalid())
        } else {
            Ok(Self {
                major,
                minor,
                patch,
                pre,
            })
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        self.pre.as_ref().map_or(Ok(()), |pre| write!(f, "-{pre}"))
    }
}

/// What the table says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRecord {
    /// The version of the table's format.
    pub schema_version: String,
    /// The oldest client that may use it.
    pub client_min_version: String,
    /// The version of the Python peer's function. Ours is part of the stack: anything but NULL makes an old
    /// peer overwrite it.
    pub lambda_version: Option<String>,
    /// When it was written.
    pub updated_at: Timestamp,
    /// By whom, such as `client:0.1.0`.
    pub updated_by: Option<String>,
    /// Attributes that this version does not know.
    pub unknown: Unknown,
}

const KNOWN: [&str; 7] = [
    attribute::PK,
    attribute::SK,
    attribute::SCHEMA_VERSION,
    attribute::CLIENT_MIN_VERSION,
    attribute::LAMBDA_VERSION,
    attribute::UPDATED_AT,
    attribute::UPDATED_BY,
];

impl VersionRecord {
    /// The format that this crate reads and writes.
    pub const SCHEMA_VERSION: &'static str = "0.8.0";

    /// The record that a table of ours has.
    pub fn current(updated_at: Timestamp, updated_by: impl Into<String>) -> Self {
        Self {
            schema_version: Self::SCHEMA_VERSION.to_owned(),
            client_min_version: "0.0.0".to_owned(),
            lambda_version: None,
            updated_at,
            updated_by: Some(updated_by.into()),
            unknown: Unknown::new(),
        }
    }

    /// The item as it is stored.
    pub fn to_item(&self) -> Item {
        let mut item = Builder::new(&keys::version())
            .with(attribute::SCHEMA_VERSION, s(&self.schema_version))
            .with(attribute::CLIENT_MIN_VERSION, s(&self.client_min_version))
            .with(attribute::LAMBDA_VERSION, s_or_null(self.lambda_version.as_ref()))
            .with(attribute::UPDATED_AT, s(self.updated_at))
            .with(attribute::UPDATED_BY, s_or_null(self.updated_by.as_ref()));
        for (name, value) in &self.unknown {
            item = item.with(name, value.clone());
        }
        item.build()
    }

    /// Reads the item.
    pub fn from_item(item: &Item) -> Result<Self, Malformed> {
        let reader = Reader::new(attribute::VERSION, item);
        Ok(Self {
            schema_version: reader.text(attribute::SCHEMA_VERSION)?.to_owned(),
            client_min_version: reader
                .optional_text(attribute::CLIENT_MIN_VERSION)?
                .unwrap_or("0.0.0")
                .to_owned(),
            lambda_version: reader
                .optional_text(attribute::LAMBDA_VERSION)?
                .map(str::to_owned),
            updated_at: reader
                .optional_parsed(attribute::UPDATED_AT, Timestamp::parse)?
                .unwrap_or(Timestamp::MIN),
            updated_by: reader.optional_text(attribute::UPDATED_BY)?.map(str::to_owned),
            unknown: unknown(item, |name| KNOWN.contains(&name)),
        })
    }
}
