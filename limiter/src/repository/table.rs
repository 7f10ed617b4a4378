//! Making the table where no stack does: in the process and on local endpoints.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType, TableStatus, TimeToLiveSpecification,
};
use zae_limiter_schema::keys::{self, GSI1, GSI2, GSI3, attribute};

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
        .attribute_name(attribute::TTL)
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

fn request(table: &Table) -> Result<CreateTableFluentBuilder, BuildError> {
    let keys = [
        (attribute::PK, attribute::SK),
        (attribute::GSI1PK, attribute::GSI1SK),
        (attribute::GSI2PK, attribute::GSI2SK),
        (attribute::GSI3PK, attribute::GSI3SK),
    ];
    let attributes = keys
        .iter()
        .flat_map(|(hash, range)| [hash, range])
        .map(|name| {
            AttributeDefinition::builder()
                .attribute_name(*name)
                .attribute_type(ScalarAttributeType::S)
                .build()
        })
        .collect::<Result<Vec<_>, _>>()?;
    // Keys only, so that a bucket's write does not pay for an index as well.
    let indexes = [
        (GSI1, ProjectionType::All),
        (GSI2, ProjectionType::KeysOnly),
        (GSI3, ProjectionType::KeysOnly),
    ]
    .into_iter()
    .zip(&keys[1..])
    .map(|((name, projection), key)| {
        GlobalSecondaryIndex::builder()
            .index_name(name)
            .set_key_schema(Some(key_schema(*key)?))
            .projection(Projection::builder().projection_type(projection).build())
            .build()
    })
    .collect::<Result<Vec<_>, _>>()?;
    Ok(table
        .client
        .create_table()
        .table_name(table.name.as_str())
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(key_schema(keys[0])?))
        .set_attribute_definitions(Some(attributes))
        .set_global_secondary_indexes(Some(indexes)))
}

fn key_schema((hash, range): (&str, &str)) -> Result<Vec<KeySchemaElement>, BuildError> {
    [(hash, KeyType::Hash), (range, KeyType::Range)]
        .into_iter()
        .map(|(name, kind)| {
            KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
        })
        .collect()
}
