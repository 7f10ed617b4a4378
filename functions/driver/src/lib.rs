//! Lambda's event source mapping on a DynamoDB stream, for tests of functions that read one.
//!
//! A [`Stream`] has shards that split, numbers that grow in length, and records as DynamoDB makes them. A [`Mapping`]
//! delivers them to a [`Function`] by Lambda's documented rules: in order per shard and parents first, partial batch
//! responses, bisection, retries, maximum age, and now and then a batch once more. [`Chaos`] decides what else goes wrong
//! on the other side of the function: throttling, lost answers, writes that arrive late, crashes and outages. A [`Ledger`]
//! knows what the totals must be in the end, from what was consumed and not from the records.
//!
//! Functions run in the process, or as the real binary over Lambda's runtime API ([`Lambda`]) with DynamoDB, SQS and S3
//! behind it ([`Cloud`]). Benchmarks measure the packed binary in the same way ([`Measured`]).

// Part of tests: what should not happen ends them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc
)]

mod audit;
mod buckets;
mod chaos;
mod cloud;
mod database;
mod function;
mod http;
mod lambda;
mod ledger;
mod mapping;
mod measure;
mod stream;

pub use audit::{AuditTrail, audit_trail};
pub use buckets::{Workload, bucket_changes};
pub use chaos::{Chaos, Fault, Weather};
pub use cloud::{Cloud, Stored};
pub use database::Database;
pub use function::{Failed, Function, Verdict};
pub use lambda::Lambda;
pub use ledger::{Ledger, Usage};
pub use mapping::{Discarded, Mapping, Options};
pub use measure::{Measured, packed, starts};
pub use stream::{Change, Stream};
