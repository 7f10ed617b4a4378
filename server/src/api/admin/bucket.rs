//! `POST /v1/top-up` and `POST /v1/reset`: changing what is left of limits now.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zae_limiter::{ResetReport, TopUpReport};

use super::ActingRepository;
use crate::api::acquire::{IDEMPOTENCY_REPLAYED, idempotency_key};
use crate::api::problems::{BodyProblems, ProblemBody, Problems};
use crate::extract::JsonBody;
use crate::problem::Problem;

/// What to add to a limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopUpRequest {
    /// Whose limit.
    #[schema(example = "team-1")]
    entity: String,
    /// On what.
    #[schema(example = "gpt-4")]
    resource: String,
    /// A quota or a rate.
    #[schema(example = "spend")]
    limit: String,
    /// How much: to a quota for the period that runs, to a rate up to its burst.
    #[schema(example = 200)]
    amount: u64,
    /// Why, for the audit trail.
    reason: Option<String>,
}

/// A top-up that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TopUpResponse {
    /// Whose limit.
    entity_id: String,
    /// On what.
    resource: String,
    /// The limit.
    limit_name: String,
    /// What was asked for.
    amount: u64,
    /// What was added: less where a rate was nearly full.
    added: u64,
    /// What was left afterwards.
    left: i64,
    /// The end of the quota's period, until which it counts. Other kinds have none.
    period_end: Option<String>,
    /// The id of the audit event.
    event_id: String,
    /// It was made before, under the same idempotency key.
    repeated: bool,
}

impl From<TopUpReport> for TopUpResponse {
    fn from(report: TopUpReport) -> Self {
        Self {
            entity_id: report.entity_id.to_string(),
            resource: report.resource.to_string(),
            limit_name: report.limit_name.to_string(),
            amount: report.amount,
            added: report.added,
            left: report.left,
            period_end: report.period_end.map(|end| end.to_string()),
            event_id: report.event_id,
            repeated: report.repeated,
        }
    }
}

/// Tops a limit up
///
/// Adds to what is left of a limit now. Usage does not change. With an `Idempotency-Key`, a request that is sent again, to
/// whichever server, is made once for as long as its audit event is kept.
#[utoipa::path(
    post,
    path = "/v1/top-up",
    tag = "limits",
    params(("Idempotency-Key" = Option<String>, Header, description = "A key of the client's choice, up to 255 characters")),
    request_body = TopUpRequest,
    responses(
        (status = 200, description = "It was added, now or under this key before", body = TopUpResponse),
        (status = 422, description = "No limits are configured, or the idempotency key was used for another request", body = ProblemBody, content_type = "application/problem+json"),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn top_up(
    ActingRepository(repository): ActingRepository,
    headers: HeaderMap,
    JsonBody(request): JsonBody<TopUpRequest>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers)?;
    let mut change = repository.top_up(request.entity, request.resource, request.limit, request.amount);
    if let Some(reason) = request.reason {
        change = change.reason(reason);
    }
    if let Some(key) = key {
        change = change.idempotency_key(key);
    }
    let report = change.await?;
    Ok(respond(report.repeated, TopUpResponse::from(report)))
}

/// What to reset.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetRequest {
    /// Whose limits.
    #[schema(example = "team-1")]
    entity: String,
    /// On what.
    #[schema(example = "gpt-4")]
    resource: String,
    /// Which limits: all unless set.
    #[schema(example = json!(["spend"]))]
    limits: Option<Vec<String>>,
    /// Why, for the audit trail.
    reason: Option<String>,
}

/// A reset that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResetResponse {
    /// Whose limits.
    entity_id: String,
    /// On what.
    resource: String,
    /// The limits that were reset: none if nothing is used yet.
    limits: Vec<String>,
    /// The permits of calls in flight were revoked.
    permits_revoked: bool,
    /// The id of the audit event.
    event_id: String,
    /// It was made before, under the same idempotency key.
    repeated: bool,
}

impl From<ResetReport> for ResetResponse {
    fn from(report: ResetReport) -> Self {
        Self {
            entity_id: report.entity_id.to_string(),
            resource: report.resource.to_string(),
            limits: report.limits.iter().map(ToString::to_string).collect(),
            permits_revoked: report.permits_revoked,
            event_id: report.event_id,
            repeated: report.repeated,
        }
    }
}

/// Resets limits
///
/// Makes limits as if nothing were used. A reset of a limit on calls in flight revokes the permits of all calls in flight
/// on the bucket. Usage does not change. With an `Idempotency-Key`, a request that is sent again, to whichever server, is made
/// once for as long as its audit event is kept.
#[utoipa::path(
    post,
    path = "/v1/reset",
    tag = "limits",
    params(("Idempotency-Key" = Option<String>, Header, description = "A key of the client's choice, up to 255 characters")),
    request_body = ResetRequest,
    responses(
        (status = 200, description = "The limits were reset, now or under this key before", body = ResetResponse),
        (status = 422, description = "The idempotency key was used for another request", body = ProblemBody, content_type = "application/problem+json"),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn reset(
    ActingRepository(repository): ActingRepository,
    headers: HeaderMap,
    JsonBody(request): JsonBody<ResetRequest>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers)?;
    let limits = match request.limits {
        Some(limits) if limits.is_empty() => {
            return Err(Problem::invalid(
                "limits",
                "[]",
                "name at least one, or leave it out for all",
            ));
        }
        limits => limits.unwrap_or_default(),
    };
    let mut change = repository.reset(request.entity, request.resource);
    for limit in limits {
        change = change.limit(limit);
    }
    if let Some(reason) = request.reason {
        change = change.reason(reason);
    }
    if let Some(key) = key {
        change = change.idempotency_key(key);
    }
    let report = change.await?;
    Ok(respond(report.repeated, ResetResponse::from(report)))
}

fn respond(repeated: bool, body: impl Serialize) -> Response {
    let mut response = Json(body).into_response();
    if repeated {
        let replayed = HeaderValue::from_static("true");
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, replayed);
    }
    response
}
