//! How limits stand, as JSON.

use serde::Serialize;
use utoipa::ToSchema;
use zae_limiter::LimitStatus;

/// How one limit stands next to what was requested of it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct LimitState {
    /// The entity whose limit it is: the requested entity or one of its parents.
    entity_id: String,
    /// The resource.
    resource: String,
    /// The name of the limit.
    limit_name: String,
    /// Tokens per refill period.
    capacity: u64,
    /// The most tokens that can be available at once.
    burst: u64,
    /// Tokens that are available. A negative number is debt.
    available: i64,
    /// Tokens of a quota that were used in its period, or permits that calls in flight hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<i64>,
    /// Tokens that were requested.
    requested: u64,
    /// Whether too few were available.
    exceeded: bool,
    /// When the requested tokens will be available; null if never.
    retry_after_seconds: Option<f64>,
    /// When the period of a quota ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<String>,
    /// Tokens that a quota was topped up with in this period, beyond its amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    topped_up: Option<u64>,
}

impl From<&LimitStatus> for LimitState {
    fn from(status: &LimitStatus) -> Self {
        Self {
            entity_id: status.entity.to_string(),
            resource: status.resource.to_string(),
            limit_name: status.limit.name().to_string(),
            capacity: status.limit.capacity().get(),
            burst: status.limit.burst().get(),
            available: status.available,
            used: status.used,
            requested: status.requested,
            exceeded: status.refused || status.observed,
            retry_after_seconds: status.retry_after.seconds(),
            resets_at: status.reset.map(|reset| reset.at.to_string()),
            topped_up: Some(status.topped_up).filter(|amount| *amount > 0),
        }
    }
}

impl LimitState {
    pub(crate) fn all(statuses: &[LimitStatus]) -> Vec<Self> {
        statuses.iter().map(Self::from).collect()
    }
}
