//! Text tables and charts of usage, for terminals and logs.
//!
//! [`UsageReport`] draws usage snapshots as a table or as charts. [`TextTable`] and [`Chart`] are its building blocks and
//! can draw other data as well. Everything here is a pure function of its arguments.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use zae_limiter_report::{Layout, UsageReport};
//! use zae_limiter_schema::{EntityId, LimitName, Resource, Timestamp, UsageSnapshot, WindowKind};
//!
//! // A program reads them with `Repository::list_usage_snapshots`.
//! let snapshot = UsageSnapshot {
//!     entity: EntityId::parse("user-1")?,
//!     resource: Resource::parse("gpt-4")?,
//!     window: WindowKind::Hourly.window_at(Timestamp::from_seconds(1_704_067_200)),
//!     counters: BTreeMap::from([(LimitName::parse("tpm")?, 12_500)]),
//!     total_events: 25,
//!     refusals: 3,
//!     observed: 0,
//!     thresholds: BTreeMap::new(),
//!     ttl: None,
//!     progress: None,
//!     unknown: BTreeMap::new(),
//! };
//! let snapshots = [snapshot];
//! let report = UsageReport::new(&snapshots);
//! assert_eq!(
//!     report.table(Layout::default()),
//!     "Window                Length  Entity  Resource  Events  Refused  Tokens\n\
//!      2024-01-01T00:00:00Z  hourly  user-1  gpt-4         25        3  tpm=12,500"
//! );
//! assert!(report.charts(Layout::default()).starts_with("gpt-4 tpm, hourly, total 12,500\n"));
//! # Ok::<(), zae_limiter_schema::InvalidName>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod chart;
mod layout;
mod number;
mod text_table;
mod usage;

pub use chart::{Chart, Point};
pub use layout::Layout;
pub use number::{decimal, grouped};
pub use text_table::{Align, TextTable};
pub use usage::UsageReport;
