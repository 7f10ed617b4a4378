//! Bucket changes on the table's stream become usage snapshots in the same table, each change counted once.
//!
//! A record is read into a [`Change`] (what was consumed, by the counters of its two images), changes of one bucket and
//! window make a [`Group`], and a group is one conditional [`SnapshotUpdate`]. The snapshot keeps the [`Token`] of the last
//! record it has counted, so that a batch that comes again, whole, in part or cut differently, adds nothing twice.
//!
//! | Pure | With I/O |
//! |---|---|
//! | [`Token`], [`Change`], [`Group`], [`SnapshotUpdate`], [`Settings`] | [`Table`], [`Aggregator`] |

mod aggregator;
mod change;
mod counting;
mod dynamodb;
mod expression;
mod group;
mod rules;
mod settings;
mod table;
mod token;
mod update;

pub use aggregator::{Aggregator, metric};
pub use change::{Change, Malformed, Reading};
pub use dynamodb::DynamoDb;
pub use expression::Expression;
pub use group::{Entry, Group, groups};
#[doc(hidden)]
pub use rules::Rules;
pub use settings::Settings;
pub use table::{Answer, Table};
pub use token::Token;
pub use update::{Condition, Seen, SnapshotUpdate, Value};
