//! Counting the capacity that calls consume.

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
use aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint;

/// DynamoDB charges a write whose condition is false by the size of the item, and does not report it.
const FAILED_WRITE: f64 = 1.0;

/// Counts calls to the table and the capacity that they consume. Clones count together. An interceptor of the SDK.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use aws_sdk_dynamodb::Client;
/// use zae_limiter_dynamo::{CapacityMeter, EmbeddedStore};
///
/// let meter = CapacityMeter::new();
/// let config = EmbeddedStore::memory()?.sdk_config().interceptor(meter.clone());
/// Client::from_conf(config.build()).list_tables().send().await?;
/// assert_eq!(meter.consumed().calls, 1);
/// # Ok(()) }
/// # #[cfg(not(feature = "embedded"))]
/// # fn main() {}
/// ```
#[derive(Debug, Clone, Default)]
pub struct CapacityMeter {
    consumed: Arc<Mutex<ConsumedCapacity>>,
}

/// What was consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct ConsumedCapacity {
    /// Calls that got a response, of any status.
    pub calls: u64,
    /// Units of read capacity.
    pub read_units: f64,
    /// Units of write capacity, indexes included. A write whose condition is false counts as one, because DynamoDB
    /// charges it and does not report how much. A canceled transaction is not counted.
    pub write_units: f64,
}

impl CapacityMeter {
    /// A meter at zero.
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

/// The operations that report what they consumed.
macro_rules! metered {
    ($(($operation:ident, $input:ident, $output:ident),)+) => {
        fn ask(input: &mut Input) {
            $(if let Some(input) = input.downcast_mut::<$operation::$input>() {
                input.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
            })+
        }

        fn units(output: &Output) -> f64 {
            $(if let Some(output) = output.downcast_ref::<$operation::$output>() {
                return output.consumed_capacity.as_ref().map_or(0.0, Units::units);
            })+
            0.0
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

/// Some operations report one value, others one per table.
trait Units {
    fn units(&self) -> f64;
}

impl Units for SdkCapacity {
    fn units(&self) -> f64 {
        self.capacity_units.unwrap_or_default()
    }
}

impl Units for Vec<SdkCapacity> {
    fn units(&self) -> f64 {
        self.iter().map(Units::units).sum()
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

#[dyn_dispatch_hint]
impl Intercept for CapacityMeter {
    fn name(&self) -> &'static str {
        "CapacityMeter"
    }

    // Before serialization, and so before signing.
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
                if reads(output) {
                    consumed.read_units += units(output);
                } else {
                    consumed.write_units += units(output);
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
