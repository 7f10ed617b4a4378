//! Tables that misbehave.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use aws_sdk_dynamodb::types::AttributeValue as SdkValue;
use dynoxide::actions::update_item::UpdateItemRequest;
use dynoxide::{AttributeValue, DynoxideError};
use tokio::sync::Notify;
use zae_limiter_dynamo::Update;
use zae_limiter_function::CallError;
use zae_limiter_schema::UsageSnapshot;
use zae_limiter_testing::stream::{Chaos, Database, ServiceFault};

use crate::{Progress, SnapshotUpdate, Table, UpdateOutcome};

/// Something that performs updates.
pub(crate) trait Backend {
    fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError>;
    fn snapshots(&self) -> Vec<UsageSnapshot>;
}

/// A table whose calls are refused, lost, late or cut off.
pub(crate) struct Unreliable<B> {
    pub(crate) backend: B,
    chaos: Rc<Chaos>,
    crash: Rc<Notify>,
    late: RefCell<Vec<(u64, SnapshotUpdate)>>,
    calls: Cell<u64>,
}

impl<B: Backend> Unreliable<B> {
    pub(crate) fn new(backend: B, chaos: Rc<Chaos>, crash: Rc<Notify>) -> Self {
        Self {
            backend,
            chaos,
            crash,
            late: RefCell::default(),
            calls: Cell::new(0),
        }
    }

    /// Whatever is still under way arrives.
    pub(crate) fn settle(&self) {
        self.arrive(u64::MAX);
    }

    fn arrive(&self, now: u64) {
        let due: Vec<_> = self
            .late
            .borrow_mut()
            .extract_if(.., |(due, _)| *due <= now)
            .collect();
        for (_, update) in due {
            // The caller no longer waits for the response.
            let _ = self.backend.update(&update);
        }
    }
}

impl<B: Backend> Table for Unreliable<B> {
    async fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        self.calls.set(self.calls.get() + 1);
        self.arrive(self.calls.get());
        // Others get their turn, so that calls of one batch and of two invocations interleave.
        for _ in 0..self.chaos.below(3) {
            tokio::task::yield_now().await;
        }
        let lost = Err(CallError::Unavailable("no response".to_owned()));
        match self.chaos.fault(&format!("{}{}", update.key.pk, update.key.sk)) {
            ServiceFault::None => self.backend.update(update),
            ServiceFault::Refused => Err(CallError::Unavailable("slow down".to_owned())),
            ServiceFault::Rejected => Err(CallError::Refused("FutureException".to_owned())),
            ServiceFault::LostResponse => self.backend.update(update).and(lost),
            ServiceFault::Late => {
                let due = self.calls.get() + 1 + self.chaos.below(3_000) as u64;
                self.late.borrow_mut().push((due, update.clone()));
                lost
            }
            ServiceFault::Crash => {
                self.crash.notify_one();
                std::future::pending().await
            }
        }
    }
}

/// The updates as DynamoDB's expressions, on a real interpreter of them.
pub(crate) struct Dynoxide(pub(crate) Database);

impl Backend for Dynoxide {
    fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        let parts = Update::from(update).into_parts();
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let value = |value: SdkValue| match value {
            SdkValue::S(text) => AttributeValue::S(text),
            SdkValue::N(number) => AttributeValue::N(number),
            other => unreachable!("no snapshot has {other:?}"),
        };
        let values = parts.values.unwrap_or_default().into_iter();
        let request = UpdateItemRequest {
            table_name: Database::TABLE.to_owned(),
            key: HashMap::from([
                ("PK".to_owned(), s(&update.key.pk)),
                ("SK".to_owned(), s(&update.key.sk)),
            ]),
            update_expression: Some(parts.update),
            condition_expression: parts.condition,
            expression_attribute_names: parts.names,
            expression_attribute_values: Some(values.map(|(name, v)| (name, value(v))).collect()),
            return_values_on_condition_check_failure: Some("ALL_OLD".to_owned()),
            ..UpdateItemRequest::default()
        };
        match self.0.update_item(request) {
            Ok(_) => Ok(UpdateOutcome::Applied),
            Err(DynoxideError::ConditionalCheckFailedException(_, item)) => {
                let text = |name: &str| match item.as_ref()?.get(name)? {
                    AttributeValue::S(text) => Some(text.as_str()),
                    _ => None,
                };
                Ok(UpdateOutcome::Refused(Progress::from_attributes(text)))
            }
            Err(error) => Err(CallError::Invalid(error.to_string())),
        }
    }

    fn snapshots(&self) -> Vec<UsageSnapshot> {
        self.0.snapshots()
    }
}
