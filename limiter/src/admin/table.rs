//! Making the table where no stack does: in the process and on local endpoints.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ScalarAttributeType, TableStatus, TimeToLiveSpecification,
};
use zae_limiter_schema::keys;
use zae_limiter_schema::table::{KeyDefinition, TABLE};

use crate::dynamo::Table;
use crate::{Error, Repository, Result};

impl Repository {
    /// Makes the table, its indexes and its version record, unless they are there.
    ///
    /// For local endpoints and embedded stores. On AWS the table belongs to a stack.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().create_table(false).await?;
    /// limiter.create_table().await?;
    /// limiter.create_table().await?;
    /// assert!(limiter.version().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub async fn create_table(&self) -> Result<()> {
        let table = &self.inner.table;
        if !exists(table).await? {
            create(table).await?;
            return self.write_version_if_absent().await;
        }
        if table.get(&keys::version(), true).await?.is_none() {
            self.stamp().await?;
        }
        Ok(())
    }
}

/// True once the table is there and ready.
async fn exists(table: &Table) -> Result<bool> {
    let budget = table.budget();
    let mut attempts = 0;
    loop {
        let described = table
            .send("DescribeTable", budget, || {
                table
                    .client
                    .describe_table()
                    .table_name(table.name.as_str())
                    .send()
            })
            .await;
        let status = match described {
            Ok(answer) => answer.table.and_then(|table| table.table_status),
            Err(refusal) => match Error::from(refusal) {
                Error::TableMissing { .. } => return Ok(false),
                other => return Err(other),
            },
        };
        if status != Some(TableStatus::Creating) {
            return Ok(true);
        }
        attempts += 1;
        if !budget.pause(table, attempts).await {
            return Err(Error::Unavailable {
                operation: "DescribeTable",
                table: table.name.to_string(),
                reason: "the table is still being created".to_owned(),
                within: budget.total(),
            });
        }
    }
}

async fn create(table: &Table) -> Result<()> {
    let malformed = |error: BuildError| table.malformed_request("CreateTable", &error.to_string());
    let request = request(table).map_err(malformed)?;
    let created = table
        .send("CreateTable", table.budget(), || request.clone().send())
        .await;
    let is_there = exists(table).await?;
    match created {
        // Several processes may have tried at once, or the answer was lost: the table is there, whatever the error says.
        Err(refusal) if !is_there => return Err(refusal.into()),
        _ => {}
    }
    expire_items(table).await.map_err(malformed)
}

/// Not every local endpoint knows time to live, and nothing depends on it there.
async fn expire_items(table: &Table) -> Result<(), BuildError> {
    let ttl = TimeToLiveSpecification::builder()
        .enabled(true)
        .attribute_name(TABLE.time_to_live)
        .build()?;
    let request = || {
        table
            .client
            .update_time_to_live()
            .table_name(table.name.as_str())
            .time_to_live_specification(ttl.clone())
            .send()
    };
    if let Err(refusal) = table.send("UpdateTimeToLive", table.budget(), request).await {
        tracing::debug!(error = %Error::from(refusal), "time to live is not on");
    }
    Ok(())
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
