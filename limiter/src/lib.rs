//! A distributed rate limiter on DynamoDB, for calls whose cost is known only afterwards.

mod admission;
mod backend;
#[cfg(feature = "blocking")]
pub mod blocking;
mod builder;
mod cache;
mod clock;
mod connect;
mod dynamo;
#[cfg(feature = "embedded")]
mod embedded;
mod entropy;
mod error;
mod failure;
#[cfg(feature = "stack")]
mod infrastructure;
mod limiter;
mod migrations;
mod page;
mod plain;
mod repository;
mod resolution;
#[cfg(test)]
mod simulation;
mod versions;

pub use admission::{
    Acquire, Admission, Lease, LimitStatus, LimiterStats, Peek, RateLimitExceeded, RetryAfter, Shutdown,
    Unwritten,
};
pub use builder::Builder;
pub use cache::CacheStats;
pub use clock::{Clock, ManualClock, SystemClock};
pub use dynamo::{Consumed, Meter};
#[cfg(feature = "embedded")]
pub use embedded::EmbeddedStore;
pub use error::{Error, Result};
#[cfg(feature = "stack")]
pub use infrastructure::StackSetup;
pub use limiter::RateLimiter;
pub use migrations::{Migrate, MigrationReport, MigrationStep};
pub use page::{Cursor, Page, PageRequest};
pub use plain::to_json;
pub use repository::{
    Availability, CapacityScope, ConfigChange, EntityCapacity, EntityChange, MAX_LIMITS, MAX_PARENTS,
    NewEntity, Repository, ResourceCapacity, UsageQuery, UsageSummary,
};
pub use resolution::{Resolved, Source};
pub use versions::{CLIENT_VERSION, Compatibility};
/// The reconciler behind [`RateLimiter::ensure_infrastructure`].
#[cfg(feature = "stack")]
pub use zae_limiter_stack as stack;

pub use zae_limiter_schema::{
    AttributeValue, AuditAction, AuditEvent, AuditSubject, ConfigLevel, ConfigRecord, EntityId, EntityRecord,
    InvalidLimit, InvalidName, LevelKind, Limit, LimitName, LimitSet, Malformed, Metadata, OnUnavailable,
    Principal, Resource, StackName, SystemSettings, Timestamp, Tokens, Ulid, UsageSnapshot, Version,
    VersionRecord, Window, WindowKind,
};
