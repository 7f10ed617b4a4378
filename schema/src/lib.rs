//! What the zae-limiter table holds, and the exact arithmetic of its buckets.
//!
//! This crate knows names, limits, buckets, keys and records, so that no other crate has to. It is pure: no I/O, no
//! clock, no async, no AWS SDK. Items are [`serde_dynamo::Item`]s, which convert to the SDK's and to Lambda events'.
//!
//! ```
//! use zae_limiter_schema::{EntityId, Limit, Resource, keys};
//!
//! // A name that is parsed is valid from here on.
//! let (entity, resource) = (EntityId::parse("user-1")?, Resource::parse("openai/gpt-4")?);
//! let key = keys::bucket(&entity, &resource);
//! assert_eq!((key.pk.as_str(), key.sk.as_str()), ("ENTITY#user-1", "#BUCKET#openai/gpt-4"));
//!
//! let limit = Limit::per_minute("tpm", 10_000)?;
//! assert_eq!(limit.to_string(), "tpm:10000/min");
//! assert_eq!("tpm:10000/min".parse(), Ok(limit));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | To find | Look in |
//! |---|---|
//! | validated names | [`EntityId`], [`Resource`], [`LimitName`], [`StackName`], [`Principal`] |
//! | what a limit is | [`Limit`], [`LimitSet`], [`Tokens`] |
//! | prices, and what a call costs | [`money`] |
//! | levels of configuration | [`ConfigLevel`], [`ConfigRecord`], [`Mode`] |
//! | how a bucket fills and empties, and how it is written | [`bucket`] |
//! | keys | [`keys`] |
//! | the table's keys, indexes, time to live and stream | [`table`] |
//! | the other records | [`EntityRecord`], [`AuditEvent`], [`UsageSnapshot`], [`VersionRecord`] |

pub mod bucket;
mod item;
pub mod keys;
mod level;
mod limit;
mod mode;
pub mod money;
mod names;
mod records;
mod shortened;
pub mod table;
mod timestamp;
mod tokens;
mod ulid;
mod window;

pub use item::{AttributeValue, Item, Malformed};
pub use level::{ConfigLevel, LevelKind};
pub use limit::{
    Boundary, Concurrency, Counted, DuplicateLimit, InvalidLimit, Limit, LimitField, LimitKind, LimitSet,
    Quota, QuotaPeriod, Rate, Thresholds, Weekday, Zone,
};
pub use mode::{InvalidMode, Mode};
pub use names::{EntityId, InvalidName, LimitName, Principal, Resource, StackName};
pub use records::{
    AuditAction, AuditEvent, AuditSubject, ConfigRecord, EntityConfigRegistry, EntityRecord,
    IdempotencyRecord, InvalidPolicy, InvalidSubject, InvalidVersion, Metadata, OnUnavailable, Progress,
    ResourceRegistry, SystemSettings, TemporaryLimits, Unknown, UsageSnapshot, Version, VersionRecord,
    threshold_text, usage_attribute,
};
pub use timestamp::{InvalidTimestamp, Timestamp};
pub use tokens::{Tokens, TooManyTokens, whole_tokens};
pub use ulid::Ulid;
pub use window::{InvalidWindow, Window, WindowKind};
