//! One table, and calls for single items.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use tokio::time::Instant;
use zae_limiter_schema::keys::{Key, attribute};
use zae_limiter_schema::{AttributeValue, Item, StackName};

use crate::convert::into_sdk_key;
use crate::{
    Budget, CallError, Entropy, Error, Placeholders, Result, SdkItem, SharedCredentials, Update, UpdateParts,
    from_sdk_item, to_sdk_item, to_sdk_key,
};

/// The operation of errors about credentials, before there is a request.
const LOADING: &str = "loading credentials";

/// One table, and how long its calls may take.
#[derive(Debug, Clone)]
pub struct Table {
    /// The SDK's client. Its own retries must be off.
    pub client: Client,
    /// The name of the table, which is the name of its stack.
    pub name: StackName,
    /// Region, endpoint or file, for messages.
    pub place: String,
    /// Where jitter and idempotency tokens come from.
    pub entropy: Arc<Entropy>,
    /// How long a call may take in all, retries included.
    pub budget: Duration,
    /// How long one attempt may take.
    pub attempt: Duration,
    /// When everything must be over, if the calls are parts of one operation.
    pub deadline: Option<Instant>,
    /// The client's credentials. Waiting for them is part of the budget and not of an attempt.
    pub credentials: Option<SharedCredentials>,
}

/// What became of a write that was sent once.
#[derive(Debug, Clone, PartialEq)]
pub enum Updated<T = Item> {
    /// It happened; this is the item now.
    Done(T),
    /// Its condition was false; this is the item, if there is one.
    ConditionFailed(Option<T>),
}

/// Sends a write once, without a timeout. For writes that must not be carried out twice, and for those that are retried
/// elsewhere. What the item is after the write is as much as `returned` asks for.
pub async fn update_once(
    client: &Client,
    table: &str,
    update: Update,
    returned: ReturnValue,
) -> Result<Updated<SdkItem>, CallError> {
    let sent = update_request(client, table, update.into_parts())
        .return_values(returned)
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .send()
        .await;
    match sent {
        Ok(response) => Ok(Updated::Done(response.attributes.unwrap_or_default())),
        Err(error) => match CallError::from(&error) {
            CallError::ConditionFailed => Ok(Updated::ConditionFailed(match error.into_service_error() {
                UpdateItemError::ConditionalCheckFailedException(failed) => {
                    failed.item.filter(|item| !item.is_empty())
                }
                _ => None,
            })),
            cause => Err(cause),
        },
    }
}

fn update_request(client: &Client, table: &str, parts: UpdateParts) -> UpdateItemFluentBuilder {
    client
        .update_item()
        .table_name(table)
        .set_key(Some(into_sdk_key(parts.key)))
        .update_expression(parts.update)
        .set_condition_expression(parts.condition)
        .set_expression_attribute_names(parts.names)
        .set_expression_attribute_values(parts.values)
}

impl Table {
    /// The time that one call has, starting now, or what is left of the operation that it is part of.
    pub fn budget(&self) -> Budget {
        match self.deadline {
            Some(deadline) => Budget::until(deadline, self.attempt),
            None => Budget::starting_now(self.budget, self.attempt),
        }
    }

    /// The item with this key.
    pub async fn get(&self, key: &Key, consistent: bool) -> Result<Option<Item>> {
        let response = self
            .send("GetItem", self.budget(), || {
                self.client
                    .get_item()
                    .table_name(self.name.as_str())
                    .set_key(Some(to_sdk_key(key)))
                    .consistent_read(consistent)
                    .send()
            })
            .await?;
        response.item.map(from_sdk_item).transpose()
    }

    /// The item with this key, asked for once and without a timeout. For finding out whether the table responds.
    pub async fn get_once(&self, key: &Key) -> Result<Option<Item>> {
        let request = self.client.get_item().table_name(self.name.as_str());
        match request.set_key(Some(to_sdk_key(key))).send().await {
            Ok(response) => response.item.map(from_sdk_item).transpose(),
            Err(error) => Err(self.failed("GetItem", CallError::from(&error))),
        }
    }

    /// Writes one item, with retries. `Ok(false)` means that the condition was false.
    pub async fn update(&self, update: Update) -> Result<bool> {
        let request = update_request(&self.client, self.name.as_str(), update.into_parts());
        let sent = self.send("UpdateItem", self.budget(), || request.clone().send());
        match sent.await {
            Ok(_) => Ok(true),
            Err(error) if error.cause() == Some(&CallError::ConditionFailed) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces one item, with retries. `Ok(false)` means that the condition was false. After a lost response that may be
    /// because an attempt of this call has written the item.
    pub async fn put(&self, item: Item, condition: impl FnOnce(&mut Placeholders) -> String) -> Result<bool> {
        let (condition, names, values) = Placeholders::expression(condition);
        let request = self
            .client
            .put_item()
            .table_name(self.name.as_str())
            .set_item(Some(to_sdk_item(item)))
            .condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values);
        let sent = self.send("PutItem", self.budget(), || request.clone().send());
        match sent.await {
            Ok(_) => Ok(true),
            Err(error) if error.cause() == Some(&CallError::ConditionFailed) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a write once, without a timeout, and returns the item. For writes that must not be carried out twice.
    pub async fn update_once(&self, update: Update) -> Result<Updated> {
        let sent = update_once(&self.client, self.name.as_str(), update, ReturnValue::AllNew).await;
        Ok(match sent.map_err(|cause| self.failed("UpdateItem", cause))? {
            Updated::Done(item) => Updated::Done(from_sdk_item(item)?),
            Updated::ConditionFailed(item) => Updated::ConditionFailed(item.map(from_sdk_item).transpose()?),
        })
    }

    /// Sends the request until it succeeds, cannot succeed, or the budget is used up.
    pub(crate) async fn send<T, E, Sent>(
        &self,
        operation: &'static str,
        budget: Budget,
        mut request: impl FnMut() -> Sent,
    ) -> Result<T>
    where
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        Sent: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    {
        let call = || {
            let sent = request();
            async { sent.await.map_err(|error| CallError::from(&error)) }
        };
        let sent = match self.has_credentials(&budget).await {
            Ok(()) => budget.retry(&self.entropy, call).await,
            Err(cause) => Err(cause),
        };
        sent.map_err(|cause| self.failed(operation, cause))
    }

    /// Waits until requests can be signed. For requests that the caller sends once and times itself.
    pub async fn ready(&self) -> Result<()> {
        let ready = self.has_credentials(&self.budget()).await;
        ready.map_err(|cause| self.failed(LOADING, cause))
    }

    /// Why no request can be signed, if credentials were asked for and there are none.
    pub fn denial(&self) -> Option<Error> {
        let cause = self.credentials.as_ref()?.denial()?;
        Some(self.failed(LOADING, cause))
    }

    /// The same for the request of an operation.
    pub(crate) async fn has_credentials(&self, budget: &Budget) -> Result<(), CallError> {
        match &self.credentials {
            Some(credentials) => credentials.ready_by(budget.deadline()).await,
            None => Ok(()),
        }
    }

    /// The error of an operation on this table.
    pub(crate) fn failed(&self, operation: &'static str, cause: CallError) -> Error {
        Error::Call {
            operation,
            table: self.name.to_string(),
            place: self.place.clone(),
            within: self.budget,
            cause,
        }
    }
}

/// The key of an item that was read.
pub fn key_of(item: &Item) -> Option<Key> {
    let text = |attribute: &str| match item.get(attribute) {
        Some(AttributeValue::S(text)) => Some(text.clone()),
        _ => None,
    };
    Some(Key {
        pk: text(attribute::PK)?,
        sk: text(attribute::SK)?,
    })
}
