//! Sending bucket writes. Every acquire that memory does not decide needs one, so they take the shortest way through the SDK:
//! one buffer out, one pass over the response.

mod direct;
mod json;
mod request;
mod response;

pub use direct::with_direct_writes;
pub use request::BucketRequest;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use zae_limiter_schema::bucket::{Attributes, BucketWrite};

use crate::convert::bucket_attributes;
use crate::{CallError, Result, Table, Updated};

/// Sends bucket writes to a table.
#[derive(Debug, Clone)]
pub struct BucketWriter {
    client: Client,
    table: Table,
}

impl BucketWriter {
    /// For this table. It shares the table's connections if its client has a configuration
    /// [with direct writes](with_direct_writes).
    pub fn new(table: Table) -> Self {
        Self {
            client: direct::client_for(&table.client),
            table,
        }
    }

    /// Sends a bucket write once, without a timeout, and returns the bucket. For writes that must not be carried out twice.
    pub async fn write(&self, write: &BucketWrite) -> Result<Updated<Attributes>> {
        self.send(BucketRequest::new(self.table.name.as_str(), write))
            .await
    }

    async fn send(&self, request: BucketRequest) -> Result<Updated<Attributes>> {
        let sent = direct::send(&self.client, self.table.name.as_str(), request.into_body()).await;
        let cause = match sent {
            Ok(body) => match response::attributes(&body) {
                Ok(bucket) => return Ok(Updated::Done(bucket)),
                Err(error) => CallError::Unavailable(format!("unreadable answer: {error}")),
            },
            Err(error) => match CallError::from(&error) {
                CallError::ConditionFailed => {
                    let item = match error.into_service_error() {
                        UpdateItemError::ConditionalCheckFailedException(failed) => failed.item,
                        _ => None,
                    };
                    let item = item.filter(|item| !item.is_empty());
                    return Ok(Updated::ConditionFailed(item.map(bucket_attributes).transpose()?));
                }
                cause => cause,
            },
        };
        Err(self.table.failed("UpdateItem", cause))
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
