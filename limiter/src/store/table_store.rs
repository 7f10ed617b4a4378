//! The table as the store of acquires.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zae_limiter_dynamo::{CallError, ServerTime, Table, Update, Updated};
use zae_limiter_schema::bucket::{Attributes, BucketKey, BucketWrite};
use zae_limiter_schema::keys::{self, Key};
use zae_limiter_schema::{ConfigLevel, ConfigRecord, EntityId, EntityRecord, Item, Resource, VersionRecord};

use super::{Capabilities, ConfigSource, LoadedConfig, Pending, Store, WriteOutcome};
use crate::Result;
use crate::admin::compatibility;

/// A table on AWS, on another endpoint, or in the process.
#[derive(Debug)]
pub(crate) struct TableStore {
    table: Table,
    embedded: bool,
    version_checked: AtomicBool,
    dates: ServerTime,
}

impl TableStore {
    pub(crate) fn new(table: Table, time_budget: Duration, embedded: bool, dates: ServerTime) -> Self {
        Self {
            table: Table {
                budget: time_budget,
                // Half the budget for one attempt leaves room for one retry.
                attempt: time_budget / 2,
                ..table
            },
            embedded,
            version_checked: AtomicBool::new(false),
            dates,
        }
    }

    async fn load(&self, entity: &EntityId, resource: &Resource, consistent: bool) -> Result<LoadedConfig> {
        let levels = ConfigLevel::chain(entity, resource).map(|level| keys::config(&level));
        let (meta, bucket, version) = (
            keys::entity_meta(entity),
            keys::bucket(entity, resource),
            keys::version(),
        );
        // The version rides along the first time: it costs no round trip of its own.
        let checked = self.version_checked.load(Ordering::Acquire);
        let wanted = levels
            .iter()
            .chain([&meta, &bucket])
            .chain((!checked).then_some(&version))
            .cloned();
        let mut found = self.table.batch_get(wanted, consistent).await?;

        let [entity_level, entity_default, resource_level, system] = levels;
        let mut config = |key: &Key| {
            found
                .remove(key)
                .map(|item| ConfigRecord::from_item(&item))
                .transpose()
        };
        let loaded = LoadedConfig {
            entity: config(&entity_level)?,
            entity_default: config(&entity_default)?,
            resource: config(&resource_level)?,
            system: config(&system)?,
            meta: found
                .remove(&meta)
                .map(|item| EntityRecord::from_item(&item))
                .transpose()?,
            bucket: found.remove(&bucket),
        };
        if !checked {
            self.check_version(&found, &version, loaded.system.as_ref())?;
        }
        Ok(loaded)
    }

    fn check_version(
        &self,
        found: &HashMap<Key, Item>,
        key: &Key,
        system: Option<&ConfigRecord>,
    ) -> Result<()> {
        let record = found.get(key).map(VersionRecord::from_item).transpose()?;
        compatibility::admit(&self.table, record.as_ref(), system)?;
        // A table without a record is asked again: somebody may be about to write one.
        self.version_checked.store(record.is_some(), Ordering::Release);
        Ok(())
    }
}

/// Whether a write is sent again is for the bucket's queue to decide.
fn outcome(sent: zae_limiter_dynamo::Result<Updated>) -> WriteOutcome {
    let error = match sent {
        Ok(Updated::Done(item)) => return WriteOutcome::Done(Attributes::from_item(&item)),
        Ok(Updated::ConditionFailed(item)) => {
            return WriteOutcome::Refused(item.as_ref().map(Attributes::from_item));
        }
        Err(error) => error,
    };
    match error.cause() {
        Some(cause @ (CallError::Throttled(_) | CallError::FileHeld(_))) => {
            WriteOutcome::Throttled(cause.to_string())
        }
        Some(CallError::Conflict(reason)) => WriteOutcome::Conflict(reason.clone()),
        Some(CallError::Unavailable(reason)) => WriteOutcome::Lost(reason.clone()),
        _ => WriteOutcome::Failed(error.into()),
    }
}

impl ConfigSource for TableStore {
    fn load_config<'a>(
        &'a self,
        entity: &'a EntityId,
        resource: &'a Resource,
        consistent: bool,
    ) -> Pending<'a, LoadedConfig> {
        Box::pin(self.load(entity, resource, consistent))
    }
}

impl Store for TableStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            server_time: !self.embedded,
        }
    }

    fn read_bucket<'a>(&'a self, key: &'a BucketKey, consistent: bool) -> Pending<'a, Option<Attributes>> {
        Box::pin(async move {
            let item = self.table.get(&key.key(), consistent).await?;
            Ok(item.as_ref().map(Attributes::from_item))
        })
    }

    fn write_bucket<'a>(
        &'a self,
        write: &'a BucketWrite,
    ) -> Pin<Box<dyn Future<Output = WriteOutcome> + Send + 'a>> {
        Box::pin(async move { outcome(self.table.update_once(Update::from(write)).await) })
    }

    fn ping(&self) -> Pending<'_, ()> {
        Box::pin(async {
            self.table.get(&keys::version(), false).await?;
            Ok(())
        })
    }

    fn clock_offset(&self) -> i64 {
        self.dates.offset()
    }
}
