//! What the limiter's calls consume, for those who want to know.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeSerializationInterceptorContextMut,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::{
    batch_get_item, batch_write_item, delete_item, get_item, put_item, query, scan, transact_write_items,
    update_item,
};
use aws_sdk_dynamodb::types::{ConsumedCapacity as SdkCapacity, ReturnConsumedCapacity};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{Error, Input, Output};

/// DynamoDB charges a write whose condition fails by the size of the item that is there, and its answer does not tell.
const FAILED_WRITE: f64 = 1.0;

/// Counts the calls of a limiter to its table, and the capacity that they consume. Clones count together.
///
/// ```
/// use zae_limiter::{Limit, CapacityMeter, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let meter = CapacityMeter::new();
/// let limits = [Limit::per_minute("rpm", 100)?];
/// let limiter = RateLimiter::embedded().default_limits(limits).meter(meter.clone()).await?;
/// limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?.commit().await?;
/// let first = meter.consumed();
/// limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?.commit().await?;
/// let second = meter.consumed();
/// assert_eq!((second.calls - first.calls, second.write_units - first.write_units), (1, 1.0));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct CapacityMeter {
    consumed: Arc<Mutex<ConsumedCapacity>>,
}

/// What was consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct ConsumedCapacity {
    /// Calls that were answered, whatever the answer.
    pub calls: u64,
    /// Units of read capacity.
    pub read_units: f64,
    /// Units of write capacity, indexes included. A write whose condition failed counts as one, since DynamoDB charges it and
    /// does not tell; a transaction that was cancelled is not counted.
    pub write_units: f64,
}

impl CapacityMeter {
    /// A meter that has counted nothing yet, for [`Builder::meter`](crate::Builder::meter).
    pub fn new() -> Self {
        Self::default()
    }

    /// What was consumed so far.
    pub fn consumed(&self) -> ConsumedCapacity {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, ConsumedCapacity> {
        self.consumed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The operations whose answers tell what they consumed: in one piece or in several.
macro_rules! metered {
    ($(($operation:ident, $input:ident, $output:ident),)+) => {
        fn ask(input: &mut Input) {
            $(if let Some(input) = input.downcast_mut::<$operation::$input>() {
                input.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
            })+
        }

        /// What an answer tells: of each table.
        fn told(output: &Output) -> Vec<&SdkCapacity> {
            $(if let Some(output) = output.downcast_ref::<$operation::$output>() {
                return output.consumed_capacity.iter().flat_map(Told::parts).collect();
            })+
            vec![]
        }
    };
}

metered! {
    (get_item, GetItemInput, GetItemOutput),
    (batch_get_item, BatchGetItemInput, BatchGetItemOutput),
    (query, QueryInput, QueryOutput),
    (scan, ScanInput, ScanOutput),
    (put_item, PutItemInput, PutItemOutput),
    (update_item, UpdateItemInput, UpdateItemOutput),
    (delete_item, DeleteItemInput, DeleteItemOutput),
    (batch_write_item, BatchWriteItemInput, BatchWriteItemOutput),
    (transact_write_items, TransactWriteItemsInput, TransactWriteItemsOutput),
}

trait Told {
    fn parts(&self) -> &[SdkCapacity];
}

impl Told for SdkCapacity {
    fn parts(&self) -> &[SdkCapacity] {
        std::slice::from_ref(self)
    }
}

impl Told for Vec<SdkCapacity> {
    fn parts(&self) -> &[SdkCapacity] {
        self
    }
}

fn reads(output: &Output) -> bool {
    output.downcast_ref::<get_item::GetItemOutput>().is_some()
        || output
            .downcast_ref::<batch_get_item::BatchGetItemOutput>()
            .is_some()
        || output.downcast_ref::<query::QueryOutput>().is_some()
        || output.downcast_ref::<scan::ScanOutput>().is_some()
}

fn failed_condition(error: &Error) -> bool {
    let codes = [
        error
            .downcast_ref::<update_item::UpdateItemError>()
            .map(ProvideErrorMetadata::code),
        error
            .downcast_ref::<put_item::PutItemError>()
            .map(ProvideErrorMetadata::code),
        error
            .downcast_ref::<delete_item::DeleteItemError>()
            .map(ProvideErrorMetadata::code),
    ];
    codes
        .into_iter()
        .flatten()
        .flatten()
        .any(|code| code == "ConditionalCheckFailedException")
}

impl Intercept for CapacityMeter {
    fn name(&self) -> &'static str {
        "CapacityMeter"
    }

    // Before it is serialised, and so before it is signed.
    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        ask(context.input_mut());
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let mut consumed = self.lock();
        consumed.calls += 1;
        match context.output_or_error() {
            Ok(output) => {
                let units: f64 = told(output).iter().filter_map(|part| part.capacity_units).sum();
                if reads(output) {
                    consumed.read_units += units;
                } else {
                    consumed.write_units += units;
                }
            }
            Err(error) if error.as_operation_error().is_some_and(failed_condition) => {
                consumed.write_units += FAILED_WRITE;
            }
            Err(_) => {}
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{EmbeddedStore, Error, Limit, RateLimiter};

    async fn metered(store: &EmbeddedStore) -> (RateLimiter, CapacityMeter) {
        let meter = CapacityMeter::new();
        let builder = RateLimiter::embedded_in(store)
            .default_limits([Limit::per_day("rpd", 10).unwrap()])
            .meter(meter.clone());
        (builder.await.unwrap(), meter)
    }

    async fn take(limiter: &RateLimiter, tokens: u64) -> crate::Result<()> {
        let lease = limiter.acquire("user-1", "gpt-4").consume("rpd", tokens).await?;
        lease.commit().await
    }

    /// What some work consumes.
    async fn of<T>(meter: &CapacityMeter, work: impl Future<Output = T>) -> (T, u64, f64, f64) {
        let before = meter.consumed();
        let made = work.await;
        let after = meter.consumed();
        (
            made,
            after.calls - before.calls,
            after.read_units - before.read_units,
            after.write_units - before.write_units,
        )
    }

    #[tokio::test]
    async fn an_acquire_is_charged_what_the_table_says() {
        let (limiter, meter) = metered(&EmbeddedStore::memory().unwrap()).await;
        let (taken, calls, read, write) = of(&meter, take(&limiter, 1)).await;
        taken.unwrap();
        assert!(
            calls >= 2 && read > 0.0 && write > 1.0,
            "the configuration is read, the index written"
        );
        let (taken, calls, read, write) = of(&meter, take(&limiter, 1)).await;
        taken.unwrap();
        assert_eq!(
            (calls, read.to_bits(), write.to_bits()),
            (1, 0f64.to_bits(), 1f64.to_bits())
        );
    }

    #[tokio::test]
    async fn a_write_whose_condition_fails_is_charged_one_unit() {
        let store = EmbeddedStore::memory().unwrap();
        let (limiter, meter) = metered(&store).await;
        take(&limiter, 1).await.unwrap();
        let (other, _) = metered(&store).await;
        take(&other, 9).await.unwrap();
        let (refused, calls, _, write) = of(&meter, take(&limiter, 1)).await;
        assert!(matches!(refused, Err(Error::RateLimitExceeded(_))), "{refused:?}");
        assert_eq!((calls, write.to_bits()), (1, 1f64.to_bits()));
    }

    #[tokio::test]
    async fn lists_and_batches_are_charged_as_well_and_clones_count_together() {
        let (limiter, meter) = metered(&EmbeddedStore::memory().unwrap()).await;
        take(&limiter, 1).await.unwrap();
        let limits = [Limit::per_minute("rpm", 1).unwrap()];
        let (stored, calls, _, write) = of(&meter, limiter.set_resource_defaults("gpt-4", limits)).await;
        stored.unwrap();
        assert!(calls > 0 && write > 0.0);
        let (deleted, calls, read, write) = of(&meter.clone(), limiter.delete_entity("user-1")).await;
        deleted.unwrap();
        assert!(calls > 1 && read > 0.0 && write > 0.0);
    }
}
