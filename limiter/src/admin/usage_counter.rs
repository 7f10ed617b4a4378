//! Counting the usage of an embedded table in the process, with the aggregator's own code.

use zae_limiter_aggregator::{Aggregator, Alerts, DynamoDb, ThresholdEvent};
use zae_limiter_dynamo::EmbeddedStore;
use zae_limiter_function::{CallError, EmbeddedMapping, LoggedDeadLetters};
use zae_limiter_schema::{StackName, WindowKind};

use crate::Result;

/// For how many days a stack keeps a snapshot unless told otherwise.
const RETENTION_DAYS: u32 = 90;

/// Counts the changes of an embedded table every two seconds, for as long as it exists.
#[derive(Debug)]
pub(crate) struct UsageCounter(EmbeddedMapping<Aggregator<DynamoDb, LoggedDeadLetters, LoggedAlerts>>);

/// Without a bus, an event about a threshold is a line of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedAlerts;

impl Alerts for LoggedAlerts {
    async fn send(&self, events: &[&ThresholdEvent]) -> Result<Vec<Result<(), CallError>>, CallError> {
        let log = |event: &ThresholdEvent| {
            tracing::warn!(event = event.to_json(), "quota threshold crossed");
            Ok(())
        };
        Ok(events.iter().map(|event| log(event)).collect())
    }
}

impl UsageCounter {
    pub(super) async fn start(store: &EmbeddedStore, table: &StackName) -> Result<Self> {
        let client = aws_sdk_dynamodb::Client::from_conf(store.sdk_config().build());
        let table = table.as_str();
        let aggregator = Aggregator::new(
            DynamoDb::new(client, table),
            LoggedDeadLetters,
            WindowKind::ALL.to_vec(),
            RETENTION_DAYS,
        )
        .with_alerts(Some(LoggedAlerts));
        let changes = store.stream(table, "usage").await?;
        Ok(Self(EmbeddedMapping::start(changes, aggregator)?))
    }

    /// Counts up to now. Returns how many changes of the table it has read.
    pub(super) async fn catch_up(&self) -> Result<u64> {
        Ok(self.0.catch_up().await?)
    }
}
