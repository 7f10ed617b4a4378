//! Bucket changes on the table's stream become usage snapshots in the same table, each change counted exactly once.
//!
//! A record is read into a [`UsageDelta`]: what was consumed, by the counters of its two images. The deltas of one bucket
//! and window form a [`Group`], and a group is one conditional [`SnapshotUpdate`]. The snapshot keeps its [`Progress`]: the
//! [`Position`] of the last counted record, and the gaps before it. A batch that is delivered again, whole, in part or
//! split differently, adds nothing twice, and a dead letter that is delivered late ([`redrive`]) is still counted.
//!
//! A write that takes a quota past a threshold is a [`Crossing`]. It is marked in the snapshots, and sent as a
//! [`ThresholdEvent`] where the aggregator has a destination for [`Alerts`].
//!
//! | Pure | With I/O |
//! |---|---|
//! | [`Position`], [`UsageDelta`], [`Group`], [`Progress`], [`SnapshotUpdate`], [`Crossing`], [`ThresholdEvent`], [`Settings`] | [`Table`], [`Alerts`], [`Aggregator`], [`redrive`] |

mod aggregator;
mod alerts;
mod counting;
mod crossing;
mod delta;
mod dynamodb;
#[cfg(feature = "lambda")]
mod event_bridge;
mod expression;
mod gap;
mod group;
mod link;
mod position;
mod progress;
mod redrive;
mod resource_names;
mod rules;
mod settings;
#[cfg(test)]
mod simulation;
mod table;
mod threshold_event;
mod update;

pub use aggregator::{Aggregator, metric};
pub use alerts::{Alerts, MAX_EVENTS, NoAlerts};
pub use crossing::Crossing;
pub use delta::{Malformed, Reading, UsageDelta};
pub use dynamodb::DynamoDb;
#[cfg(feature = "lambda")]
pub use event_bridge::EventBridge;
pub use group::{Entry, Group, groups};
pub use link::{Digest, Link};
pub use position::Position;
pub use progress::Progress;
pub use redrive::{Redriven, redrive};
pub use resource_names::{MAX_RESOURCES, OTHER_RESOURCES};
pub use settings::Settings;
pub use table::{Table, UpdateOutcome};
pub use threshold_event::{ThresholdEvent, ThresholdMark};
pub use update::{Condition, SnapshotUpdate};
