//! Reading and deleting many items at once. Keys that DynamoDB leaves unprocessed are sent again: they never count as
//! absent or done.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{DeleteRequest, KeysAndAttributes, WriteRequest};
use zae_limiter_schema::Item;
use zae_limiter_schema::keys::Key;

use crate::{Budget, CallError, Error, Result, SdkItem, Table, from_sdk_item, key_of, to_sdk_key};

/// DynamoDB's limits.
const MAX_READS: usize = 100;
const MAX_DELETES: usize = 25;

impl Table {
    /// The items that exist, by key.
    pub async fn batch_get(
        &self,
        keys: impl IntoIterator<Item = Key>,
        consistent: bool,
    ) -> Result<HashMap<Key, Item>> {
        let (found, _) = self.batch_get_partly(keys, &[], consistent).await?;
        Ok(found)
    }

    /// The items that exist, by key, and the optional keys that were left unread, with the reason. Optional keys that
    /// DynamoDB leaves unprocessed are not requested again once all others are read.
    pub async fn batch_get_partly(
        &self,
        keys: impl IntoIterator<Item = Key>,
        optional: &[Key],
        consistent: bool,
    ) -> Result<(HashMap<Key, Item>, HashMap<Key, Error>)> {
        let budget = self.budget();
        let keys: Vec<Key> = keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let (mut found, mut unread) = (HashMap::with_capacity(keys.len()), HashMap::new());
        for chunk in keys.chunks(MAX_READS) {
            let mut wanted: Vec<Key> = chunk.to_vec();
            let mut attempts = 0;
            while !wanted.is_empty() {
                let (items, unprocessed) = self.batch_get_once(&wanted, consistent, budget).await?;
                found.extend(
                    items
                        .into_iter()
                        .filter_map(|item| key_of(&item).map(|key| (key, item))),
                );
                wanted.retain(|key| unprocessed.contains(&to_sdk_key(key)));
                attempts += 1;
                if wanted.iter().all(|key| optional.contains(key)) {
                    let error = self.left_over("BatchGetItem", wanted.len());
                    unread.extend(wanted.drain(..).map(|key| (key, error.clone())));
                } else if !budget.pause(&self.entropy, attempts).await {
                    return Err(self.left_over("BatchGetItem", wanted.len()));
                }
            }
        }
        Ok((found, unread))
    }

    async fn batch_get_once(
        &self,
        keys: &[Key],
        consistent: bool,
        budget: Budget,
    ) -> Result<(Vec<Item>, Vec<SdkItem>)> {
        let table = self.name.as_str();
        let wanted = KeysAndAttributes::builder()
            .set_keys(Some(keys.iter().map(to_sdk_key).collect()))
            .consistent_read(consistent)
            .build()
            .map_err(|error| self.malformed_request("BatchGetItem", &error))?;
        let response = self
            .send("BatchGetItem", budget, || {
                self.client
                    .batch_get_item()
                    .request_items(table, wanted.clone())
                    .send()
            })
            .await?;
        let items = response
            .responses
            .unwrap_or_default()
            .remove(table)
            .unwrap_or_default();
        let unprocessed = response
            .unprocessed_keys
            .unwrap_or_default()
            .remove(table)
            .map_or(vec![], |left| left.keys);
        Ok((
            items.into_iter().map(from_sdk_item).collect::<Result<_>>()?,
            unprocessed,
        ))
    }

    /// Deletes items that may or may not be there.
    pub async fn batch_delete(&self, keys: &[Key]) -> Result<()> {
        let table = self.name.as_str();
        for chunk in keys.chunks(MAX_DELETES) {
            let budget = self.budget();
            let mut wanted = chunk
                .iter()
                .map(|key| {
                    let delete = DeleteRequest::builder().set_key(Some(to_sdk_key(key))).build()?;
                    Ok(WriteRequest::builder().delete_request(delete).build())
                })
                .collect::<Result<Vec<_>, BuildError>>()
                .map_err(|error| self.malformed_request("BatchWriteItem", &error))?;
            let mut attempts = 0;
            while !wanted.is_empty() {
                let response = self
                    .send("BatchWriteItem", budget, || {
                        self.client
                            .batch_write_item()
                            .request_items(table, wanted.clone())
                            .send()
                    })
                    .await?;
                wanted = response
                    .unprocessed_items
                    .unwrap_or_default()
                    .remove(table)
                    .unwrap_or_default();
                attempts += 1;
                if !wanted.is_empty() && !budget.pause(&self.entropy, attempts).await {
                    return Err(self.left_over("BatchWriteItem", wanted.len()));
                }
            }
        }
        Ok(())
    }

    fn left_over(&self, operation: &'static str, count: usize) -> Error {
        let text = format!("{count} keys stayed unprocessed");
        self.failed(operation, CallError::Throttled(text))
    }

    pub(crate) fn malformed_request(&self, operation: &'static str, error: &BuildError) -> Error {
        self.failed(operation, CallError::Invalid(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
