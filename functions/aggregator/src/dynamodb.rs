//! Snapshots on DynamoDB.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use zae_limiter_function::CallFailure;
use zae_limiter_schema::keys::attribute;

use crate::{Expression, Progress, SnapshotUpdate, Table, UpdateOutcome, Value};

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
    async fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallFailure> {
        let expression = Expression::from(update);
        let sent = self
            .client
            .update_item()
            .table_name(&self.table)
            .key(attribute::PK, AttributeValue::S(update.key.pk.clone()))
            .key(attribute::SK, AttributeValue::S(update.key.sk.clone()))
            .update_expression(expression.update)
            .condition_expression(expression.condition)
            .set_expression_attribute_names(Some(expression.names.into_iter().collect()))
            .set_expression_attribute_values(Some(values(expression.values)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match sent {
            Ok(_) => Ok(UpdateOutcome::Applied),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refusal)) => {
                    let text = |name: &str| Some(refusal.item()?.get(name)?.as_s().ok()?.as_str());
                    Ok(UpdateOutcome::Refused(Progress::from_attributes(text)))
                }
                _ => Err(CallFailure::of(&error)),
            },
        }
    }
}

fn values(values: Vec<(String, Value)>) -> HashMap<String, AttributeValue> {
    let convert = |value| match value {
        Value::Text(text) => AttributeValue::S(text),
        Value::Number(number) => AttributeValue::N(number.to_string()),
    };
    values
        .into_iter()
        .map(|(name, value)| (name, convert(value)))
        .collect()
}
