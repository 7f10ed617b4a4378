//! The gateway as an axum router. What it knows about providers is in `api`, `prompt`, `usage` and `event_stream`, without
//! any I/O.

mod api;
mod cost;
mod event_stream;
mod prompt;
mod upstream;
mod usage;

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use serde_json::json;
use zae_limiter::RateLimiter;
use zae_limiter::tower::{Call, RateLimitLayer};

use api::Api;
use cost::TokenCost;
use prompt::Prompt;
pub(crate) use upstream::Upstreams;

/// The longest request body.
const MAX_REQUEST: usize = 16 << 20;

/// What the gateway needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The entity of each caller, by the key that it sends instead of the provider's.
    pub(crate) callers: HashMap<String, String>,
    pub(crate) upstreams: Upstreams,
    /// How many of every 100 input tokens that a provider read from its cache count.
    pub(crate) cached_percent: u8,
}

/// Who calls.
#[derive(Debug, Clone)]
struct Caller(String);

/// The limits `rpm`, `tpm` and `parallel` of the model, for every caller. A call holds its permit of `parallel` until the last byte
/// of the response, or until its client hangs up.
pub(crate) fn router(settings: Settings, limiter: RateLimiter) -> Router {
    let settings = Arc::new(settings);
    let cached_percent = settings.cached_percent;
    let limits = RateLimitLayer::new(limiter, move |request: &Request| {
        let Caller(entity) = request.extensions().get()?;
        let prompt: &Arc<Prompt> = request.extensions().get()?;
        let call = Call::new(entity, &prompt.model)
            .consume("rpm", 1)
            .consume("tpm", prompt.estimate)
            .consume("parallel", 1)
            .corrected_by(TokenCost::new(prompt.api, prompt.estimate, cached_percent))
            // Providers charge nothing for errors.
            .refund_if(|head| !head.status.is_success());
        Some(call)
    });
    Router::new()
        .fallback(forward)
        .with_state(settings.clone())
        .layer(limits)
        .layer(from_fn_with_state(settings, read))
}

/// Authenticates the caller and reads the prompt, before anything is limited.
async fn read(State(settings): State<Arc<Settings>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let bearer = head
        .headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    let api_key = head
        .headers
        .get("x-api-key")
        .and_then(|value| value.to_str().ok());
    let entity = bearer.or(api_key).and_then(|key| settings.callers.get(key));
    let Some(entity) = entity else {
        return failure(StatusCode::UNAUTHORIZED, "the key is unknown");
    };
    let Some(api) = Api::at(head.uri.path()) else {
        return failure(StatusCode::NOT_FOUND, "this gateway does not know the path");
    };
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        return failure(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is too large or incomplete",
        );
    };
    let prompt = match Prompt::parse(api, &body) {
        Ok(prompt) => prompt,
        Err(reason) => return failure(StatusCode::BAD_REQUEST, &reason),
    };
    head.extensions.insert(Caller(entity.clone()));
    head.extensions.insert(Arc::new(prompt));
    next.run(Request::from_parts(head, Body::empty())).await
}

/// Sends an admitted request on.
async fn forward(
    State(settings): State<Arc<Settings>>,
    Extension(prompt): Extension<Arc<Prompt>>,
    request: Request,
) -> Response {
    let upstream = settings.upstreams.of(prompt.api.provider());
    match upstream.send(request.into_parts().0, &prompt.body).await {
        Ok(response) => response,
        Err(reason) => failure(StatusCode::BAD_GATEWAY, &reason),
    }
}

fn failure(status: StatusCode, reason: &str) -> Response {
    (status, Json(json!({ "error": { "message": reason } }))).into_response()
}
