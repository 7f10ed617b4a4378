//! The table as the store of acquires.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Semaphore;
use zae_limiter_dynamo::{CallError, ServerTime, Table, Update, Updated};
use zae_limiter_schema::bucket::{Attr, Attributes, BucketKey, BucketWrite};
use zae_limiter_schema::keys::{self, Key};
use zae_limiter_schema::{AttributeValue, ConfigLevel, ConfigRecord, Item, Timestamp, VersionRecord};

use super::{BoxFuture, ConfigSource, ItemsRead, ItemsWanted, Store, WriteOutcome, WriteQueue, WriteSlot};
use crate::admin::compatibility;
use crate::bucket::RefusalCount;
use crate::builder::Settings;
use crate::{Error, Result};

/// A table on AWS, on another endpoint, or in the process.
#[derive(Debug)]
pub(crate) struct TableStore {
    table: Table,
    embedded: bool,
    /// The slots of a table whose writes wait for each other, and how many there are.
    slots: Option<(Arc<Semaphore>, usize)>,
    /// How many writes got a response.
    responses: AtomicU64,
    settings: Settings,
    version_checked: AtomicBool,
    dates: ServerTime,
}

impl TableStore {
    pub(crate) fn new(table: Table, settings: &Settings, embedded: bool, dates: ServerTime) -> Self {
        let table = Table {
            budget: settings.time_budget,
            // Half the budget for one attempt leaves room for one retry.
            attempt: settings.time_budget / 2,
            ..table
        };
        Self {
            table,
            embedded,
            slots: None,
            responses: AtomicU64::new(0),
            settings: settings.clone(),
            version_checked: AtomicBool::new(false),
            dates,
        }
    }

    /// With slots for its writes, and how many there are.
    #[cfg(feature = "embedded")]
    pub(crate) fn with_slots(self, slots: Option<(Arc<Semaphore>, usize)>) -> Self {
        Self { slots, ..self }
    }

    async fn read_wanted(&self, wanted: &ItemsWanted) -> Result<ItemsRead> {
        let (version, system) = (keys::version(), keys::config(&ConfigLevel::System));
        let has_fallback = wanted.required.is_empty();
        let mut optional = wanted.optional.clone();
        let mut keys: Vec<Key> = wanted.required.iter().chain(&optional).cloned().collect();
        // The version rides along the first time: it costs no round trip of its own.
        let checked = self.version_checked.load(Ordering::Acquire);
        if !checked {
            keys.extend([version.clone(), system.clone()]);
            if has_fallback {
                optional.extend([version.clone(), system.clone()]);
            }
        }
        let mut table = self.table.clone();
        if has_fallback {
            // The other half of the time is for the bucket's write.
            table.budget = table.attempt;
        }
        let (found, unread) = table.batch_get_partly(keys, &optional, wanted.consistent).await?;
        if !checked && ![&version, &system].iter().any(|key| unread.contains_key(*key)) {
            self.check_version(&found)?;
        }
        let unread = unread.into_iter().map(|(key, error)| (key, error.into()));
        Ok(ItemsRead {
            found,
            unread: unread.collect(),
        })
    }

    fn check_version(&self, found: &HashMap<Key, Item>) -> Result<()> {
        let record = found.get(&keys::version()).map(VersionRecord::from_item);
        let record = record.transpose()?;
        let system = found.get(&keys::config(&ConfigLevel::System));
        let system = system.map(ConfigRecord::from_item).transpose()?;
        compatibility::admit(
            &self.table,
            record.as_ref(),
            self.settings.is_strict(system.as_ref()),
        )?;
        // A table without a record is read again: another process may be about to write one.
        self.version_checked.store(record.is_some(), Ordering::Release);
        Ok(())
    }
}

/// Whether a write is sent again is for the bucket's queue to decide.
fn outcome(sent: zae_limiter_dynamo::Result<Updated<Attributes>>) -> WriteOutcome {
    match sent {
        Ok(Updated::Done(bucket)) => WriteOutcome::Done(bucket),
        Ok(Updated::ConditionFailed(bucket)) => WriteOutcome::Refused(bucket),
        Err(error) => failure(error),
    }
}

fn failure(error: zae_limiter_dynamo::Error) -> WriteOutcome {
    match error.cause() {
        Some(cause @ (CallError::Throttled(_) | CallError::FileHeld(_))) => {
            WriteOutcome::Throttled(cause.to_string())
        }
        Some(CallError::Conflict(reason) | CallError::ClockSkew(reason)) => {
            WriteOutcome::Conflict(reason.clone())
        }
        Some(CallError::Unavailable(reason)) => WriteOutcome::Lost(reason.clone()),
        Some(CallError::NotSent(reason)) => WriteOutcome::NotSent(reason.clone()),
        _ => WriteOutcome::Failed(error.into()),
    }
}

impl ConfigSource for TableStore {
    fn read_items<'a>(&'a self, wanted: &'a ItemsWanted) -> BoxFuture<'a, Result<ItemsRead>> {
        Box::pin(self.read_wanted(wanted))
    }

    /// An embedded table has no time of its own to compare with.
    fn clock_offset(&self) -> i64 {
        if self.embedded { 0 } else { self.dates.offset() }
    }
}

/// True unless the table did not respond.
fn is_response<T>(result: &zae_limiter_dynamo::Result<T>) -> bool {
    let Err(error) = result else { return true };
    !matches!(
        error.cause(),
        Some(CallError::Unavailable(_) | CallError::NotSent(_))
    )
}

impl Store for TableStore {
    fn read_bucket<'a>(
        &'a self,
        key: &'a BucketKey,
        consistent: bool,
    ) -> BoxFuture<'a, Result<Option<Attributes>>> {
        Box::pin(async move {
            let item = self.table.get(&key.key(), consistent).await?;
            Ok(item.as_ref().map(Attributes::from_item))
        })
    }

    fn ready(&self) -> BoxFuture<'_, Result<WriteSlot, WriteOutcome>> {
        Box::pin(async {
            self.table.ready().await.map_err(failure)?;
            let Some((slots, _)) = &self.slots else {
                return Ok(WriteSlot::default());
            };
            // The slots are never closed.
            let permit = slots.clone().acquire_owned().await;
            Ok(permit.map_or_else(|_| WriteSlot::default(), WriteSlot::new))
        })
    }

    fn denial(&self) -> Option<Error> {
        self.table.denial().map(Error::from)
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.slots.as_ref().map(|(_, at_a_time)| WriteQueue {
            at_a_time: *at_a_time,
            responses: self.responses.load(Ordering::Relaxed),
        })
    }

    fn write_bucket<'a>(&'a self, write: &'a BucketWrite) -> BoxFuture<'a, WriteOutcome> {
        Box::pin(async move {
            let outcome = outcome(self.table.write_bucket(write).await);
            if matches!(outcome, WriteOutcome::Done(_) | WriteOutcome::Refused(_)) {
                self.responses.fetch_add(1, Ordering::Relaxed);
            }
            outcome
        })
    }

    /// An embedded table has an aggregator only if this process is one.
    fn counts_refusals(&self) -> bool {
        !self.embedded || self.settings.count_usage
    }

    fn count_refusals<'a>(&'a self, key: &'a BucketKey, count: RefusalCount) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut update = Update::of(key.key()).when_exists(keys::attribute::PK);
            for (attribute, more) in [(Attr::Refusals, count.refused), (Attr::Observed, count.observed)] {
                if more > 0 {
                    update = update.add(&attribute.to_string(), AttributeValue::N(more.to_string()));
                }
            }
            self.table.update_once(update).await?;
            Ok(())
        })
    }

    fn ping(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.table.get(&keys::version(), false).await?;
            Ok(())
        })
    }

    fn responds(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { is_response(&self.table.get_once(&keys::version()).await) })
    }

    /// There is no such item, and its condition never holds.
    fn accepts_writes(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            let update = Update::of(keys::write_probe())
                .add(&Attr::Refusals.to_string(), AttributeValue::N("0".to_owned()))
                .when_exists(keys::attribute::PK)
                .when_absent(keys::attribute::PK);
            is_response(&self.table.update_once(update).await)
        })
    }

    /// All processes that use an embedded table have this machine's calendar.
    fn latest_time(&self) -> Option<Timestamp> {
        if self.embedded {
            Some(self.dates.local_calendar())
        } else {
            self.dates.latest()
        }
    }
}
