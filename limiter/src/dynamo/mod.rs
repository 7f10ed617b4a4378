//! The few calls of DynamoDB that the store makes, each complete: every page, every unprocessed key, retries with
//! jitter inside a time budget.

mod batch;
mod convert;
pub(crate) mod entropy;
pub(crate) mod expression;
pub(crate) mod failure;
mod meter;
mod placeholders;
mod query;
mod send;
pub(crate) mod server_time;
mod transaction;
mod update;

pub(crate) use convert::{SdkItem, from_sdk_item, to_sdk_key, to_sdk_value};
pub use meter::{CapacityMeter, ConsumedCapacity};
pub(crate) use placeholders::Placeholders;
pub(crate) use query::{Filter, Query, RawPage, Sort};
pub(crate) use send::Budget;
pub(crate) use transaction::{MOST_WRITES, Reason, Transacted, Transaction, is_none};
pub(crate) use update::Update;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use tokio::time::Instant;
use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{AttributeValue, Item, StackName};

use crate::Result;
use crate::dynamo::entropy::Entropy;

/// One table, and how patiently to talk to it.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) client: Client,
    pub(crate) name: StackName,
    /// Region, endpoint or file, for messages.
    pub(crate) place: String,
    pub(crate) entropy: Arc<Entropy>,
    /// How long an operation that is not an acquire may take in all.
    pub(crate) budget: Duration,
    /// How long one attempt of it may take.
    pub(crate) attempt: Duration,
    /// When everything must be over, if the calls are parts of one operation.
    pub(crate) deadline: Option<Instant>,
}

impl Table {
    /// The time that one call has, starting now, or what is left to the operation that it is part of.
    pub(crate) fn budget(&self) -> Budget {
        match self.deadline {
            Some(deadline) => Budget::until(deadline, self.budget, self.attempt),
            None => Budget::starting_now(self.budget, self.attempt),
        }
    }

    /// The item with this key.
    pub(crate) async fn get(&self, key: &Key, consistent: bool) -> Result<Option<Item>> {
        let answer = self
            .send("GetItem", self.budget(), || {
                self.client
                    .get_item()
                    .table_name(self.name.as_str())
                    .set_key(Some(convert::to_sdk_key(key)))
                    .consistent_read(consistent)
                    .send()
            })
            .await?;
        answer.item.map(from_sdk_item).transpose()
    }

    /// Writes one item by itself. `Ok(false)` means that the condition did not hold.
    pub(crate) async fn update(&self, update: Update) -> Result<bool> {
        let parts = update.into_parts();
        let sent = self
            .send("UpdateItem", self.budget(), || {
                self.client
                    .update_item()
                    .table_name(self.name.as_str())
                    .set_key(Some(convert::to_sdk_key(&parts.key)))
                    .update_expression(parts.update.clone())
                    .set_condition_expression(parts.condition.clone())
                    .set_expression_attribute_names(parts.names.clone())
                    .set_expression_attribute_values(parts.values.clone())
                    .send()
            })
            .await;
        match sent {
            Ok(_) => Ok(true),
            Err(refusal) if refusal.condition_failed() => Ok(false),
            Err(refusal) => Err(refusal.into()),
        }
    }
}

/// The key of an item that was read.
pub(crate) fn key_of(item: &Item) -> Option<Key> {
    let text = |attribute: &str| match item.get(attribute) {
        Some(AttributeValue::S(text)) => Some(text.clone()),
        _ => None,
    };
    Some(Key {
        pk: text("PK")?,
        sk: text("SK")?,
    })
}
