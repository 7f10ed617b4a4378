//! `/v1/leases/{id}`: adjust, commit and delete a lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::problems::{BodyProblems, LeaseProblems, Problems};
use crate::app::App;
use crate::extract::{JsonBody, OptionalJsonBody, PathParameters};
use crate::leases::{Adjustments, Consumed, LeaseId};
use crate::problem::{Problem, ProblemKind};

/// What was used more or less than the lease took.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdjustRequest {
    /// Tokens by limit. A positive number was used in addition and may create debt. A negative number gives back, at
    /// most what the lease took. Adjustments add up.
    #[schema(example = json!({ "tpm": -120 }))]
    #[serde(default)]
    adjust: BTreeMap<String, i64>,
}

/// What a lease has consumed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaseState {
    /// The id of the lease.
    lease_id: String,
    /// Tokens by limit, adjustments included.
    consumed: BTreeMap<String, i64>,
    /// Whether the change is written. If not, the server goes on trying.
    written: bool,
}

impl LeaseState {
    fn new(id: LeaseId, consumed: &Consumed, written: bool) -> Self {
        let consumed = consumed
            .iter()
            .map(|(limit, tokens)| (limit.to_string(), *tokens));
        Self {
            lease_id: id.to_string(),
            consumed: consumed.collect(),
            written,
        }
    }
}

/// Adjusts a lease
///
/// The adjustment is written when the lease is committed or expires.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/adjust",
    tag = "leases",
    params(("id" = String, Path, description = "The id of the lease")),
    request_body = AdjustRequest,
    responses(
        (status = 200, description = "The lease is adjusted", body = LeaseState),
        LeaseProblems,
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn adjust(
    State(app): State<Arc<App>>,
    PathParameters(id): PathParameters<String>,
    JsonBody(request): JsonBody<AdjustRequest>,
) -> Result<Json<LeaseState>, Problem> {
    let id = parse_id(&id)?;
    let adjustments: Adjustments = request.adjust;
    let consumed = app.leases.adjust(id, &adjustments)?;
    Ok(Json(LeaseState::new(id, &consumed, false)))
}

/// Commits a lease
///
/// Keeps the tokens and writes all adjustments, exactly once. Without a body nothing is adjusted.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/commit",
    tag = "leases",
    params(("id" = String, Path, description = "The id of the lease")),
    request_body(content = Option<AdjustRequest>),
    responses(
        (status = 200, description = "The lease has ended and its adjustments are written", body = LeaseState),
        (status = 202, description = "The lease has ended and its adjustments will be written", body = LeaseState),
        LeaseProblems,
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn commit(
    State(app): State<Arc<App>>,
    PathParameters(id): PathParameters<String>,
    OptionalJsonBody(request): OptionalJsonBody<AdjustRequest>,
) -> Result<(StatusCode, Json<LeaseState>), Problem> {
    let id = parse_id(&id)?;
    let lease = app.leases.end_committed(id, &request.adjust)?;
    let consumed = lease.consumed();
    let written = settled(lease.commit()).await?;
    Ok((status(written), Json(LeaseState::new(id, &consumed, written))))
}

/// Deletes a lease
///
/// Gives all its tokens back: the call did not happen.
#[utoipa::path(
    delete,
    path = "/v1/leases/{id}",
    tag = "leases",
    params(("id" = String, Path, description = "The id of the lease")),
    responses(
        (status = 200, description = "The lease has ended and its tokens are given back", body = LeaseState),
        (status = 202, description = "The lease has ended and its tokens will be given back", body = LeaseState),
        LeaseProblems,
        Problems,
    ),
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    PathParameters(id): PathParameters<String>,
) -> Result<(StatusCode, Json<LeaseState>), Problem> {
    let id = parse_id(&id)?;
    let lease = app.leases.end_rolled_back(id)?;
    let nothing = lease.consumed().into_keys().map(|limit| (limit, 0)).collect();
    let written = settled(lease.rollback()).await?;
    Ok((status(written), Json(LeaseState::new(id, &nothing, written))))
}

/// Finishes the write even if the client disconnects. False if it is not done yet and goes on in the background.
async fn settled(
    write: impl Future<Output = zae_limiter::Result<()>> + Send + 'static,
) -> Result<bool, Problem> {
    match tokio::spawn(write).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) if error.is_unavailable() => Ok(false),
        Ok(Err(error)) => Err(error.into()),
        Err(panicked) => Err(Problem::internal(&panicked)),
    }
}

fn status(written: bool) -> StatusCode {
    if written {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    }
}

fn parse_id(text: &str) -> Result<LeaseId, Problem> {
    text.parse().map_err(|_| {
        Problem::new(
            ProblemKind::LeaseNotFound,
            "the id must be the lease_id of a response to /v1/acquire",
        )
    })
}
