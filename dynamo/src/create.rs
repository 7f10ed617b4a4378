//! Creating the table where no stack does: in the process and on local endpoints.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ScalarAttributeType, TableStatus, TimeToLiveSpecification,
};
use zae_limiter_schema::table::{KeyDefinition, TABLE};

use crate::{CallError, Result, Table};

impl Table {
    /// True once the table exists and is ready. Waits while it is being created.
    pub async fn exists(&self) -> Result<bool> {
        const OPERATION: &str = "DescribeTable";
        let budget = self.budget();
        let mut retries = 0;
        loop {
            let described = self
                .send(OPERATION, budget, || {
                    self.client.describe_table().table_name(self.name.as_str()).send()
                })
                .await;
            let status = match described {
                Ok(response) => response.table.and_then(|table| table.table_status),
                Err(error) if error.cause() == Some(&CallError::TableMissing) => return Ok(false),
                Err(error) => return Err(error),
            };
            if status != Some(TableStatus::Creating) {
                return Ok(true);
            }
            retries += 1;
            if !budget.pause(&self.entropy, retries).await {
                let text = "the table is still being created".to_owned();
                return Err(self.failed(OPERATION, CallError::Unavailable(text)));
            }
        }
    }

    /// Creates the table with its indexes, unless it exists.
    pub async fn create(&self) -> Result<()> {
        let malformed = |error: BuildError| self.malformed_request("CreateTable", &error);
        let request = request(self).map_err(malformed)?;
        let created = self
            .send("CreateTable", self.budget(), || request.clone().send())
            .await;
        // Several processes may have tried at the same time, or the response was lost: the table exists in spite of the error.
        if !self.exists().await? {
            created?;
        }
        self.expire_items().await.map_err(malformed)
    }

    /// Not every local endpoint supports time to live, and nothing depends on it there.
    async fn expire_items(&self) -> Result<(), BuildError> {
        let ttl = TimeToLiveSpecification::builder()
            .enabled(true)
            .attribute_name(TABLE.time_to_live)
            .build()?;
        let request = self
            .client
            .update_time_to_live()
            .table_name(self.name.as_str())
            .time_to_live_specification(ttl);
        let sent = self.send("UpdateTimeToLive", self.budget(), || request.clone().send());
        if let Err(error) = sent.await {
            tracing::debug!(%error, "time to live is not enabled");
        }
        Ok(())
    }
}

/// Without the stream: only the functions of a stack read it.
fn request(table: &Table) -> Result<CreateTableFluentBuilder, BuildError> {
    let attributes = TABLE
        .key_attributes()
        .map(|name| {
            AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(ScalarAttributeType::S)
                .build()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let indexes = TABLE
        .indexes
        .into_iter()
        .map(|index| {
            let projection = Projection::builder().projection_type(index.projection.as_str().into());
            GlobalSecondaryIndex::builder()
                .index_name(index.name)
                .set_key_schema(Some(key_schema(index.key)?))
                .projection(projection.build())
                .build()
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(table
        .client
        .create_table()
        .table_name(table.name.as_str())
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key_schema(TABLE.key)?))
        .set_attribute_definitions(Some(attributes))
        .set_global_secondary_indexes(Some(indexes)))
}

fn key_schema(key: KeyDefinition) -> Result<Vec<KeySchemaElement>, BuildError> {
    [(key.partition, KeyType::Hash), (key.sort, KeyType::Range)]
        .into_iter()
        .map(|(name, kind)| {
            KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
        })
        .collect()
}

#[cfg(test)]
mod tests;
