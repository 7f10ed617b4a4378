//! Audit events: written with the change they tell of, read newest first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use zae_limiter_dynamo::{Query, Sort};
use zae_limiter_schema::keys::{self, prefix};
use zae_limiter_schema::{
    AttributeValue, AuditAction, AuditEvent, AuditSubject, ConfigLevel, ConfigRecord, Limit, Timestamp, Ulid,
};

use super::paging::Rows;
use crate::page::{Page, PageRequest};
use crate::{Error, Repository, Result};

/// How long events are kept where the system configuration says nothing.
pub(super) const DEFAULT_RETENTION_DAYS: u32 = 90;
/// For how long the stored retention is remembered.
const RETENTION_TTL: Duration = Duration::from_mins(1);
const SECONDS_A_DAY: i64 = 86_400;

/// What writing events needs to remember.
#[derive(Debug, Default)]
pub(super) struct AuditState {
    last_id: Mutex<Option<(Timestamp, u128)>>,
    /// The retention, and until when on the clock's scale it may be used.
    retention: Mutex<Option<(u32, Duration)>>,
}

impl AuditState {
    /// An id that sorts behind every earlier one of this process.
    fn next_id(&self, now: Timestamp, chance: u128) -> Ulid {
        let mut last = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
        let (moment, chance) = match *last {
            Some((moment, chance)) if moment >= now => (moment, chance.wrapping_add(1)),
            // The top bit stays free, so that counting up does not overflow into the time.
            _ => (now, chance & ((1 << 79) - 1)),
        };
        *last = Some((moment, chance));
        Ulid::new(moment, chance)
    }

    pub(super) fn forget_retention(&self) {
        *self.retention.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

pub(super) type Details = BTreeMap<String, AttributeValue>;

impl Repository {
    /// Audit events about an entity, a resource's defaults or the system's, newest first.
    ///
    /// ```
    /// use zae_limiter::{AuditAction, AuditSubject, NewEntity, PageRequest, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let repository = RateLimiter::embedded().principal("ops@example.com").build_repository().await?;
    /// let entity = repository.create_entity(NewEntity::new("user-1")).await?;
    /// let events = repository.audit_events(&AuditSubject::Entity(entity.id), &PageRequest::default()).await?;
    /// assert_eq!(events.items[0].action, AuditAction::EntityCreated);
    /// assert_eq!(events.items[0].principal.as_deref(), Some("ops@example.com"));
    /// # Ok(()) }
    /// ```
    pub async fn audit_events(&self, subject: &AuditSubject, page: &PageRequest) -> Result<Page<AuditEvent>> {
        let partition = keys::audit_partition(&subject.to_string());
        let query = Query::table(partition, Sort::StartsWith(prefix::AUDIT_EVENT.to_owned())).newest_first();
        self.page_of(&query, Rows::AsTheyAre, page, |item| {
            Ok(Some(AuditEvent::from_item(item)?))
        })
        .await
    }

    /// The event to write together with a change.
    pub(super) async fn event(
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
        let now = self.now();
        Ok(AuditEvent {
            id: self.inner.audit.next_id(now, self.inner.table.entropy.bits()),
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

/// What the event of a written configuration tells: the level as it is now.
pub(super) fn config_details(record: &ConfigRecord) -> Details {
    let mut details = Details::new();
    let limits = record.limits.iter().map(limit_details).collect();
    details.insert("limits".to_owned(), AttributeValue::L(limits));
    let policy = record.on_unavailable.map(|policy| text(policy.as_str()));
    if policy.is_some() || record.level == ConfigLevel::System {
        details.insert(
            "on_unavailable".to_owned(),
            policy.unwrap_or(AttributeValue::Null(true)),
        );
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
    let number = |value: u64| AttributeValue::N(value.to_string());
    AttributeValue::M(HashMap::from([
        ("name".to_owned(), text(limit.name().as_str())),
        ("capacity".to_owned(), number(limit.capacity().get())),
        ("burst".to_owned(), number(limit.burst().get())),
        ("refill_amount".to_owned(), number(limit.refill_amount().get())),
        (
            "refill_period_seconds".to_owned(),
            number(limit.refill_period_seconds()),
        ),
    ]))
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
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_process_sort_in_the_order_of_the_changes_even_if_the_clock_goes_back() {
        let state = AuditState::default();
        let moments = [1_000, 1_000, 1_001, 999, 999, 1_002].map(Timestamp::from_millis);
        let ids: Vec<_> = moments
            .iter()
            .map(|now| state.next_id(*now, u128::MAX).to_string())
            .collect();
        assert!(
            ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]),
            "{ids:?}"
        );
    }
}
