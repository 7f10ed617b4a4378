//! `/v1/leases/{id}`: adjust, commit and delete a lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zae_limiter::money::Usage;

use super::acquire::lease_time;
use super::problems::{BodyProblems, LeaseProblems, NoPricesProblem, Problems};
use super::usage::UsageBody;
use crate::app::App;
use crate::extract::{JsonBody, OptionalJsonBody, PathParameters, unique_keys};
use crate::leases::{Adjustments, Consumed};
use crate::problem::Problem;

/// What was used more or less than the lease took.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdjustRequest {
    /// Tokens by limit. A positive number was used in addition and may create debt. A negative number gives back, at
    /// most what the lease took. Adjustments add up. If the lease has several resources, it is the limit of the resource that
    /// took some of it, else of the only one that has it.
    #[schema(example = json!({ "tpm": -120 }))]
    #[serde(default, deserialize_with = "unique_keys")]
    adjust: BTreeMap<String, i64>,
    /// Tokens by resource and limit, for a limit that several resources of the lease have.
    #[serde(default)]
    also: Vec<AlsoAdjust>,
    /// What the call used in all. It replaces what was adjusted before of the limits that count tokens and money; `adjust`
    /// is added to it.
    usage: Option<UsageBody>,
}

/// What was used more or less of one resource.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlsoAdjust {
    /// A resource of the lease.
    #[schema(example = "budget")]
    resource: String,
    /// Tokens by limit.
    #[schema(example = json!({ "usd": 3 }))]
    #[serde(deserialize_with = "unique_keys")]
    adjust: BTreeMap<String, i64>,
}

impl From<AdjustRequest> for Adjustments {
    fn from(request: AdjustRequest) -> Self {
        let also = request.also.into_iter();
        Self {
            usage: request.usage.map(Usage::from),
            tokens: request.adjust,
            by_resource: also.map(|also| (also.resource, also.adjust)).collect(),
        }
    }
}

/// What a lease has consumed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaseState {
    /// The id of the lease.
    lease_id: String,
    /// Tokens by limit, adjustments included; of the first resource if the lease has several.
    consumed: BTreeMap<String, i64>,
    /// The same of the other resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also: Vec<AlsoConsumed>,
    /// Whether the change is written. If not, the server goes on trying.
    written: bool,
}

/// What a lease has consumed of another resource.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AlsoConsumed {
    /// The resource.
    #[schema(example = "budget")]
    resource: String,
    /// Tokens by limit, adjustments included.
    consumed: BTreeMap<String, i64>,
}

impl LeaseState {
    fn new(lease_id: String, consumed: Vec<Consumed>, written: bool) -> Self {
        let mut all = consumed.into_iter().map(|one| AlsoConsumed {
            resource: one.resource.to_string(),
            consumed: (one.tokens.into_iter())
                .map(|(limit, tokens)| (limit.to_string(), tokens))
                .collect(),
        });
        Self {
            lease_id,
            consumed: all.next().map(|first| first.consumed).unwrap_or_default(),
            also: all.collect(),
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
        NoPricesProblem,
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn adjust(
    State(app): State<Arc<App>>,
    PathParameters(name): PathParameters<String>,
    JsonBody(request): JsonBody<AdjustRequest>,
) -> Result<Json<LeaseState>, Problem> {
    let id = app.own_lease(&name)?;
    let consumed = app.leases.adjust(id, &request.into())?;
    Ok(Json(LeaseState::new(name, consumed, false)))
}

/// For how much longer to hold a lease.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewRequest {
    /// How long the lease is held from now on: a minute unless set.
    lease_ms: Option<u64>,
}

/// A lease that was renewed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RenewResponse {
    /// The id of the lease.
    lease_id: String,
    /// For how long the lease is held from now on.
    lease_ms: u64,
}

/// Renews a lease
///
/// The lease expires later. A client renews the lease of a call that takes longer than it.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/renew",
    tag = "leases",
    params(("id" = String, Path, description = "The id of the lease")),
    request_body(content = Option<RenewRequest>),
    responses(
        (status = 200, description = "The lease is renewed", body = RenewResponse),
        LeaseProblems,
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn renew(
    State(app): State<Arc<App>>,
    PathParameters(name): PathParameters<String>,
    OptionalJsonBody(request): OptionalJsonBody<RenewRequest>,
) -> Result<Json<RenewResponse>, Problem> {
    let id = app.own_lease(&name)?;
    let time = lease_time(request.lease_ms, &app.settings)?;
    if time.is_zero() {
        return Err(Problem::invalid("lease_ms", 0, "it must be greater than zero"));
    }
    app.leases.renew(id, time)?;
    Ok(Json(RenewResponse {
        lease_id: name,
        lease_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
    }))
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
        NoPricesProblem,
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn commit(
    State(app): State<Arc<App>>,
    PathParameters(name): PathParameters<String>,
    OptionalJsonBody(request): OptionalJsonBody<AdjustRequest>,
) -> Result<(StatusCode, Json<LeaseState>), Problem> {
    let id = app.own_lease(&name)?;
    let lease = app.leases.end_committed(id, &request.into())?;
    let consumed = Consumed::all(&lease);
    let written = settled(&app, lease.commit()).await?;
    Ok((status(written), Json(LeaseState::new(name, consumed, written))))
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
    PathParameters(name): PathParameters<String>,
) -> Result<(StatusCode, Json<LeaseState>), Problem> {
    let id = app.own_lease(&name)?;
    let lease = app.leases.end_rolled_back(id)?;
    let mut nothing = Consumed::all(&lease);
    for one in &mut nothing {
        one.tokens.values_mut().for_each(|tokens| *tokens = 0);
    }
    let written = settled(&app, lease.rollback()).await?;
    Ok((status(written), Json(LeaseState::new(name, nothing, written))))
}

/// Finishes the write even if the client disconnects. False if it is not done yet and goes on in the background.
async fn settled(
    app: &App,
    write: impl Future<Output = zae_limiter::Result<()>> + Send + 'static,
) -> Result<bool, Problem> {
    let written = tokio::spawn(write).await;
    if let Ok(written) = &written {
        app.note_write(written);
    }
    match written {
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
