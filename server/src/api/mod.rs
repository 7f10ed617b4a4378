//! The HTTP interface: routes and their OpenAPI document, which come from the same annotations.

mod acquire;
mod admin;
mod available;
mod health;
mod lease;
mod limit_state;
mod metrics;
mod problems;

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Uri;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::SemaphorePermit;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use acquire::{AcquireRequest, AcquireResponse};

use crate::app::App;
use crate::auth::{Scope, authorize, check_local_host};
use crate::problem::{Problem, ProblemKind};

const BEARER: &str = "bearer";

#[derive(OpenApi)]
#[openapi(info(
    title = "zae-limiter",
    description = "Rate limits for calls whose cost is known only afterwards."
))]
struct Base;

/// The routes, and the document that describes them.
pub(crate) fn router(app: &Arc<App>) -> (Router, Document) {
    let (router, document) = OpenApiRouter::with_openapi(Base::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .merge(protected(app, Scope::Acquire, leases()))
        .merge(protected(app, Scope::Read, reads()))
        .merge(protected(app, Scope::Admin, admin::routes()))
        .split_for_parts();
    let document = with_security(document);
    let served = Json(document.clone());
    let router = router
        .route("/openapi.json", get(move || async move { served }))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(app.clone());
    (router, document)
}

/// Nothing but `/healthz`, for a server that has no API.
pub(crate) fn health_router() -> Router {
    Router::new()
        .route("/healthz", get(health::healthz))
        .fallback(no_api)
}

fn leases() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(acquire::acquire))
        .routes(routes!(lease::adjust))
        .routes(routes!(lease::commit))
        .routes(routes!(lease::delete))
}

fn reads() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(available::available))
        .routes(routes!(metrics::metrics))
}

/// Only a limited number of requests at a time, and only with the scope.
fn protected(app: &Arc<App>, scope: Scope, routes: OpenApiRouter<Arc<App>>) -> OpenApiRouter<Arc<App>> {
    routes.route_layer(middleware::from_fn_with_state((app.clone(), scope), admit))
}

/// Middleware: both, in one layer, since every layer costs time on the way of every acquire.
async fn admit(
    State((app, scope)): State<(Arc<App>, Scope)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let _permit = request_slot(&app)?;
    if let Some(tokens) = &app.tokens {
        let caller = authorize(tokens, request.headers(), scope)?;
        request.extensions_mut().insert(caller);
    }
    Ok(next.run(request).await)
}

fn request_slot(app: &App) -> Result<SemaphorePermit<'_>, Problem> {
    app.requests.try_acquire().map_err(|_| {
        let detail = "too many requests are being served; try again later";
        Problem::new(ProblemKind::Overloaded, detail)
    })
}

/// Middleware: refuses a request if too many are being served.
pub(crate) async fn limit_requests(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let _permit = request_slot(&app)?;
    Ok(next.run(request).await)
}

/// Middleware: counts and logs every response. A server without tokens refuses requests that do not name this machine.
pub(crate) async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let start = app.clock.elapsed();
    let named = match app.tokens {
        Some(_) => Ok(()),
        None => check_local_host(&request),
    };
    let response = match named {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let status = response.status().as_u16();
    app.metrics.responded(status);
    tracing::debug!(
        %method,
        route = route.as_ref().map_or("", MatchedPath::as_str),
        status,
        micros = (app.clock.elapsed() - start).as_micros(),
        "responded"
    );
    response
}

async fn not_found(uri: Uri) -> Problem {
    let detail = format!("there is no {}; /openapi.json lists the paths", uri.path());
    Problem::new(ProblemKind::NotFound, detail)
}

async fn no_api(uri: Uri) -> Problem {
    let detail = format!("there is no {}; this server serves only /ui", uri.path());
    Problem::new(ProblemKind::NotFound, detail)
}

async fn method_not_allowed() -> Problem {
    Problem::new(ProblemKind::MethodNotAllowed, "/openapi.json lists the methods")
}

/// Everything under `/v1` takes a bearer token.
fn with_security(mut document: Document) -> Document {
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, scheme);
    document.security = Some(vec![
        SecurityRequirement::default(),
        SecurityRequirement::new(BEARER, [] as [&str; 0]),
    ]);
    document
}
