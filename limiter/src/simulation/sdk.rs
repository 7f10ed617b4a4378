//! The real path to the table beside the interpreter: every write and read of a bucket also goes through the SDK to the
//! embedded store, under the same faults, and must have the same result. What the limiter gets is the SDK's.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use zae_limiter_dynamo::{EmbeddedStore, Entropy, LocalTime, ServerTime, Table};
use zae_limiter_schema::bucket::{Attributes, BucketKey, BucketWrite};
use zae_limiter_schema::{StackName, Timestamp};

use crate::builder::Settings;
use crate::store::{Store, TableStore, WriteOutcome};

/// A table in memory that the SDK talks to.
#[derive(Debug)]
pub(super) struct SdkTable {
    store: TableStore,
    /// Requests reach both tables in the same order.
    order: tokio::sync::Mutex<()>,
}

impl SdkTable {
    pub(super) async fn new() -> Self {
        let store = EmbeddedStore::memory().unwrap();
        let table = Table {
            client: Client::from_conf(store.sdk_config().build()),
            name: StackName::parse("simulated").unwrap(),
            place: store.place(),
            entropy: Arc::new(Entropy::seeded(1)),
            budget: Duration::from_secs(10),
            attempt: Duration::from_secs(10),
            deadline: None,
            credentials: None,
        };
        table.create().await.unwrap();
        let no_time = ServerTime::new(|| LocalTime {
            now: Timestamp::MIN,
            elapsed: Duration::ZERO,
        });
        Self {
            store: TableStore::new(table, &Settings::default(), true, no_time),
            order: tokio::sync::Mutex::default(),
        }
    }

    /// What both tables make of a write, and how they differ.
    pub(super) async fn write(
        &self,
        write: &BucketWrite,
        interpret: impl FnOnce() -> WriteOutcome,
    ) -> (WriteOutcome, Option<String>) {
        let _order = self.order.lock().await;
        let interpreted = interpret();
        let (WriteOutcome::Done(_) | WriteOutcome::Refused(_)) = &interpreted else {
            // It was refused before it reached the item.
            return (interpreted, None);
        };
        let sent = self.store.write_bucket(write).await;
        let same = match (&interpreted, &sent) {
            (WriteOutcome::Done(one), WriteOutcome::Done(other)) => one == other,
            (WriteOutcome::Refused(one), WriteOutcome::Refused(other)) => one == other,
            _ => false,
        };
        let difference = (!same).then(|| format!("interpreted {interpreted:?}, through the SDK {sent:?}"));
        (sent, difference)
    }

    /// What both tables have for a consistent read, and how they differ.
    pub(super) async fn read(
        &self,
        key: &BucketKey,
        interpret: impl FnOnce() -> Option<Attributes>,
    ) -> (Option<Attributes>, Option<String>) {
        let _order = self.order.lock().await;
        let interpreted = interpret();
        match self.store.read_bucket(key, true).await {
            Ok(read) if read == interpreted => (read, None),
            read => {
                let difference = format!("interpreted {interpreted:?}, read through the SDK {read:?}");
                (interpreted, Some(difference))
            }
        }
    }
}
