//! Reading and writing buckets: the calls that every acquire is made of.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use zae_limiter_schema::bucket::{Attributes, BucketKey, BucketWrite};
use zae_limiter_schema::keys;

use super::table_store::TableStore;
use crate::Result;
use crate::dynamo::expression::compile;
use crate::dynamo::failure::{Failure, classify};
use crate::dynamo::{Budget, from_sdk_item, to_sdk_key};
use crate::store::WriteOutcome;

impl TableStore {
    pub(super) async fn read(&self, key: &BucketKey, consistent: bool) -> Result<Option<Attributes>> {
        let key = to_sdk_key(&key.key());
        let request = || {
            let request = self.table.client.get_item().table_name(self.table.name.as_str());
            request
                .set_key(Some(key.clone()))
                .consistent_read(consistent)
                .send()
        };
        let budget = Budget::starting_now(self.time_budget, self.time_budget / 2);
        let answer = self.table.send("GetItem", budget, request).await?;
        let item = answer.item.map(from_sdk_item).transpose()?;
        Ok(item.as_ref().map(Attributes::from_item))
    }

    /// Asks for the version record, whatever it says.
    pub(super) async fn ask(&self) -> Result<()> {
        let key = to_sdk_key(&keys::version());
        let request = || {
            let request = self.table.client.get_item().table_name(self.table.name.as_str());
            request.set_key(Some(key.clone())).send()
        };
        let budget = Budget::starting_now(self.time_budget, self.time_budget / 2);
        self.table.send("GetItem", budget, request).await?;
        Ok(())
    }

    /// Sends the write once. Whether it is sent again is for the bucket's lane to decide.
    pub(super) async fn write(&self, write: &BucketWrite) -> WriteOutcome {
        let compiled = compile(&write.statement());
        let request = self
            .table
            .client
            .update_item()
            .table_name(self.table.name.as_str())
            .set_key(Some(to_sdk_key(&write.key.key())))
            .update_expression(compiled.update)
            .set_condition_expression(compiled.condition)
            .set_expression_attribute_names(Some(compiled.names))
            .set_expression_attribute_values(Some(compiled.values))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.send().await {
            Ok(answer) => attributes(answer.attributes).map_or_else(WriteOutcome::Failed, |found| {
                WriteOutcome::Done(found.unwrap_or_default())
            }),
            Err(error) => self.not_done(error),
        }
    }

    fn not_done(&self, error: SdkError<UpdateItemError, HttpResponse>) -> WriteOutcome {
        match classify(&error) {
            Failure::ConditionFailed => {
                let item = match error.into_service_error() {
                    UpdateItemError::ConditionalCheckFailedException(failed) => failed.item,
                    _ => None,
                };
                attributes(item).map_or_else(WriteOutcome::Failed, WriteOutcome::Refused)
            }
            Failure::Throttled(reason) => WriteOutcome::Throttled(reason),
            Failure::Conflict(reason) => WriteOutcome::Conflict(reason),
            Failure::Held(path) => {
                WriteOutcome::Throttled(format!("another process holds {}", path.display()))
            }
            Failure::Unavailable(reason) => WriteOutcome::Lost(reason),
            failure @ (Failure::Denied(_)
            | Failure::MissingTable
            | Failure::Invalid(_)
            | Failure::Canceled(_)) => {
                let table = self.table.name.as_str();
                WriteOutcome::Failed(failure.into_error(
                    "UpdateItem",
                    table,
                    &self.table.place,
                    self.time_budget,
                ))
            }
        }
    }
}

fn attributes(
    item: Option<std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>>,
) -> Result<Option<Attributes>> {
    let item = item
        .filter(|item| !item.is_empty())
        .map(from_sdk_item)
        .transpose()?;
    Ok(item.as_ref().map(Attributes::from_item))
}
