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
use zae_limiter_schema::keys::Key;
use zae_limiter_testing::stream::{Chaos, Database, ServiceFault};

use crate::{Progress, SnapshotUpdate, Table, ThresholdMark, UpdateOutcome};

/// Something that performs updates.
pub(crate) trait Backend {
    fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError>;
    fn mark(&self, mark: &ThresholdMark) -> Result<bool, CallError>;
    fn snapshots(&self) -> Vec<UsageSnapshot>;
}

/// A table whose calls are refused, lost, late or cut off.
pub(crate) struct Unreliable<B> {
    pub(crate) backend: B,
    chaos: Rc<Chaos>,
    crash: Rc<Notify>,
    late: RefCell<Vec<(u64, LateCall)>>,
    /// Every mark succeeds, as if the table did not remember any.
    pub(crate) forgets_marks: Cell<bool>,
    calls: Cell<u64>,
}

impl<B: Backend> Unreliable<B> {
    pub(crate) fn new(backend: B, chaos: Rc<Chaos>, crash: Rc<Notify>) -> Self {
        Self {
            backend,
            chaos,
            crash,
            late: RefCell::default(),
            forgets_marks: Cell::new(false),
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
        // The caller no longer waits for the response.
        for (_, call) in due {
            match call {
                LateCall::Update(update) => drop(self.backend.update(&update)),
                LateCall::Mark(mark) => drop(self.backend.mark(&mark)),
            }
        }
    }
}

/// A call that arrives when nobody waits for it any more.
#[derive(Clone)]
enum LateCall {
    Update(SnapshotUpdate),
    Mark(ThresholdMark),
}

impl<B: Backend> Unreliable<B> {
    /// What becomes of a call on the item with this key.
    async fn call<R>(
        &self,
        key: &Key,
        late: impl FnOnce() -> LateCall,
        perform: impl FnOnce() -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        self.calls.set(self.calls.get() + 1);
        self.arrive(self.calls.get());
        // Others get their turn, so that calls of one batch and of two invocations interleave.
        for _ in 0..self.chaos.below(3) {
            tokio::task::yield_now().await;
        }
        let lost = Err(CallError::Unavailable("no response".to_owned()));
        match self.chaos.fault(&format!("{}{}", key.pk, key.sk)) {
            ServiceFault::None => perform(),
            ServiceFault::Refused => Err(CallError::Unavailable("slow down".to_owned())),
            ServiceFault::Rejected => Err(CallError::Refused("FutureException".to_owned())),
            ServiceFault::LostResponse => perform().and(lost),
            ServiceFault::Late => {
                let due = self.calls.get() + 1 + self.chaos.below(3_000) as u64;
                self.late.borrow_mut().push((due, late()));
                lost
            }
            ServiceFault::Crash => {
                self.crash.notify_one();
                std::future::pending().await
            }
        }
    }
}

impl<B: Backend> Table for Unreliable<B> {
    async fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        let late = || LateCall::Update(update.clone());
        self.call(&update.key, late, || self.backend.update(update)).await
    }

    async fn mark(&self, mark: &ThresholdMark) -> Result<bool, CallError> {
        let late = || LateCall::Mark(mark.clone());
        let marked = self.call(&mark.key, late, || self.backend.mark(mark)).await?;
        Ok(marked || self.forgets_marks.get())
    }
}

/// The updates as DynamoDB's expressions, on a real interpreter of them.
pub(crate) struct Dynoxide(pub(crate) Database);

impl Dynoxide {
    /// Whether the update was made, or else the item.
    fn send(&self, key: &Key, update: Update) -> Result<Result<(), Option<Item>>, CallError> {
        let parts = update.into_parts();
        let s = |text: &str| AttributeValue::S(text.to_owned());
        let value = |value: SdkValue| match value {
            SdkValue::S(text) => AttributeValue::S(text),
            SdkValue::N(number) => AttributeValue::N(number),
            SdkValue::Ss(texts) => AttributeValue::SS(texts),
            other => unreachable!("no snapshot has {other:?}"),
        };
        let values = parts.values.unwrap_or_default().into_iter();
        let request = UpdateItemRequest {
            table_name: Database::TABLE.to_owned(),
            key: HashMap::from([("PK".to_owned(), s(&key.pk)), ("SK".to_owned(), s(&key.sk))]),
            update_expression: Some(parts.update),
            condition_expression: parts.condition,
            expression_attribute_names: parts.names,
            expression_attribute_values: Some(values.map(|(name, v)| (name, value(v))).collect()),
            return_values_on_condition_check_failure: Some("ALL_OLD".to_owned()),
            ..UpdateItemRequest::default()
        };
        match self.0.update_item(request) {
            Ok(_) => Ok(Ok(())),
            Err(DynoxideError::ConditionalCheckFailedException(_, item)) => Ok(Err(item)),
            Err(error) => Err(CallError::Invalid(error.to_string())),
        }
    }
}

type Item = HashMap<String, AttributeValue>;

impl Backend for Dynoxide {
    fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        Ok(match self.send(&update.key, Update::from(update))? {
            Ok(()) => UpdateOutcome::Applied,
            Err(item) => {
                let text = |name: &str| match item.as_ref()?.get(name)? {
                    AttributeValue::S(text) => Some(text.as_str()),
                    _ => None,
                };
                UpdateOutcome::Refused(Progress::from_attributes(text))
            }
        })
    }

    fn mark(&self, mark: &ThresholdMark) -> Result<bool, CallError> {
        Ok(self.send(&mark.key, Update::from(mark))?.is_ok())
    }

    fn snapshots(&self) -> Vec<UsageSnapshot> {
        self.0.snapshots()
    }
}
