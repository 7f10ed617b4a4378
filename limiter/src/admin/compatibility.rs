//! Whether a table and this client are compatible.

use zae_limiter_dynamo::Table;
use zae_limiter_schema::{Version, VersionRecord};

use crate::error::Internal;
use crate::{Error, Result};

/// This crate's version.
pub const CLIENT_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether a table and this client are compatible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compatibility {
    /// They are.
    Compatible,
    /// The table has an older format; migrations bring it up to date.
    NeedsMigration {
        /// The table's schema version.
        from: Version,
        /// The version that migrations lead to.
        to: Version,
    },
    /// The table has a format that this client does not know.
    SchemaTooNew {
        /// The table's schema version.
        schema: Version,
    },
    /// The table asks for a newer client.
    ClientTooOld {
        /// The oldest client that the table accepts.
        least: Version,
    },
    /// The record is not one.
    Unreadable {
        /// Why.
        reason: String,
    },
}

impl Compatibility {
    /// Decides for a table with this version record.
    ///
    /// ```
    /// use zae_limiter::Timestamp;
    /// use zae_limiter::versions::{Compatibility, VersionRecord};
    ///
    /// let mut record = VersionRecord::current(Timestamp::MIN, "client:0.1.0");
    /// assert_eq!(Compatibility::of(&record), Compatibility::Compatible);
    /// record.schema_version = "0.7.0".into();
    /// assert!(matches!(Compatibility::of(&record), Compatibility::NeedsMigration { .. }));
    /// ```
    pub fn of(record: &VersionRecord) -> Self {
        let parse = |text: &str| {
            text.parse::<Version>().map_err(|error| Self::Unreadable {
                reason: error.to_string(),
            })
        };
        let decide = || {
            let (schema, least) = (parse(&record.schema_version)?, parse(&record.client_min_version)?);
            let (ours, client) = (parse(VersionRecord::SCHEMA_VERSION)?, parse(CLIENT_VERSION)?);
            let format = |version: &Version| (version.major, version.minor);
            Ok(if least.release() > client.release() {
                Self::ClientTooOld { least }
            } else if format(&schema) > format(&ours) {
                Self::SchemaTooNew { schema }
            } else if format(&schema) < format(&ours) {
                Self::NeedsMigration {
                    from: schema,
                    to: ours,
                }
            } else {
                Self::Compatible
            })
        };
        decide().unwrap_or_else(|unreadable| unreadable)
    }

    /// What is incompatible and what to do about it. None if nothing is.
    ///
    /// ```
    /// use zae_limiter::versions::Compatibility;
    ///
    /// assert_eq!(Compatibility::Compatible.problem(), None);
    /// let newer = Compatibility::SchemaTooNew { schema: "9.0.0".parse().unwrap() };
    /// assert!(newer.problem().unwrap().contains("update this client"));
    /// ```
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Compatible => None,
            Self::NeedsMigration { from, to } => Some(format!(
                "its format {from} is older than {to}; run the migrations"
            )),
            Self::SchemaTooNew { schema } => Some(format!(
                "its format {schema} is newer than {}; update this client",
                VersionRecord::SCHEMA_VERSION
            )),
            Self::ClientTooOld { least } => {
                Some(format!("it accepts clients from {least} on; update this client"))
            }
            Self::Unreadable { reason } => Some(format!("{reason}; write the version record again")),
        }
    }
}

/// True for a record of a later release than this crate's, however small the difference.
pub(crate) fn is_later(record: &VersionRecord) -> bool {
    let parse = |text: &str| text.parse::<Version>().ok();
    let (theirs, ours) = (
        parse(&record.schema_version),
        parse(VersionRecord::SCHEMA_VERSION),
    );
    theirs.map(|version| version.release()) > ours.map(|version| version.release())
}

/// Refuses a table that is not compatible, or only warns about it if not `strict`. A table without a version record is
/// taken as it is.
pub(crate) fn admit(table: &Table, record: Option<&VersionRecord>, strict: bool) -> Result<()> {
    let Some(record) = record else { return Ok(()) };
    match Compatibility::of(record).problem() {
        Some(reason) => refuse(table, &record.schema_version, reason, strict),
        None => Ok(()),
    }
}

/// Refuses a table without a version record that holds items of an older format.
pub(crate) fn admit_old(table: &Table, strict: bool) -> Result<()> {
    let ours = VersionRecord::SCHEMA_VERSION;
    let reason = format!("it has no version record and holds items from before {ours}; run the migrations");
    refuse(table, "unknown", reason, strict)
}

fn refuse(table: &Table, schema: &str, reason: String, strict: bool) -> Result<()> {
    if !strict {
        tracing::warn!(table = %table.name, schema, reason, "versions do not fit");
        return Ok(());
    }
    Err(Error::Internal(Internal::IncompatibleSchema {
        table: table.name.to_string(),
        schema: schema.to_owned(),
        client: CLIENT_VERSION.to_owned(),
        reason,
    }))
}
