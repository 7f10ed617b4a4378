//! A distributed rate limiter on DynamoDB, for calls whose cost is known only afterwards.

mod acquire;
mod admin;
#[cfg(feature = "blocking")]
pub mod blocking;
mod bucket;
mod builder;
mod clock;
mod config;
mod error;
#[cfg(feature = "stack")]
mod infrastructure;
mod json;
mod limiter;
mod page;
#[cfg(test)]
mod simulation;
mod status;
mod store;

pub use acquire::{Acquire, Admission, Availability, Lease};
pub use admin::compatibility::{CLIENT_VERSION, Compatibility};
pub use admin::migrations::{Migrate, MigrationReport, MigrationStep};
pub use admin::{
    CapacityScope, ConfigChange, EntityCapacity, EntityChange, MAX_LIMITS, NewEntity, Repository,
    ResourceCapacity, UsageQuery, UsageSummary,
};
pub use bucket::{BreakerState, LimiterStats, Shutdown, Unwritten};
pub use builder::Builder;
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::MAX_PARENTS;
pub use config::cache::CacheStats;
pub use config::resolution::{Resolved, Source};
pub use error::{Error, Result};
#[cfg(feature = "stack")]
pub use infrastructure::StackSetup;
pub use json::to_json;
pub use limiter::RateLimiter;
pub use page::{Cursor, Page, PageRequest};
pub use status::{LimitStatus, RateLimitExceeded};
/// Text tables and charts of usage (feature `report`).
///
/// ```
/// use zae_limiter::report::{Layout, UsageReport};
/// use zae_limiter::{PageRequest, RateLimiter, UsageQuery};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let repository = RateLimiter::embedded().build_repository().await?;
/// let query = UsageQuery::of_entity("user-1")?;
/// let page = repository.usage_snapshots(&query, &PageRequest::of(100)).await?;
/// let report = UsageReport::new(&page.items);
/// println!("{}", report.table(Layout::default()));
/// println!("{}", report.charts(Layout::default().width(100)));
/// # Ok(()) }
/// ```
#[cfg(feature = "report")]
pub use zae_limiter_report as report;
/// The reconciler behind [`RateLimiter::ensure_infrastructure`].
#[cfg(feature = "stack")]
pub use zae_limiter_stack as stack;

pub use zae_limiter_dynamo::{CapacityMeter, ConsumedCapacity};
#[cfg(feature = "embedded")]
pub use zae_limiter_dynamo::{EmbeddedStore, Error as StoreError};
pub use zae_limiter_schema::bucket::RetryAfter;
pub use zae_limiter_schema::{
    AttributeValue, AuditAction, AuditEvent, AuditSubject, ConfigLevel, ConfigRecord, EntityId, EntityRecord,
    InvalidLimit, InvalidName, LevelKind, Limit, LimitName, LimitSet, Malformed, Metadata, OnUnavailable,
    Principal, Resource, StackName, SystemSettings, Timestamp, Tokens, Ulid, UsageSnapshot, Version,
    VersionRecord, Window, WindowKind,
};
