//! Snapshots on DynamoDB.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::ReturnValue;
use zae_limiter_dynamo::{Update, Updated, update_once};
use zae_limiter_function::CallError;

use crate::{Progress, SnapshotUpdate, Table, ThresholdMark, UpdateOutcome};

/// A table on DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoDb {
    client: Client,
    table: String,
}

impl DynamoDb {
    /// The table of that name.
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self {
            client,
            table: table.into(),
        }
    }
}

impl Table for DynamoDb {
    async fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        let sent = update_once(&self.client, &self.table, Update::from(update), ReturnValue::None).await?;
        Ok(match sent {
            Updated::Done(_) => UpdateOutcome::Applied,
            Updated::ConditionFailed(snapshot) => {
                let text = |name: &str| Some(snapshot.as_ref()?.get(name)?.as_s().ok()?.as_str());
                UpdateOutcome::Refused(Progress::from_attributes(text))
            }
        })
    }

    async fn mark(&self, mark: &ThresholdMark) -> Result<bool, CallError> {
        let sent = update_once(&self.client, &self.table, Update::from(mark), ReturnValue::None).await?;
        Ok(matches!(sent, Updated::Done(_)))
    }
}
