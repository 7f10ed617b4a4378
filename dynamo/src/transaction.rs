//! Several writes that happen together or not at all, exactly once, also if a response is lost.

use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use zae_limiter_schema::keys::{Key, attribute};
use zae_limiter_schema::{AttributeValue, Item};

use crate::{CallError, Placeholders, Result, Table, Update, from_sdk_item, to_sdk_item, to_sdk_key};

/// DynamoDB's limit of writes in one transaction.
pub const MAX_WRITES: usize = 100;
const CONDITION_FAILED: &str = "ConditionalCheckFailed";

/// Writes in the order in which their reasons come back.
#[derive(Debug)]
pub struct Transaction<'a> {
    table: &'a Table,
    items: Vec<Result<TransactWriteItem, BuildError>>,
}

/// How a transaction ended.
#[derive(Debug)]
pub enum Transacted {
    /// All writes were made.
    Done,
    /// None was made. One reason per write, in order.
    Refused(Vec<Reason>),
}

/// Why one write of a canceled transaction stopped it, or did not.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// This one was fine.
    Fine,
    /// Its condition was false; the item as it was, if there is one.
    ConditionFailed(Option<Item>),
}

impl Reason {
    /// True if its condition was false.
    pub fn failed(&self) -> bool {
        matches!(self, Self::ConditionFailed(_))
    }
}

impl<'a> Transaction<'a> {
    /// A transaction without writes.
    pub fn on(table: &'a Table) -> Self {
        Self { table, items: vec![] }
    }

    fn push(&mut self, item: Result<TransactWriteItem, BuildError>) -> &mut Self {
        self.items.push(item);
        self
    }

    /// Writes the item where there is none.
    pub fn put_new(&mut self, item: Item) -> &mut Self {
        let (condition, names, _) =
            Placeholders::expression(|p| format!("attribute_not_exists({})", p.name(attribute::PK)));
        let put = Put::builder()
            .table_name(self.table.name.as_str())
            .set_item(Some(to_sdk_item(item)))
            .condition_expression(condition)
            .set_expression_attribute_names(names)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map(|put| TransactWriteItem::builder().put(put).build());
        self.push(put)
    }

    /// Updates an item.
    pub fn update(&mut self, update: Update) -> &mut Self {
        let update = update
            .into_sdk(self.table.name.as_str())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map(|update| TransactWriteItem::builder().update(update).build());
        self.push(update)
    }

    /// Deletes an item that must be there.
    pub fn delete_existing(&mut self, key: &Key) -> &mut Self {
        self.delete_when(key, |p| format!("attribute_exists({})", p.name(attribute::PK)))
    }

    /// Deletes an item if the condition is true.
    pub fn delete_when(
        &mut self,
        key: &Key,
        condition: impl FnOnce(&mut Placeholders) -> String,
    ) -> &mut Self {
        let (condition, names, values) = Placeholders::expression(condition);
        let delete = Delete::builder()
            .table_name(self.table.name.as_str())
            .set_key(Some(to_sdk_key(key)))
            .condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map(|delete| TransactWriteItem::builder().delete(delete).build());
        self.push(delete)
    }

    /// Requires something of an item that is not written.
    pub fn check(&mut self, key: &Key, condition: impl FnOnce(&mut Placeholders) -> String) -> &mut Self {
        let (condition, names, values) = Placeholders::expression(condition);
        let check = ConditionCheck::builder()
            .table_name(self.table.name.as_str())
            .set_key(Some(to_sdk_key(key)))
            .condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map(|check| TransactWriteItem::builder().condition_check(check).build());
        self.push(check)
    }

    /// Sends it. The idempotency token makes sending the same transaction again harmless, so after a lost
    /// response it is sent again.
    pub async fn commit(self) -> Result<Transacted> {
        const OPERATION: &str = "TransactWriteItems";
        let table = self.table;
        let items: Vec<_> = self
            .items
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| table.malformed_request(OPERATION, &error))?;
        let request = table
            .client
            .transact_write_items()
            .set_transact_items(Some(items))
            .client_request_token(table.entropy.text(32));
        let call = || {
            let sent = request.clone().send();
            async {
                match sent.await {
                    Ok(_) => Ok(None),
                    Err(error) => failed_conditions(&error).map(Some),
                }
            }
        };
        let budget = table.budget();
        let sent = match table.has_credentials(&budget).await {
            Ok(()) => budget.retry(&table.entropy, call).await,
            Err(cause) => Err(cause),
        };
        match sent.map_err(|cause| table.failed(OPERATION, cause))? {
            None => Ok(Transacted::Done),
            Some(reasons) => {
                let reasons = reasons.into_iter().map(Reason::try_from);
                Ok(Transacted::Refused(reasons.collect::<Result<_>>()?))
            }
        }
    }
}

/// The reasons of a transaction that a condition stopped, or the error.
///
/// A false condition decides, even beside a conflict: sending again could not make it true. Conflicts and throttling
/// alone do not show whether the conditions hold.
fn failed_conditions(
    error: &SdkError<TransactWriteItemsError, HttpResponse>,
) -> Result<Vec<CancellationReason>, CallError> {
    let Some(TransactWriteItemsError::TransactionCanceledException(canceled)) = error.as_service_error()
    else {
        return Err(error.into());
    };
    let reasons = canceled.cancellation_reasons();
    let codes: Vec<_> = reasons.iter().map(code).collect();
    if codes.contains(&CONDITION_FAILED) {
        return Ok(reasons.to_vec());
    }
    let text = codes.join(", ");
    let is_transient = |code: &&str| {
        [
            "TransactionConflict",
            "ThrottlingError",
            "ProvisionedThroughputExceeded",
        ]
        .contains(code)
    };
    if codes.iter().any(is_transient) {
        return Err(CallError::Conflict(text));
    }
    let messages: Vec<_> = reasons.iter().filter_map(CancellationReason::message).collect();
    Err(CallError::Canceled(format!(
        "canceled [{text}] {}",
        messages.join("; ")
    )))
}

fn code(reason: &CancellationReason) -> &str {
    reason.code().unwrap_or("None")
}

impl TryFrom<CancellationReason> for Reason {
    type Error = crate::Error;

    fn try_from(reason: CancellationReason) -> Result<Self> {
        if code(&reason) != CONDITION_FAILED {
            return Ok(Self::Fine);
        }
        Ok(Self::ConditionFailed(reason.item.map(from_sdk_item).transpose()?))
    }
}

/// The condition that an attribute is NULL or absent: both mean that there is none.
pub fn is_none(placeholders: &mut Placeholders, attribute: &str) -> String {
    let name = placeholders.name(attribute);
    let null = placeholders.value(AttributeValue::S("NULL".to_owned()));
    format!("(attribute_not_exists({name}) OR attribute_type({name}, {null}))")
}

#[cfg(test)]
mod tests;
