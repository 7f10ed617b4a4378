//! `/v1/limits`: the stored limits of a level.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use zae_limiter::error::InvalidLimit;
use zae_limiter::records::{ConfigRecord, TemporaryLimits};
use zae_limiter::{
    ConfigChange, ConfigLevel, EntityId, Error, Limit, LimitKind, OnUnavailable, Resource, Timestamp,
};

use super::ActingRepository;
use super::mode::ModeName;
use crate::api::problems::{BodyProblems, Problems};
use crate::config_level::{level_of, resource_of};
use crate::extract::{JsonBody, QueryParameters};
use crate::problem::Problem;

const DEFAULT_PERIOD_SECONDS: u64 = 60;
const DEFAULT_EXPIRY_SECONDS: u64 = 600;

/// Which level: an entity on a resource, an entity on every resource, a resource, or with neither the system.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LevelQuery {
    /// The entity. Without one, the level is the resource or the system.
    entity: Option<String>,
    /// The resource. Without one, the level is the entity on every resource or the system.
    resource: Option<String>,
}

impl LevelQuery {
    pub(super) fn new(entity: Option<String>, resource: Option<String>) -> Self {
        Self { entity, resource }
    }

    pub(super) fn level(&self) -> Result<ConfigLevel, Error> {
        let entity = self.entity.as_ref().map(EntityId::parse).transpose()?;
        let resource = self.resource.as_ref().map(Resource::parse).transpose()?;
        Ok(level_of(entity, resource))
    }
}

/// A limit: a rate with `capacity` (a bucket of `burst` tokens that gets `refill_amount` tokens every
/// `refill_period_seconds`), a `quota` per period, or `concurrency`: calls in flight.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitBody {
    /// Its name.
    #[schema(example = "rpm")]
    name: String,
    /// A rate: tokens per period.
    #[schema(example = 100)]
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
    /// The most tokens that can be available at once: the capacity unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    /// Tokens that each period adds: the capacity unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    refill_amount: Option<u64>,
    /// The length of a period: 60 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    refill_period_seconds: Option<u64>,
    /// A quota: the amount per period.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<u64>,
    /// The period of a quota, such as `month in Europe/Berlin` or `5h from first use`.
    #[serde(skip_serializing_if = "Option::is_none")]
    per: Option<String>,
    /// Percentages of a quota at which an event is sent: none unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    alert_at: Option<Vec<u64>>,
    /// A limit on calls in flight: how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u64>,
    /// How long a permit lasts if its call neither ends nor renews it: 600 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_after_seconds: Option<u64>,
}

impl LimitBody {
    fn parse(self) -> Result<Limit, Error> {
        let rate = [
            self.capacity,
            self.burst,
            self.refill_amount,
            self.refill_period_seconds,
        ];
        let is_rate = rate.iter().any(Option::is_some);
        let of_quota = self.per.is_some() || self.alert_at.is_some();
        let mixes = || {
            let rule = "a limit has either capacity, or quota and per, or concurrency";
            Error::from(InvalidLimit::Text {
                text: self.name.clone(),
                rule: rule.to_owned(),
            })
        };
        match (self.capacity, self.quota, self.concurrency) {
            (Some(capacity), None, None) if !of_quota && self.expires_after_seconds.is_none() => {
                Ok(Limit::custom(
                    self.name,
                    capacity,
                    self.burst.unwrap_or(capacity),
                    self.refill_amount.unwrap_or(capacity),
                    self.refill_period_seconds.unwrap_or(DEFAULT_PERIOD_SECONDS),
                )?)
            }
            (None, Some(amount), None) if !is_rate && self.expires_after_seconds.is_none() => {
                let per = self.per.as_deref().ok_or_else(mixes)?;
                let quota = Limit::quota(&self.name, amount, per.parse()?)?;
                Ok(quota.alert_at(self.alert_at.unwrap_or_default())?)
            }
            (None, None, Some(permits)) if !is_rate && !of_quota => {
                let expiry = self.expires_after_seconds.unwrap_or(DEFAULT_EXPIRY_SECONDS);
                Ok(Limit::concurrency(
                    &self.name,
                    permits,
                    Duration::from_secs(expiry),
                )?)
            }
            _ => Err(mixes()),
        }
    }
}

impl From<&Limit> for LimitBody {
    fn from(limit: &Limit) -> Self {
        let nothing = Self {
            name: limit.name().to_string(),
            capacity: None,
            burst: None,
            refill_amount: None,
            refill_period_seconds: None,
            quota: None,
            per: None,
            alert_at: None,
            concurrency: None,
            expires_after_seconds: None,
        };
        match limit.kind() {
            LimitKind::Rate(rate) => Self {
                capacity: Some(rate.capacity().get()),
                burst: Some(rate.burst().get()),
                refill_amount: Some(rate.refill_amount().get()),
                refill_period_seconds: Some(rate.refill_period_seconds()),
                ..nothing
            },
            LimitKind::Quota(quota) => Self {
                quota: Some(quota.amount().get()),
                per: Some(quota.period().to_string()),
                alert_at: (!quota.alerts().is_empty())
                    .then(|| quota.alerts().percentages().map(u64::from).collect()),
                ..nothing
            },
            LimitKind::Concurrency(limit) => Self {
                concurrency: Some(limit.permits().get()),
                expires_after_seconds: Some(limit.expires_after_seconds()),
                ..nothing
            },
        }
    }
}

/// What happens to calls while the table is unavailable.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Policy {
    /// They go ahead, uncounted.
    Allow,
    /// They get an error.
    Block,
}

impl From<Policy> for OnUnavailable {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Allow => Self::Allow,
            Policy::Block => Self::Block,
        }
    }
}

impl From<OnUnavailable> for Policy {
    fn from(policy: OnUnavailable) -> Self {
        match policy {
            OnUnavailable::Allow => Self::Allow,
            OnUnavailable::Block => Self::Block,
        }
    }
}

/// Limits that end.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemporaryLimitsBody {
    /// The limits.
    limits: Vec<LimitBody>,
    /// When they end.
    until: String,
}

impl From<&TemporaryLimits> for TemporaryLimitsBody {
    fn from(temporary: &TemporaryLimits) -> Self {
        Self {
            limits: temporary.limits.iter().map(LimitBody::from).collect(),
            until: temporary.until.to_string(),
        }
    }
}

/// What a level stores.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LevelLimits {
    /// `system`, `resource`, `entity` or `entity_default`.
    level: String,
    /// The entity, if the level has one.
    entity_id: Option<String>,
    /// The resource, if the level has one.
    resource: Option<String>,
    /// Its limits. Without any, the next level decides.
    limits: Vec<LimitBody>,
    /// Limits that apply in place of these until they end.
    temporary_limits: Option<TemporaryLimitsBody>,
    /// Its policy. Without one, the next level decides.
    on_unavailable: Option<Policy>,
    /// Its mode, which `PUT /v1/mode` sets. Without one, the next level decides.
    mode: Option<ModeName>,
    /// How often it was written; null if it stores nothing.
    config_version: Option<u64>,
}

impl LevelLimits {
    fn new(level: &ConfigLevel, record: Option<&ConfigRecord>) -> Self {
        let limits = record.map(|record| record.limits.iter().map(LimitBody::from).collect());
        let now = std::time::SystemTime::now().into();
        let temporary = record.and_then(|record| record.temporary_at(now));
        Self {
            level: level.kind().to_string(),
            entity_id: level.entity().map(ToString::to_string),
            resource: resource_of(level).map(ToString::to_string),
            limits: limits.unwrap_or_default(),
            temporary_limits: temporary.map(TemporaryLimitsBody::from),
            on_unavailable: record.and_then(|record| record.on_unavailable).map(Policy::from),
            mode: record.and_then(|record| record.mode).map(ModeName::from),
            config_version: record.map(|record| record.config_version),
        }
    }
}

/// Shows the stored limits of a level
#[utoipa::path(
    get,
    path = "/v1/limits",
    tag = "limits",
    params(LevelQuery),
    responses((status = 200, description = "What the level stores", body = LevelLimits), Problems),
)]
pub(crate) async fn show(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<LevelQuery>,
) -> Result<Json<LevelLimits>, Problem> {
    let level = query.level()?;
    let record = repository.get_config(&level).await?;
    Ok(Json(LevelLimits::new(&level, record.as_ref())))
}

/// What a level shall store, in place of what it stores. Its mode and its prices stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetLimits {
    /// Its limits.
    limits: Vec<LimitBody>,
    /// Its policy; without one, the next level decides. Where the limits end, its policy stays.
    on_unavailable: Option<Policy>,
    /// The limits end at this time, such as `2026-12-01T00:00:00Z`. What the level stores applies again then.
    until: Option<String>,
    /// Why, for the audit trail.
    reason: Option<String>,
}

/// Sets the limits of a level
///
/// They reach live buckets within a minute.
#[utoipa::path(
    put,
    path = "/v1/limits",
    tag = "limits",
    params(LevelQuery),
    request_body = SetLimits,
    responses(
        (status = 200, description = "What the level stores now", body = LevelLimits),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn set(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<LevelQuery>,
    JsonBody(request): JsonBody<SetLimits>,
) -> Result<Json<LevelLimits>, Problem> {
    let level = query.level()?;
    let limits = request.limits.into_iter().map(LimitBody::parse);
    let change = ConfigChange::new().limits(limits.collect::<Result<Vec<_>, _>>()?);
    let mut change = match request.on_unavailable {
        Some(policy) => change.on_unavailable(policy.into()),
        None if request.until.is_some() => change,
        None => change.without_on_unavailable(),
    };
    if let Some(until) = &request.until {
        let rule = "it must be a time in UTC such as 2026-12-01T00:00:00Z";
        let end = Timestamp::parse(until).map_err(|_| Problem::invalid("until", until, rule))?;
        change = change.until(end);
    }
    if let Some(reason) = request.reason {
        change = change.reason(reason);
    }
    let record = repository.set_config(&level, change).await?;
    Ok(Json(LevelLimits::new(&level, Some(&record))))
}

/// Deletes the limits of a level
///
/// Its policy, mode and prices too. The next level decides from then on.
#[utoipa::path(
    delete,
    path = "/v1/limits",
    tag = "limits",
    params(LevelQuery),
    responses((status = 204, description = "The level stores nothing"), Problems),
)]
pub(crate) async fn delete(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<LevelQuery>,
) -> Result<StatusCode, Problem> {
    repository.delete_config(&query.level()?).await?;
    Ok(StatusCode::NO_CONTENT)
}
