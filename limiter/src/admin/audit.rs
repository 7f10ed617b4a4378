//! Audit events: written together with the change that they record, read newest first.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use zae_limiter_dynamo::{Query, Sort, key_of};
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::keys::{self, prefix};
use zae_limiter_schema::money::{MicroDollars, Prices};
use zae_limiter_schema::{
    AttributeValue, AuditAction, AuditEvent, AuditSubject, ConfigLevel, ConfigRecord, EntityId, Limit,
    LimitField, Timestamp, Ulid,
};

use super::paging::{self, Rows};
use crate::page::{Page, PageRequest};
use crate::{Error, Repository, Result};

/// How long events are kept if the system configuration does not say.
pub(super) const DEFAULT_RETENTION_DAYS: u32 = 90;
/// For how long the stored retention is remembered.
const RETENTION_TTL: Duration = Duration::from_mins(1);
const SECONDS_A_DAY: i64 = 86_400;

/// How far ahead of the clock the id of an event may be for later ids to follow it. Clocks of clients differ by less;
/// what is beyond is damage and must not stop all further events.
const MAX_AHEAD_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// What writing events needs to remember.
#[derive(Debug, Default)]
pub(super) struct AuditState {
    /// The retention, and until when on the clock's scale it may be used.
    retention: Mutex<Option<(u32, Duration)>>,
}

impl AuditState {
    pub(super) fn forget_retention(&self) {
        *self.retention.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

pub(super) type Details = BTreeMap<String, AttributeValue>;

/// The id of the event after the newest one of its subject, whichever clock that one was written by.
fn id_after(newest: Option<Ulid>, now: Timestamp, random: u128) -> Ulid {
    let id = Ulid::new(now, random);
    newest
        .filter(|newest| *newest >= id && newest.timestamp().millis() - now.millis() <= MAX_AHEAD_MILLIS)
        .and_then(Ulid::successor)
        .unwrap_or(id)
}

impl Repository {
    /// Audit events about an entity, a resource's defaults or the system's, newest first.
    ///
    /// ```
    /// use zae_limiter::{NewEntity, PageRequest, RateLimiter};
    /// use zae_limiter::audit::{AuditAction, AuditSubject};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().principal("ops@example.com").build_repository().await?;
    /// let entity = repository.create_entity(NewEntity::new("user-1")).await?;
    /// let events = repository.list_audit_events(&AuditSubject::Entity(entity.id), &PageRequest::default()).await?;
    /// assert_eq!(events.items[0].action, AuditAction::EntityCreated);
    /// assert_eq!(events.items[0].principal.as_deref(), Some("ops@example.com"));
    /// # Ok(()) }
    /// ```
    pub async fn list_audit_events(
        &self,
        subject: &AuditSubject,
        page: &PageRequest,
    ) -> Result<Page<AuditEvent>> {
        paging::query_page(
            &self.inner.table,
            &events_of(subject),
            Rows::AsTheyAre,
            page,
            |item| Ok(Some(AuditEvent::from_item(item)?)),
        )
        .await
    }

    /// The event to write together with a change. Must be called after the changed record was read: the condition on
    /// that record then makes sure that events sort in the order of the writes.
    async fn event(
        &self,
        subject: AuditSubject,
        action: AuditAction,
        resource: Option<&str>,
        details: Details,
    ) -> Result<AuditEvent> {
        let principal = match &self.actor {
            Some(actor) => Some(actor.to_string()),
            None => Box::pin(self.inner.principal.get()).await,
        };
        let retention = self.retention_days().await?;
        let newest = self.newest_event(&subject).await?;
        let now = self.now();
        Ok(AuditEvent {
            id: id_after(newest, now, self.inner.table.entropy.bits()),
            subject,
            timestamp: now,
            action,
            principal,
            resource: resource.map(str::to_owned),
            details,
            ttl: Some(now.seconds() + i64::from(retention) * SECONDS_A_DAY),
            unknown: BTreeMap::new(),
        })
    }

    /// The event of a change to an entity.
    pub(super) async fn entity_event(
        &self,
        entity: &EntityId,
        action: AuditAction,
        details: Details,
    ) -> Result<AuditEvent> {
        let subject = AuditSubject::Entity(entity.clone());
        self.event(subject, action, None, details).await
    }

    /// The event of a change of a bucket by hand.
    pub(super) async fn bucket_event(
        &self,
        bucket: &BucketKey,
        action: AuditAction,
        details: Details,
    ) -> Result<AuditEvent> {
        let subject = AuditSubject::Entity(bucket.entity.clone());
        self.event(subject, action, Some(bucket.resource.as_str()), details)
            .await
    }

    /// The event of a change to a level of configuration.
    pub(super) async fn config_event(
        &self,
        level: &ConfigLevel,
        action: AuditAction,
        details: Details,
    ) -> Result<AuditEvent> {
        self.event(subject_of(level), action, level.resource_key(), details)
            .await
    }

    async fn newest_event(&self, subject: &AuditSubject) -> Result<Option<Ulid>> {
        let query = events_of(subject).consistent().keys_only();
        let page = self.table().query_page(&query, None, Some(1)).await?;
        let key = page.items.first().and_then(key_of);
        Ok(key.and_then(|key| Ulid::parse(key.sk.strip_prefix(prefix::AUDIT_EVENT)?)))
    }

    async fn retention_days(&self) -> Result<u32> {
        let slot = &self.inner.audit.retention;
        let now = self.inner.clock.elapsed();
        let known = *slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((days, _)) = known.filter(|(_, until)| now < *until) {
            return Ok(days);
        }
        let stored = self
            .table()
            .get(&keys::config(&ConfigLevel::System), true)
            .await?;
        // A setting that cannot be read must not stop the change that would repair it.
        let days = stored
            .map(|item| ConfigRecord::readable(ConfigLevel::System, &item))
            .and_then(|config| config.system.audit_retention_days)
            .filter(|days| check_retention(*days).is_ok())
            .unwrap_or(DEFAULT_RETENTION_DAYS);
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some((days, now + RETENTION_TTL));
        Ok(days)
    }
}

fn events_of(subject: &AuditSubject) -> Query {
    let partition = keys::audit_partition(&subject.to_string());
    Query::table(partition, Sort::StartsWith(prefix::AUDIT_EVENT.to_owned())).newest_first()
}

/// The details of the event of a written configuration: the level as it is now.
pub(super) fn config_details(record: &ConfigRecord) -> Details {
    let mut details = Details::new();
    let limits = record.limits.iter().map(limit_details).collect();
    details.insert("limits".to_owned(), AttributeValue::L(limits));
    if let Some(temporary) = &record.temporary {
        let limits = temporary.limits.iter().map(limit_details).collect();
        let parts = [
            ("limits".to_owned(), AttributeValue::L(limits)),
            ("until".to_owned(), text(&temporary.until.to_string())),
        ];
        let parts = AttributeValue::M(parts.into_iter().collect());
        details.insert("temporary_limits".to_owned(), parts);
    }
    let policy = record.on_unavailable.map(|policy| text(policy.as_str()));
    if policy.is_some() || record.level == ConfigLevel::System {
        details.insert(
            "on_unavailable".to_owned(),
            policy.unwrap_or(AttributeValue::Null(true)),
        );
    }
    if let Some(mode) = record.mode {
        details.insert("mode".to_owned(), text(mode.as_str()));
    }
    if let Some(prices) = &record.prices {
        details.insert("prices".to_owned(), price_details(prices));
    }
    let settings = [
        (
            "audit_retention_days",
            record
                .system
                .audit_retention_days
                .map(|days| AttributeValue::N(days.to_string())),
        ),
        ("auto_update", record.system.auto_update.map(AttributeValue::Bool)),
        (
            "strict_version",
            record.system.strict_version.map(AttributeValue::Bool),
        ),
    ];
    details.extend(
        settings
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?))),
    );
    details
}

fn limit_details(limit: &Limit) -> AttributeValue {
    let value = |value| match value {
        LimitField::Number(number) => AttributeValue::N(number.to_string()),
        LimitField::Numbers(numbers) => {
            let numbers = numbers
                .into_iter()
                .map(|number| AttributeValue::N(number.to_string()));
            AttributeValue::L(numbers.collect())
        }
        LimitField::Text(value) => text(&value),
    };
    let details = limit.fields().into_iter();
    AttributeValue::M(
        details
            .map(|(name, field)| (name.to_owned(), value(field)))
            .collect(),
    )
}

/// Prices as they are written in a limits file.
fn price_details(prices: &Prices) -> AttributeValue {
    let money = |price: Option<MicroDollars>| price.map(|price| text(&price.to_string()));
    let tokens = |tokens: Option<u64>| tokens.map(|tokens| AttributeValue::N(tokens.to_string()));
    let token_limits = prices.token_limits.iter().map(|limit| text(limit.as_str()));
    let fields = [
        ("input", money(prices.input)),
        ("output", money(prices.output)),
        ("cached_input", money(prices.cached_input)),
        ("cache_write", money(prices.cache_write)),
        ("per_call", money(prices.per_call)),
        ("default_output", tokens(prices.default_output)),
        ("max_output", tokens(prices.max_output)),
        ("money_limit", Some(text(prices.money_limit.as_str()))),
        ("token_limits", Some(AttributeValue::L(token_limits.collect()))),
    ];
    let set = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    AttributeValue::M(set.collect())
}

pub(super) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(super) fn text_or_null<T: AsRef<str>>(value: Option<T>) -> AttributeValue {
    value.map_or(AttributeValue::Null(true), |value| text(value.as_ref()))
}

/// The subject of a level's events.
pub(super) fn subject_of(level: &ConfigLevel) -> AuditSubject {
    match level {
        ConfigLevel::Entity(entity, _) | ConfigLevel::EntityDefault(entity) => {
            AuditSubject::Entity(entity.clone())
        }
        ConfigLevel::Resource(resource) => AuditSubject::Resource(resource.clone()),
        ConfigLevel::System => AuditSubject::System,
    }
}

pub(super) fn check_retention(days: u32) -> Result<()> {
    if (1..=36_500).contains(&days) {
        return Ok(());
    }
    Err(Error::invalid(
        "audit_retention_days",
        days.to_string(),
        "it must be 1 to 36500 days",
    ))
}

#[cfg(test)]
mod tests;
