//! Several writes that happen together or not at all, exactly once, whatever answer is lost.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{AttributeValue, Item};

use super::convert::{from_sdk_item, to_sdk_item, to_sdk_key};
use super::{Placeholders, Table, Update};
use crate::dynamo::failure::Failure;
use crate::{Error, Result};

/// DynamoDB's limit.
pub(crate) const MOST_WRITES: usize = 100;

/// Writes in the order in which their reasons come back.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    table: &'a Table,
    items: Vec<Result<TransactWriteItem, BuildError>>,
}

/// How a transaction ended.
#[derive(Debug)]
pub(crate) enum Transacted {
    /// All writes were made.
    Done,
    /// None was made. One reason per write, in order.
    Refused(Vec<Reason>),
}

/// Why one write of a cancelled transaction stopped it, or did not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reason {
    /// This one was fine.
    Fine,
    /// Its condition was false; the item as it was, if there is one.
    ConditionFailed(Option<Item>),
}

impl Reason {
    pub(crate) fn failed(&self) -> bool {
        matches!(self, Self::ConditionFailed(_))
    }
}

impl<'a> Transaction<'a> {
    pub(crate) fn on(table: &'a Table) -> Self {
        Self { table, items: vec![] }
    }

    fn push(&mut self, item: Result<TransactWriteItem, BuildError>) -> &mut Self {
        self.items.push(item);
        self
    }

    /// Writes the item where there is none.
    pub(crate) fn put_new(&mut self, item: Item) -> &mut Self {
        let mut placeholders = Placeholders::default();
        let condition = format!("attribute_not_exists({})", placeholders.name("PK"));
        let (names, _) = placeholders.into_maps();
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

    pub(crate) fn update(&mut self, update: Update) -> &mut Self {
        let update = update
            .into_sdk(self.table.name.as_str())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map(|update| TransactWriteItem::builder().update(update).build());
        self.push(update)
    }

    /// Deletes an item that must be there.
    pub(crate) fn delete_existing(&mut self, key: &Key) -> &mut Self {
        self.delete_when(key, |p| format!("attribute_exists({})", p.name("PK")))
    }

    pub(crate) fn delete_when(
        &mut self,
        key: &Key,
        condition: impl FnOnce(&mut Placeholders) -> String,
    ) -> &mut Self {
        let mut placeholders = Placeholders::default();
        let condition = condition(&mut placeholders);
        let (names, values) = placeholders.into_maps();
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
    pub(crate) fn check(
        &mut self,
        key: &Key,
        condition: impl FnOnce(&mut Placeholders) -> String,
    ) -> &mut Self {
        let mut placeholders = Placeholders::default();
        let condition = condition(&mut placeholders);
        let (names, values) = placeholders.into_maps();
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

    /// Sends it. The idempotency token makes a second sending of the same transaction harmless, so a lost answer is
    /// answered by sending again.
    pub(crate) async fn commit(self) -> Result<Transacted> {
        const OPERATION: &str = "TransactWriteItems";
        let table = self.table;
        let failed = |failure: Failure, within| {
            failure.into_error(OPERATION, table.name.as_str(), &table.place, within)
        };
        let items: Vec<_> = self
            .items
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| failed(Failure::Invalid(error.to_string()), table.budget))?;
        let token = table.entropy.text(32);
        let budget = table.budget();
        let mut attempts = 0;
        loop {
            let sent = table
                .send(OPERATION, budget, || {
                    table
                        .client
                        .transact_write_items()
                        .set_transact_items(Some(items.clone()))
                        .client_request_token(token.clone())
                        .send()
                })
                .await;
            let Err(refusal) = sent else {
                return Ok(Transacted::Done);
            };
            let Some(TransactWriteItemsError::TransactionCanceledException(canceled)) = refusal.answer()
            else {
                return Err(refusal.into());
            };
            let reasons = canceled.cancellation_reasons();
            match verdict(reasons)? {
                Verdict::Refused(reasons) => return Ok(Transacted::Refused(reasons)),
                Verdict::Invalid(text) => return Err(failed(Failure::Invalid(text), budget.total())),
                Verdict::Again(text) => {
                    attempts += 1;
                    if !budget.pause(table, attempts).await {
                        return Err(failed(Failure::Conflict(text), budget.total()));
                    }
                }
            }
        }
    }
}

enum Verdict {
    Refused(Vec<Reason>),
    Again(String),
    Invalid(String),
}

/// A false condition decides, even beside a conflict: sending again could not make it true. Conflicts and throttling
/// alone say nothing about the conditions.
fn verdict(reasons: &[CancellationReason]) -> Result<Verdict> {
    let code = |reason: &CancellationReason| reason.code().unwrap_or("None").to_owned();
    let text = || reasons.iter().map(code).collect::<Vec<_>>().join(", ");
    if reasons
        .iter()
        .any(|reason| code(reason) == "ConditionalCheckFailed")
    {
        let refused = reasons.iter().map(|reason| {
            if code(reason) != "ConditionalCheckFailed" {
                return Ok(Reason::Fine);
            }
            Ok(Reason::ConditionFailed(
                reason.item().cloned().map(from_sdk_item).transpose()?,
            ))
        });
        return Ok(Verdict::Refused(refused.collect::<Result<_, Error>>()?));
    }
    let transient = [
        "TransactionConflict",
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
    ];
    if reasons
        .iter()
        .any(|reason| transient.contains(&code(reason).as_str()))
    {
        return Ok(Verdict::Again(text()));
    }
    let messages: Vec<_> = reasons.iter().filter_map(CancellationReason::message).collect();
    Ok(Verdict::Invalid(format!(
        "cancelled [{}] {}",
        text(),
        messages.join("; ")
    )))
}

/// NULL or absent: how the table says that there is none.
pub(crate) fn is_none(placeholders: &mut Placeholders, attribute: &str) -> String {
    let name = placeholders.name(attribute);
    let null = placeholders.value(AttributeValue::S("NULL".to_owned()));
    format!("(attribute_not_exists({name}) OR attribute_type({name}, {null}))")
}
