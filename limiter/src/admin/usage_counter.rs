//! Counting the usage of an embedded table in the process, with the aggregator's own code.

use zae_limiter_aggregator::{Aggregator, DynamoDb};
use zae_limiter_dynamo::EmbeddedStore;
use zae_limiter_function::{EmbeddedMapping, LoggedDeadLetters};
use zae_limiter_schema::{StackName, WindowKind};

use crate::Result;

/// For how many days a stack keeps a snapshot unless told otherwise.
const RETENTION_DAYS: u32 = 90;

/// Counts the changes of an embedded table every two seconds, for as long as it exists.
#[derive(Debug)]
pub(crate) struct UsageCounter(EmbeddedMapping<Aggregator<DynamoDb, LoggedDeadLetters>>);

impl UsageCounter {
    pub(super) async fn start(store: &EmbeddedStore, table: &StackName) -> Result<Self> {
        let client = aws_sdk_dynamodb::Client::from_conf(store.sdk_config().build());
        let table = table.as_str();
        let aggregator = Aggregator::new(
            DynamoDb::new(client, table),
            LoggedDeadLetters,
            WindowKind::ALL.to_vec(),
            RETENTION_DAYS,
        );
        let changes = store.stream(table, "usage").await?;
        Ok(Self(EmbeddedMapping::start(changes, aggregator)?))
    }

    /// Counts up to now. Returns how many changes of the table it has read.
    pub(super) async fn catch_up(&self) -> Result<u64> {
        Ok(self.0.catch_up().await?)
    }
}
