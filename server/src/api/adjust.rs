//! `POST /v1/adjust`: a correction without a lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zae_limiter::Adjust;

use super::acquire::{IDEMPOTENCY_REPLAYED, idempotency_key};
use super::problems::{BodyProblems, ProblemBody, Problems};
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{JsonBody, unique_keys};
use crate::idempotency::{Running, Started};
use crate::problem::Problem;

/// What a call used more or less than was taken for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdjustBucketRequest {
    /// Who made the call.
    #[schema(example = "user-1")]
    entity: String,
    /// What it called.
    #[schema(example = "gpt-4")]
    resource: String,
    /// Tokens by limit. A positive number was used in addition and may create debt. A negative number gives back.
    #[schema(example = json!({ "tpm": -120 }))]
    #[serde(deserialize_with = "unique_keys")]
    adjust: BTreeMap<String, i64>,
    /// Whether the parent of the entity is corrected too: as in the call. The entity says so unless set.
    cascade: Option<bool>,
    /// What the call used of other resources.
    #[serde(default)]
    also: Vec<AlsoAdjustBucket>,
}

/// What a call used more or less of another resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlsoAdjustBucket {
    /// The resource.
    #[schema(example = "budget")]
    resource: String,
    /// Tokens by limit.
    #[schema(example = json!({ "usd": 3 }))]
    #[serde(deserialize_with = "unique_keys")]
    adjust: BTreeMap<String, i64>,
    /// Whether the parent of the entity is corrected too, on this resource.
    cascade: Option<bool>,
}

/// A correction that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct AdjustBucketResponse {
    /// Whether the change is written. If not, the server goes on trying.
    written: bool,
}

/// Adjusts without a lease
///
/// For a call whose lease cannot be reached because its server is gone (410 `lease-owner-gone`). The tokens that the lease took
/// stay taken; this corrects them. Applies to the entity and to the parents that it counts on. With an `Idempotency-Key`, a
/// request that is sent again changes nothing. With several replicas it has to reach the same one: the one that
/// `Zae-Limiter-Replica` names, a field of every response to these requests.
#[utoipa::path(
    post,
    path = "/v1/adjust",
    tag = "leases",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "A key of the client's choice, up to 255 characters"),
        ("Zae-Limiter-Replica" = Option<String>, Header, description = "The field of an earlier response: that replica knows the key"),
    ),
    request_body = AdjustBucketRequest,
    responses(
        (status = 200, description = "The adjustment is written", body = AdjustBucketResponse),
        (status = 202, description = "The adjustment will be written", body = AdjustBucketResponse),
        (status = 409, description = "A request with this idempotency key is in progress", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "The replica that the request names is gone", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "No limits are configured, or the idempotency key was used for another request", body = ProblemBody, content_type = "application/problem+json"),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn adjust(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<AdjustBucketRequest>,
) -> Result<Response, Problem> {
    let Some(key) = idempotency_key(&headers)? else {
        return Ok(apply(&app, &request).await?.into_response());
    };
    let now = app.clock.elapsed();
    match Running::begin(&app.adjust_keys, (caller.0, key), &request, now)? {
        Started::Now(running) => {
            let response = apply(&app, &request).await?;
            running.finish(response.clone(), app.clock.elapsed());
            Ok(response.into_response())
        }
        Started::Before(response) => {
            let replayed = [(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"))];
            Ok((replayed, response).into_response())
        }
    }
}

/// Finishes the write even if the client disconnects.
async fn apply(app: &App, request: &AdjustBucketRequest) -> Result<AdjustBucketResponse, Problem> {
    let request = request.clone();
    let mut adjust = (app.limiter).adjust(request.entity, request.resource, request.adjust);
    adjust = cascading(adjust, request.cascade);
    for also in request.also {
        adjust = cascading(adjust.and(also.resource, also.adjust), also.cascade);
    }
    let write = tokio::spawn(adjust.into_future());
    let result = write.await.map_err(|panicked| Problem::internal(&panicked))?;
    app.note_write(&result);
    Ok(AdjustBucketResponse { written: result? })
}

fn cascading(adjust: Adjust, cascade: Option<bool>) -> Adjust {
    match cascade {
        Some(cascade) => adjust.cascade(cascade),
        None => adjust,
    }
}

impl IntoResponse for AdjustBucketResponse {
    fn into_response(self) -> Response {
        let status = if self.written {
            StatusCode::OK
        } else {
            StatusCode::ACCEPTED
        };
        (status, Json(self)).into_response()
    }
}
