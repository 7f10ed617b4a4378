//! Reading and deleting many items at once. What DynamoDB leaves unprocessed is asked for again: it is never taken
//! for "absent" or "done".

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{DeleteRequest, KeysAndAttributes, WriteRequest};
use zae_limiter_schema::Item;
use zae_limiter_schema::keys::Key;

use super::convert::{SdkItem, from_sdk_item, to_sdk_key};
use super::{Budget, Table, key_of};
use crate::Result;
use crate::dynamo::failure::Failure;

/// DynamoDB's limits.
const MOST_READS: usize = 100;
const MOST_DELETES: usize = 25;

impl Table {
    /// The items that exist, by key.
    pub(crate) async fn batch_get(
        &self,
        keys: impl IntoIterator<Item = Key>,
        consistent: bool,
        budget: Budget,
    ) -> Result<HashMap<Key, Item>> {
        let keys: Vec<Key> = keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let mut found = HashMap::with_capacity(keys.len());
        for chunk in keys.chunks(MOST_READS) {
            let mut wanted: Vec<SdkItem> = chunk.iter().map(to_sdk_key).collect();
            let mut attempts = 0;
            while !wanted.is_empty() {
                let (items, unprocessed) = self.batch_get_once(wanted, consistent, budget).await?;
                found.extend(
                    items
                        .into_iter()
                        .filter_map(|item| key_of(&item).map(|key| (key, item))),
                );
                wanted = unprocessed;
                attempts += 1;
                if !wanted.is_empty() && !budget.pause(self, attempts).await {
                    return Err(self.left_over("BatchGetItem", wanted.len(), budget));
                }
            }
        }
        Ok(found)
    }

    async fn batch_get_once(
        &self,
        keys: Vec<SdkItem>,
        consistent: bool,
        budget: Budget,
    ) -> Result<(Vec<Item>, Vec<SdkItem>)> {
        let table = self.name.as_str();
        let wanted = KeysAndAttributes::builder()
            .set_keys(Some(keys))
            .consistent_read(consistent)
            .build()
            .map_err(|error| self.malformed_request("BatchGetItem", &error.to_string()))?;
        let answer = self
            .send("BatchGetItem", budget, || {
                self.client
                    .batch_get_item()
                    .request_items(table, wanted.clone())
                    .send()
            })
            .await?;
        let items = answer
            .responses
            .unwrap_or_default()
            .remove(table)
            .unwrap_or_default();
        let unprocessed = answer
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
    pub(crate) async fn batch_delete(&self, keys: &[Key]) -> Result<()> {
        let table = self.name.as_str();
        for chunk in keys.chunks(MOST_DELETES) {
            let budget = self.budget();
            let mut wanted = chunk
                .iter()
                .map(|key| {
                    let delete = DeleteRequest::builder().set_key(Some(to_sdk_key(key))).build()?;
                    Ok(WriteRequest::builder().delete_request(delete).build())
                })
                .collect::<std::result::Result<Vec<_>, aws_sdk_dynamodb::error::BuildError>>()
                .map_err(|error| self.malformed_request("BatchWriteItem", &error.to_string()))?;
            let mut attempts = 0;
            while !wanted.is_empty() {
                let answer = self
                    .send("BatchWriteItem", budget, || {
                        self.client
                            .batch_write_item()
                            .request_items(table, wanted.clone())
                            .send()
                    })
                    .await?;
                wanted = answer
                    .unprocessed_items
                    .unwrap_or_default()
                    .remove(table)
                    .unwrap_or_default();
                attempts += 1;
                if !wanted.is_empty() && !budget.pause(self, attempts).await {
                    return Err(self.left_over("BatchWriteItem", wanted.len(), budget));
                }
            }
        }
        Ok(())
    }

    fn left_over(&self, operation: &'static str, count: usize, budget: Budget) -> crate::Error {
        Failure::Throttled(format!("{count} keys stayed unprocessed")).into_error(
            operation,
            self.name.as_str(),
            &self.place,
            budget.total(),
        )
    }

    pub(crate) fn malformed_request(&self, operation: &'static str, why: &str) -> crate::Error {
        Failure::Invalid(why.to_owned()).into_error(operation, self.name.as_str(), &self.place, self.budget)
    }
}
