//! DynamoDB as zae-limiter speaks it. Client and functions share this crate, so that each rule about items,
//! expressions, errors and retries is written once.
//!
//! A [`Table`] makes complete calls: every page, every unprocessed key, with retries and jitter inside a time budget.
//!
//! ```
//! # #[cfg(feature = "embedded")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//! use aws_sdk_dynamodb::Client;
//! use zae_limiter_dynamo::{EmbeddedStore, Entropy, Table, Update};
//! use zae_limiter_schema::{AttributeValue, StackName, keys};
//!
//! let store = EmbeddedStore::memory()?;
//! let table = Table {
//!     client: Client::from_conf(store.sdk_config().build()),
//!     name: StackName::parse("limiter")?,
//!     place: store.place(),
//!     entropy: Arc::new(Entropy::from_system()),
//!     budget: Duration::from_secs(10),
//!     attempt: Duration::from_secs(3),
//!     deadline: None,
//!     credentials: None,
//! };
//! table.create().await?;
//!
//! let first = || Update::of(keys::version()).set("schema_version", AttributeValue::S("1.0.0".into())).when_absent("PK");
//! assert!(table.update(first()).await?);
//! assert!(!table.update(first()).await?, "the condition is false the second time");
//! assert!(table.get(&keys::version(), true).await?.is_some());
//! # Ok(()) }
//! # #[cfg(not(feature = "embedded"))]
//! # fn main() {}
//! ```
//!
//! | To find | Look in |
//! |---|---|
//! | reads and writes of one item, of many, and of a range | [`Table`], [`Query`] |
//! | writes of buckets | [`Table::write_bucket`] |
//! | several writes together | [`Transaction`] |
//! | expressions and their placeholders | [`Update`], [`Placeholders`] |
//! | what a failed call means | [`CallError`], [`Error`] |
//! | retries within a time budget | [`Budget::retry`] |
//! | items between the SDK and the schema | [`from_sdk_item`], [`to_sdk_item`] |
//! | the time of one attempt, without connecting | [`attempt`], [`ConnectionWatch`] |
//! | a wrong clock | [`ServerTime`], [`LocalTime`] |
//! | credentials that calls share | [`SharedCredentials`] |
//! | consumed capacity | [`CapacityMeter`] |
//! | randomness that tests can seed | [`Entropy`] |
//! | the table inside the process, and its changes | `EmbeddedStore`, `EmbeddedStream`, with the feature `embedded` |

mod attempt;
mod batch;
mod bucket_write;
mod call_error;
mod clock_offset;
mod convert;
mod create;
mod credentials;
#[cfg(feature = "embedded")]
mod embedded;
mod entropy;
mod error;
mod expression;
mod meter;
mod query;
mod retry;
#[cfg(test)]
mod script;
mod server_time;
mod table;
mod transaction;

pub use attempt::{ConnectionWatch, TimedOut, attempt};
pub use call_error::CallError;
pub use clock_offset::LocalTime;
pub use convert::{SdkItem, from_sdk_item, to_sdk_item, to_sdk_key, to_sdk_value};
pub use credentials::SharedCredentials;
#[cfg(feature = "embedded")]
pub use embedded::{Changes, EmbeddedStore, EmbeddedStream};
pub use entropy::Entropy;
pub use error::{Error, Result};
pub use expression::{Names, Placeholders, Update, UpdateParts, Values};
pub use meter::{CapacityMeter, ConsumedCapacity};
pub use query::{Filter, Query, RawPage, Sort};
pub use retry::Budget;
pub use server_time::ServerTime;
pub use table::{Table, Updated, key_of, update_once};
pub use transaction::{MAX_WRITES, Reason, Transacted, Transaction, is_none};
