//! Changes of a bucket by hand: [top-ups](top_up) and [resets](reset).
//!
//! The write of the bucket, the audit event and an [idempotency record](IdempotencyRecord) are one transaction, which needs that
//! there is no such record yet. So a change happens once, however often it is sent, also by another client. The write of the
//! bucket has no slot: those belong to clients that acquire.

mod reset;
mod top_up;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use zae_limiter_dynamo::{Reason, Transacted, Transaction, Update};
use zae_limiter_schema::bucket::{
    Attributes, BucketConfig, BucketKey, Decoded, Image, Incarnation, Statement, TtlRule,
};
use zae_limiter_schema::keys::{self, Key};
use zae_limiter_schema::{AttributeValue, AuditAction, IdempotencyRecord, Timestamp};

use super::audit::{self, Details};
use super::repository::MAX_ATTEMPTS;
use crate::config::cache::BucketImage;
use crate::error::Conflict;
use crate::{Error, Repository, Result};

pub use reset::{LimitReset, ResetReport};
#[cfg(test)]
pub(crate) use top_up::TopUpRequest;
pub use top_up::{TopUp, TopUpReport};

/// The longest idempotency key, in bytes.
const MAX_KEY_LENGTH: usize = 255;
/// The longest reason, in bytes.
const MAX_REASON_LENGTH: usize = 1_000;

/// What all changes by hand have in common.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangeOptions {
    pub(crate) reason: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

/// A reason, if it can be stored.
pub(super) fn checked_reason(reason: Option<&str>) -> Result<Option<AttributeValue>> {
    match reason {
        Some(reason) if reason.trim().is_empty() || reason.len() > MAX_REASON_LENGTH => {
            let rule = format!("it must have 1 to {MAX_REASON_LENGTH} bytes, not only spaces");
            Err(Error::invalid("reason", reason, rule))
        }
        reason => Ok(reason.map(audit::text)),
    }
}

/// A change of one bucket, before the bucket is read.
pub(crate) trait BucketChange: Send + Sync {
    /// The action of its audit event.
    const ACTION: AuditAction;

    /// What is asked for, as one line. A key stands for one request.
    fn request(&self) -> String;

    /// The write for the bucket as it was read, and the details of the audit event.
    fn plan(&self, key: &BucketKey, found: &Found) -> Result<Plan>;
}

/// A bucket and what belongs to it, read consistently.
#[derive(Debug)]
pub(crate) struct Found {
    /// The change was made before.
    pub(crate) record: Option<IdempotencyRecord>,
    pub(crate) image: Option<Image>,
    /// The bucket by the stored configuration.
    pub(crate) config: Arc<BucketConfig>,
    pub(crate) now: Timestamp,
    /// For a bucket that becomes another incarnation.
    pub(crate) incarnation: Incarnation,
}

/// What is to be written.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// None where nothing of the bucket changes.
    pub(crate) statement: Option<Statement>,
    pub(crate) details: Details,
}

/// How a transaction ended.
#[derive(Debug)]
pub(crate) enum Committed {
    /// It happened.
    Done(IdempotencyRecord),
    /// A change was made under this key before: perhaps this one, whose response was lost.
    Before(IdempotencyRecord),
    /// The bucket is no longer as it was read.
    Changed,
}

/// The table as a change by hand uses it.
pub(crate) trait ChangeStore: Sync {
    /// Reads the record under the key, the bucket and its configuration.
    fn find(&self, bucket: &BucketKey, record: &Key) -> impl Future<Output = Result<Found>> + Send;

    /// Writes bucket, event and record, or nothing.
    fn commit(
        &self,
        bucket: &BucketKey,
        record: &Key,
        request: &str,
        action: AuditAction,
        plan: Plan,
    ) -> impl Future<Output = Result<Committed>> + Send;

    /// Waits before the next attempt; an error if no time is left for one.
    fn pause(&self, attempt: u32) -> impl Future<Output = Result<()>> + Send;
}

/// A change that was made, and whether that was before.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) record: IdempotencyRecord,
    pub(crate) repeated: bool,
}

/// Makes a change once.
pub(crate) async fn change_once<S: ChangeStore, C: BucketChange>(
    store: &S,
    key: &BucketKey,
    idempotency_key: &str,
    reason: Option<AttributeValue>,
    change: &C,
) -> Result<Made> {
    let (record_key, request) = (keys::idempotency(&key.entity, idempotency_key), change.request());
    let before = |record: IdempotencyRecord| {
        if record.request == request {
            let repeated = true;
            Ok(Made { record, repeated })
        } else {
            Err(Error::Conflict(Conflict::KeyReused {
                entity: key.entity.clone(),
                request: record.request,
            }))
        }
    };
    for attempt in 1..=MAX_ATTEMPTS {
        let found = store.find(key, &record_key).await?;
        if let Some(record) = found.record {
            return before(record);
        }
        let mut plan = change.plan(key, &found)?;
        plan.details
            .extend(reason.clone().map(|reason| ("reason".to_owned(), reason)));
        let committed = store.commit(key, &record_key, &request, C::ACTION, plan).await?;
        match committed {
            Committed::Done(record) => {
                let repeated = false;
                return Ok(Made { record, repeated });
            }
            Committed::Before(record) => return before(record),
            Committed::Changed => store.pause(attempt).await?,
        }
    }
    Err(Error::contended(&bucket_name(key)))
}

fn bucket_name(key: &BucketKey) -> String {
    format!("the bucket of {} on {}", key.entity, key.resource)
}

/// The repository for one change.
struct OneChange<'a> {
    repository: &'a Repository,
    bucket: &'a BucketKey,
}

impl ChangeStore for OneChange<'_> {
    async fn find(&self, bucket: &BucketKey, record: &Key) -> Result<Found> {
        let inner = &self.repository.inner;
        let record = self.repository.table().get(record, true).await?;
        let lookup = inner
            .cache
            .reload_consistent(&bucket.entity, &bucket.resource)
            .await?;
        let ttl = if lookup.resolved().has_own_limits() {
            TtlRule::Never
        } else {
            TtlRule::from_multiplier(inner.settings.ttl_multiplier)
        };
        let image = match &lookup.bucket {
            BucketImage::Present(item) => match Attributes::from_item(item).decode()? {
                Decoded::Bucket(image) => Some(image),
                Decoded::Stub => None,
            },
            BucketImage::Absent | BucketImage::NotRead => None,
        };
        let random = u64::try_from(inner.table.entropy.bits() >> 64).unwrap_or_default();
        Ok(Found {
            record: record
                .map(|item| IdempotencyRecord::from_item(&item))
                .transpose()?,
            image,
            config: lookup.configs.stored(ttl),
            now: self.repository.now(),
            incarnation: Incarnation::from_random(random),
        })
    }

    async fn commit(
        &self,
        bucket: &BucketKey,
        record: &Key,
        request: &str,
        action: AuditAction,
        plan: Plan,
    ) -> Result<Committed> {
        let event = self
            .repository
            .bucket_event(bucket, action, plan.details.clone())
            .await?;
        let made = IdempotencyRecord {
            entity: bucket.entity.clone(),
            request: request.to_owned(),
            event: event.id,
            details: plan.details,
            ttl: event.ttl,
        };
        let table = self.repository.table();
        let mut transaction = Transaction::on(&table);
        transaction.put_new(made.to_item(record));
        if let Some(statement) = &plan.statement {
            transaction.update(Update::of_statement(bucket.key(), statement));
        }
        transaction.put_new(event.to_item());
        Ok(match transaction.commit().await? {
            Transacted::Done => Committed::Done(made),
            Transacted::Refused(reasons) => match reasons.into_iter().next() {
                Some(Reason::ConditionFailed(Some(item))) => {
                    Committed::Before(IdempotencyRecord::from_item(&item)?)
                }
                _ => Committed::Changed,
            },
        })
    }

    async fn pause(&self, attempt: u32) -> Result<()> {
        let what = bucket_name(self.bucket);
        self.repository.after_lost_race(&what, attempt).await
    }
}

impl Repository {
    /// Makes a change of a bucket, within one time budget.
    async fn change_bucket<C: BucketChange>(
        &self,
        bucket: &BucketKey,
        options: &ChangeOptions,
        change: &C,
    ) -> Result<Made> {
        let reason = checked_reason(options.reason.as_deref())?;
        let key = match &options.idempotency_key {
            Some(key) if key.is_empty() || key.len() > MAX_KEY_LENGTH => {
                let rule = format!("it must have 1 to {MAX_KEY_LENGTH} bytes");
                return Err(Error::invalid("idempotency key", key, rule));
            }
            Some(key) => key.clone(),
            None => self.inner.table.entropy.text(32),
        };
        let repository = self.for_one_operation();
        repository.ready().await?;
        let store = OneChange {
            repository: &repository,
            bucket,
        };
        change_once(&store, bucket, &key, reason, change).await
    }
}

/// Details of an event, read back.
struct Reading<'a>(&'a BTreeMap<String, AttributeValue>);

impl Reading<'_> {
    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        match self.0.get(name) {
            Some(AttributeValue::N(digits)) => digits.parse().ok(),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(AttributeValue::S(text)) => Some(text),
            _ => None,
        }
    }
}
