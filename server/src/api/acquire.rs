//! `POST /v1/acquire`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zae_limiter::{Acquire, Admission, Lease, RateLimitHeaders};

use super::limit_state::LimitState;
use super::problems::{BodyProblems, ProblemBody, Problems, QuotaExceededBody};
use super::usage::EstimateBody;
use crate::app::App;
use crate::auth::Caller;
use crate::extract::{JsonBody, unique_keys};
use crate::idempotency::{IDEMPOTENCY_KEY, Running, Started};
use crate::leases::{LeaseId, Reservation};
use crate::problem::{Problem, ProblemKind, header_fields};
use crate::settings::Settings;

pub(in crate::api) const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// The longest idempotency key.
const MAX_KEY_LENGTH: usize = 255;

/// Tokens to take.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcquireRequest {
    /// Who makes the call.
    #[schema(example = "user-1")]
    entity: String,
    /// What it calls.
    #[schema(example = "gpt-4")]
    resource: String,
    /// Tokens by limit. All are taken, or none.
    #[schema(example = json!({ "rpm": 1, "tpm": 500 }))]
    #[serde(default, deserialize_with = "unique_keys")]
    consume: BTreeMap<String, u64>,
    /// What the call is expected to use. The prices of the resource turn it into tokens and money, in addition to
    /// `consume`; of limits that the entity does not have nothing is taken.
    estimate: Option<EstimateBody>,
    /// Whether the parent of the entity is charged too, on this resource. The entity says so for all resources unless set.
    cascade: Option<bool>,
    /// What the call takes of other resources of the same entity, such as a budget that several models share. Everything is
    /// taken, or nothing.
    #[serde(default)]
    also: Vec<AlsoConsume>,
    /// Wait up to this long for tokens instead of being refused at once.
    wait_ms: Option<u64>,
    /// How long the lease is held: a minute unless set. With 0 there is no lease: the tokens are consumed at once.
    lease_ms: Option<u64>,
}

/// Tokens to take of another resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlsoConsume {
    /// The resource. A call names each resource once.
    #[schema(example = "budget")]
    resource: String,
    /// Tokens by limit.
    #[schema(example = json!({ "usd": 12 }))]
    #[serde(default, deserialize_with = "unique_keys")]
    consume: BTreeMap<String, u64>,
    /// What the call is expected to use. The prices of the first resource of the call turn it into tokens and money.
    estimate: Option<EstimateBody>,
    /// Whether the parent of the entity is charged too, on this resource.
    cascade: Option<bool>,
}

/// Tokens that were taken.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct AcquireResponse {
    /// The id under which the lease is adjusted, committed or deleted; null if there is no lease.
    lease_id: Option<String>,
    /// For how long the lease is held. If it is not ended or renewed by then, it is committed as taken.
    lease_ms: u64,
    /// Whether the tokens were really counted.
    admission: AdmissionKind,
    /// Every limit after the tokens were taken, resource by resource: the entity's own first, then its parents'. Empty if not
    /// counted.
    limits: Vec<LimitState>,
    /// The limits that would have refused the call if they were enforced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    observed: Vec<LimitState>,
    #[serde(skip)]
    #[schema(ignore)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Whether tokens were taken from the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AdmissionKind {
    /// They were.
    Counted,
    /// The table is unavailable; the server admits its own share of the limits. Nothing is counted.
    Local,
    /// The table is unavailable and the policy is to allow. Nothing is counted.
    AllowedWhileUnavailable,
    /// Limits that are only observed did not allow the call. Nothing was taken of them: `observed` lists them.
    Observed,
    /// The limits are bypassed. Nothing is counted.
    Bypassed,
}

impl AdmissionKind {
    fn new(admission: Admission) -> Self {
        match admission {
            Admission::Local => Self::Local,
            Admission::AllowedWhileUnavailable => Self::AllowedWhileUnavailable,
            Admission::Observed => Self::Observed,
            Admission::Bypassed => Self::Bypassed,
            _ => Self::Counted,
        }
    }
}

/// Acquires tokens
///
/// Takes the tokens if all limits of the entity, and of the parents that it counts on, have enough, on every resource of the
/// call. The call then goes ahead, and the lease is adjusted and committed when its cost is known. With an `Idempotency-Key`, a request
/// that is sent again gets the response of the first one if that was granted. With several replicas it has to reach the same one: the
/// one that `Zae-Limiter-Replica` names, a field of every response to these requests.
#[utoipa::path(
    post,
    path = "/v1/acquire",
    tag = "leases",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "A key of the client's choice, up to 255 characters"),
        ("Zae-Limiter-Replica" = Option<String>, Header, description = "The field of an earlier response: that replica knows the key"),
    ),
    request_body = AcquireRequest,
    responses(
        (status = 200, description = "The tokens were taken", body = AcquireResponse),
        (status = 409, description = "A request with this idempotency key is in progress", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "The replica that the request names is gone", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "No limits or no prices are configured, or the idempotency key was used for another request", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "A limit is exceeded; nothing was taken", body = QuotaExceededBody, content_type = "application/problem+json"),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn acquire(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(request): JsonBody<AcquireRequest>,
) -> Result<Response, Problem> {
    let times = Times::of(&request, &app)?;
    let Some(key) = idempotency_key(&headers)? else {
        return Ok(take(&app, &request, times).await?.into_response());
    };
    let now = app.clock.elapsed();
    let running = match Running::begin(&app.keys, (caller.0, key), &request, now)? {
        Started::Now(running) => running,
        Started::Before(response) => {
            let replayed = [(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"))];
            return Ok((replayed, (*response).clone()).into_response());
        }
    };
    let response = take(&app, &request, times).await?;
    running.finish(Arc::new(response.clone()), app.clock.elapsed());
    Ok(response.into_response())
}

impl AcquireRequest {
    fn acquire(&self, app: &App) -> Acquire {
        let acquire = app.limiter.acquire(&self.entity, &self.resource);
        let first = take_part(acquire, &self.consume, self.estimate, self.cascade);
        self.also.iter().fold(first, |acquire, also| {
            let acquire = acquire.and(&also.resource);
            take_part(acquire, &also.consume, also.estimate, also.cascade)
        })
    }
}

/// Adds what is taken of one resource.
fn take_part(
    mut acquire: Acquire,
    consume: &BTreeMap<String, u64>,
    estimate: Option<EstimateBody>,
    cascade: Option<bool>,
) -> Acquire {
    for (limit, tokens) in consume {
        acquire = acquire.consume(limit, *tokens);
    }
    if let Some(estimate) = estimate {
        acquire = acquire.consume_estimate(&estimate.into());
    }
    match cascade {
        Some(cascade) => acquire.cascade(cascade),
        None => acquire,
    }
}

/// How long a request waits, and how long its lease is held.
#[derive(Debug, Clone, Copy)]
struct Times {
    wait: Option<Duration>,
    lease: Duration,
}

impl Times {
    fn of(request: &AcquireRequest, app: &App) -> Result<Self, Problem> {
        Ok(Self {
            wait: at_most("wait_ms", request.wait_ms, app.settings.max_wait)?,
            lease: lease_time(request.lease_ms, &app.settings)?,
        })
    }
}

/// How long a lease is held.
pub(super) fn lease_time(millis: Option<u64>, settings: &Settings) -> Result<Duration, Problem> {
    let time = at_most("lease_ms", millis, settings.max_lease_time)?;
    Ok(time.unwrap_or(settings.lease_time))
}

fn at_most(field: &str, millis: Option<u64>, most: Duration) -> Result<Option<Duration>, Problem> {
    match millis.map(Duration::from_millis) {
        Some(time) if time > most => {
            let rule = format!("it must be at most {}", most.as_millis());
            Err(Problem::invalid(field, time.as_millis(), &rule))
        }
        time => Ok(time),
    }
}

async fn take(app: &App, request: &AcquireRequest, times: Times) -> Result<AcquireResponse, Problem> {
    let slot = if times.lease.is_zero() {
        None
    } else {
        Some(app.leases.reserve()?)
    };
    let acquire = request.acquire(app);
    let result = match times.wait.filter(|wait| !wait.is_zero()) {
        Some(wait) => wait_for(app, acquire.wait_up_to(wait)).await?,
        None => {
            let _slot = app.pools.acquires.wait().await?;
            acquire.await
        }
    };
    app.note_acquire(&result);
    let lease = result?;
    let statuses = lease.statuses();
    let admission = AdmissionKind::new(lease.admission());
    let observed = lease.observed_limits();
    let lease_id = if let Some(slot) = slot {
        Some(hold(slot, lease, times.lease)?)
    } else {
        lease.commit().await?;
        None
    };
    Ok(AcquireResponse {
        lease_id: lease_id.map(|id| app.lease_name(id)),
        lease_ms: u64::try_from(times.lease.as_millis()).unwrap_or(u64::MAX),
        admission,
        limits: LimitState::all(&statuses),
        observed: LimitState::all(&observed),
        headers: header_fields(RateLimitHeaders::admitted(&statuses)),
    })
}

/// Waits for tokens, unless too many requests wait already or the server is told to stop.
async fn wait_for(app: &App, acquire: Acquire) -> Result<zae_limiter::Result<Lease>, Problem> {
    let _slot = app.pools.waiting.take()?;
    tokio::select! {
        biased;
        () = app.stopped() => {
            let detail = "nothing was taken; send the request to another server";
            Err(Problem::new(ProblemKind::ShuttingDown, detail))
        }
        result = acquire.into_future() => Ok(result),
    }
}

/// A lease without an id is dropped and gives its tokens back.
fn hold(slot: Reservation<'_>, lease: Lease, time: Duration) -> Result<LeaseId, Problem> {
    let id = LeaseId::random().map_err(|error| Problem::internal(&error))?;
    slot.hold(id, lease, time);
    Ok(id)
}

impl IntoResponse for AcquireResponse {
    fn into_response(mut self) -> Response {
        let headers = std::mem::take(&mut self.headers);
        let mut response = (StatusCode::OK, Json(self)).into_response();
        response.headers_mut().extend(headers);
        response
    }
}

/// The key, with or without the quotes of a structured field.
pub(in crate::api) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let key = quoted.unwrap_or(text);
    if key.is_empty() || key.len() > MAX_KEY_LENGTH {
        let rule = format!("it must have 1 to {MAX_KEY_LENGTH} visible ASCII characters");
        return Err(Problem::invalid("Idempotency-Key", "of this request", &rule));
    }
    Ok(Some(key.to_owned()))
}
