//! A distributed rate limiter on DynamoDB, for calls whose cost is known only when they are over.
//!
//! Each pair of an *entity* (who calls) and a *resource* (what is called) has one token bucket in a table that all
//! processes share. A call takes the tokens of all its limits in one conditional write, or none. The [`Lease`] that it
//! gets is corrected when the real cost is known, and a lease that is dropped returns its tokens.
//!
//! # A first program
//!
//! ```
//! use zae_limiter::{Error, Limit, RateLimiter};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> zae_limiter::Result<()> {
//! // In this process. On AWS: RateLimiter::builder("my-app").region("eu-west-1")
//! let limiter = RateLimiter::embedded().await?;
//! let limits = [Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 10_000)?];
//! limiter.repository().set_resource_defaults("gpt-4", limits).await?;
//!
//! // A call whose cost is known.
//! limiter.acquire("user-1", "gpt-4").consume("rpm", 1).commit().await?;
//!
//! // 500 tokens are an estimate. The response took 120 more.
//! let mut lease = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).consume("tpm", 500).await?;
//! lease.adjust("tpm", 120);
//! lease.commit().await?;
//!
//! let left = limiter.acquire("user-1", "gpt-4").peek().await?;
//! assert_eq!(left.tokens("rpm"), Some(98));
//! limiter.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! # How to read a refusal
//!
//! A call that does not fit fails with [`Error::Refused`], and nothing was taken. [`Refusal`] has the
//! [status](LimitStatus) of every limit, and the time after which the call fits if no other call takes the tokens. An
//! outage is another error: [`Error::is_unavailable`] reports it, and [`OnUnavailable`] decides what happens then.
//!
//! ```
//! use zae_limiter::{Error, Limit, RateLimiter, RetryAfter};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> zae_limiter::Result<()> {
//! # let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 1)?]).await?;
//! # limiter.acquire("user-1", "gpt-4").consume("rpm", 1).commit().await?;
//! match limiter.acquire("user-1", "gpt-4").consume("rpm", 1).commit().await {
//!     Ok(()) => println!("admitted"),
//!     Err(Error::Refused(refusal)) => match refusal.retry_after() {
//!         RetryAfter::Never => println!("more than the burst: {refusal}"),
//!         wait => println!("wait {:?} s: {refusal}", wait.seconds()),
//!     },
//!     Err(outage) if outage.is_unavailable() => println!("the table does not respond: {outage}"),
//!     Err(other) => return Err(other),
//! }
//! # Ok(()) }
//! ```
//!
//! # Where things are
//!
//! | Task | See |
//! |---|---|
//! | connect and configure | [`RateLimiter::builder`], [`RateLimiterBuilder`] |
//! | limit a call | [`RateLimiter::acquire`], [`Acquire`], [`Lease`] |
//! | charge several resources, all or none | [`Acquire::and`], [`Lease::on`] |
//! | ask what is left | [`Acquire::peek`], [`Availability`] |
//! | wait for tokens | [`Acquire::wait_up_to`] |
//! | set limits, create entities | [`RateLimiter::repository`], [`Repository`] |
//! | count money | [`money`], [`Lease::commit_usage`] |
//! | audit events, usage, versions | [`Repository`], [`audit`], [`usage`], [`versions`] |
//! | read long lists | [`PageRequest::items`], [`pagination`] |
//! | test without AWS | `RateLimiter::embedded` (feature `embedded`), [`ManualClock`] |
//! | limit the requests of tower, axum or tonic | `tower` (feature `tower`) |
//! | send refusals over HTTP | [`RateLimitHeaders`], `http` (feature `http`) |
//! | metrics | [`RateLimiter::stats`], `metrics` (feature `metrics`) |
//! | code without async | `blocking` (feature `blocking`) |
//! | deploy from the application | `RateLimiterBuilder::stack`, `RateLimiterBuilder::ensure`, `RateLimiter::ensure_infrastructure` (features `stack`, `bundled-functions`) |
//! | tables and charts of usage | `report` (feature `report`) |
//!
//! # Features
//!
//! None is on by default: an application on AWS needs none of them. The examples here need `embedded`. `bundled-functions` needs
//! the archives of the Lambda functions when it is compiled, and says so if they are missing.

mod acquire;
mod admin;
#[cfg(feature = "blocking")]
pub mod blocking;
mod bucket;
mod builder;
mod clock;
mod config;
pub mod error;
mod headers;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "stack")]
mod infrastructure;
mod json;
mod limiter;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(not(feature = "metrics"))]
mod metrics;
mod page;
#[cfg(test)]
mod simulation;
mod status;
mod store;
#[cfg(feature = "tower")]
pub mod tower;

pub use acquire::{Acquire, Adjust, Admission, Availability, Lease, MAX_RESOURCES, ResourceLease};
pub use admin::{BucketLimit, BucketLimitKind, BucketState, BucketWriter};
pub use admin::{
    ConfigChange, EntityChange, EntitySearch, MAX_LIMITS, NewEntity, RefreshedBuckets, Repository,
};
pub use admin::{LimitReset, ResetReport, SetLimits, TopUp, TopUpReport};
pub use bucket::{BreakerState, LimiterStats, Shutdown, Unwritten};
pub use builder::RateLimiterBuilder;
pub use clock::{Clock, ManualClock, SystemClock};
pub use config::MAX_PARENTS;
pub use config::cache::CacheStats;
pub use config::resolution::{ConfigOrigin, ResolvedConfig};
pub use error::{Error, Result};
pub use headers::RateLimitHeaders;
#[cfg(feature = "stack")]
pub use infrastructure::StackSetup;
pub use limiter::RateLimiter;
pub use page::PageRequest;
pub use status::{LimitStatus, Refusal};
#[cfg(feature = "embedded")]
pub use zae_limiter_dynamo::EmbeddedStore;
pub use zae_limiter_dynamo::{CapacityMeter, ConsumedCapacity};
pub use zae_limiter_schema::bucket::{Reset, RetryAfter};
pub use zae_limiter_schema::{
    ConfigLevel, Counted, EntityId, LevelKind, Limit, LimitKind, LimitName, LimitSet, Mode, OnUnavailable,
    QuotaPeriod, Resource, StackName, SystemSettings, Timestamp, Tokens, Weekday,
};

/// The numbers of each kind of limit: see [`LimitKind`].
pub mod kinds {
    pub use zae_limiter_schema::{Boundary, Concurrency, Quota, Rate, Zone};
}

/// Lists that come in pages: what the methods of [`Repository`] that take a [`PageRequest`] return.
pub mod pagination {
    pub use crate::page::{Cursor, Items, Page};
}

/// What the table stores, as [`Repository`] returns it.
pub mod records {
    pub use crate::json::to_json;
    pub use zae_limiter_schema::{
        AttributeValue, ConfigRecord, EntityRecord, Metadata, TemporaryLimits, Ulid,
    };
}

/// Who changed what: the events that [`Repository::list_audit_events`] lists.
pub mod audit {
    pub use zae_limiter_schema::{AuditAction, AuditEvent, AuditSubject, Principal};
}

/// Prices of a resource, what a call costs by them, and what one is expected to cost: see [`Repository::set_prices`],
/// [`Acquire::consume_estimate`] and [`Lease::commit_usage`].
pub mod money {
    pub use zae_limiter_schema::money::{
        Estimate, InvalidMoney, InvalidPrices, MicroDollars, Prices, TooExpensive, Usage, dollars,
    };
}

/// What was used, by hour, day and month, and how much of a resource is in use: see [`Repository::list_usage_snapshots`],
/// [`Repository::get_usage_summary`] and [`Repository::get_resource_capacity`].
pub mod usage {
    pub use crate::admin::{
        CapacityScope, EntityCapacity, Observed, ObservedEntity, ResourceCapacity, UsageQuery, UsageSummary,
    };
    pub use zae_limiter_schema::{UsageSnapshot, Window, WindowKind};
}

/// The version of the table, and migrations to the current one: see [`Repository::get_compatibility`] and
/// [`Repository::migrate`].
pub mod versions {
    pub use crate::admin::compatibility::{CLIENT_VERSION, Compatibility};
    pub use crate::admin::migrations::{Migrate, MigrationReport, MigrationStep};
    pub use zae_limiter_schema::{Version, VersionRecord};
}

/// Text tables and charts of usage (feature `report`).
///
/// ```
/// use zae_limiter::report::{Layout, UsageReport};
/// use zae_limiter::usage::UsageQuery;
/// use zae_limiter::{PageRequest, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let repository = RateLimiter::embedded().build_repository().await?;
/// let query = UsageQuery::of_entity("user-1")?;
/// let page = repository.list_usage_snapshots(&query, &PageRequest::new(100)).await?;
/// let report = UsageReport::new(&page.items);
/// println!("{}", report.table(Layout::default()));
/// println!("{}", report.charts(Layout::default().width(100)));
/// # Ok(()) }
/// ```
#[cfg(feature = "report")]
pub use zae_limiter_report as report;
/// The reconciler behind [`RateLimiter::ensure_infrastructure`] (feature `stack`).
#[cfg(feature = "stack")]
pub use zae_limiter_stack as stack;
