//! The stream simulator: Lambda's event source mapping on a DynamoDB stream, for tests of functions that read one.
//!
//! A [`Stream`] has shards that split, numbers that grow in length, and records as DynamoDB makes them. A [`Mapping`]
//! delivers them to a [`Invoke`] by Lambda's documented rules: in order per shard and parents first, partial batch
//! responses, bisection, retries, maximum age, and now and then a batch once more. [`Chaos`] decides what else goes wrong
//! on the other side of the function: throttling, lost responses, writes that arrive late, crashes and outages. A [`Ledger`]
//! knows what the totals must be in the end, from what was consumed and not from the records.
//!
//! Functions run in the process, or as the real binary over Lambda's runtime API ([`Lambda`]) with DynamoDB, SQS and S3
//! behind it ([`Cloud`]). Benchmarks measure the packed binary in the same way ([`Measured`]).

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
mod shards;

pub use audit::{AuditTrail, audit_trail};
pub use buckets::{QuotaCrossing, Workload, bucket_changes};
pub use chaos::{Chaos, ServiceFault, Trouble};
pub use cloud::{Cloud, Stored};
pub use database::{Database, create_table};
pub use function::{Failed, Invoke, Verdict};
pub use lambda::Lambda;
pub use ledger::{Ledger, Usage};
pub use mapping::{Discarded, Mapping, Options};
pub use measure::{Measured, packed, starts};
pub use shards::{ItemChange, Stream};
