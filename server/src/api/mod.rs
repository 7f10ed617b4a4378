//! The HTTP interface: routes and their OpenAPI document, which come from the same annotations.

mod acquire;
mod adjust;
mod admin;
mod available;
mod health;
mod lease;
mod limit_state;
mod metrics;
mod problems;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::extract::{MatchedPath, Path, State};
use axum::http::Request as HttpRequest;
use axum::http::{Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http_body_util::BodyExt as _;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use acquire::{AcquireRequest, AcquireResponse};
pub(crate) use adjust::{AdjustBucketRequest, AdjustBucketResponse};

use crate::app::App;
use crate::auth::{Caller, Scope, authorize, check_local_host};
use crate::extract::buffered;
use crate::problem::{Problem, ProblemKind};
use crate::replicas::{Forward, Location, REPLICA, owner_gone, replica_gone};

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
        .merge(calls(app))
        .merge(leases(app))
        .merge(protected(app, Scope::Read, reads()))
        .merge(protected(app, Scope::Admin, admin::routes()))
        .split_for_parts();
    let document = with_security(document);
    // Rendered once: a client that requests it often costs no memory.
    let served = Bytes::from(serde_json::to_vec(&document).unwrap_or_default());
    let router = router
        .route(
            "/openapi.json",
            get(move || async move { ([(header::CONTENT_TYPE, "application/json")], served) }),
        )
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

/// The requests with idempotency keys, which another replica may know.
fn calls(app: &Arc<App>) -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(acquire::acquire))
        .routes(routes!(adjust::adjust))
        .route_layer(middleware::from_fn_with_state(app.clone(), admit_call))
}

/// The requests about a lease, which may be on another replica.
fn leases(app: &Arc<App>) -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(lease::adjust))
        .routes(routes!(lease::renew))
        .routes(routes!(lease::commit))
        .routes(routes!(lease::delete))
        .route_layer(middleware::from_fn_with_state(app.clone(), admit_lease))
}

fn reads() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(available::available))
        .routes(routes!(metrics::metrics))
}

/// Only with the scope, and only a limited number of requests at a time.
fn protected(app: &Arc<App>, scope: Scope, routes: OpenApiRouter<Arc<App>>) -> OpenApiRouter<Arc<App>> {
    routes.route_layer(middleware::from_fn_with_state((app.clone(), scope), admit))
}

/// Middleware: checks the token, reads the body, and then takes a slot. A client that sends its body slowly has no slot.
async fn admit(
    State((app, scope)): State<(Arc<App>, Scope)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if let Some(tokens) = app.tokens() {
        let caller = authorize(&tokens, request.headers(), scope)?;
        request.extensions_mut().insert(caller);
    }
    let settings = &app.settings;
    let request = buffered(request, settings.max_body_bytes, settings.body_timeout).await?;
    let _slot = app.pools.api.take()?;
    Ok(next.run(request).await)
}

/// Middleware: like [`admit`], and sends a request with an idempotency key to the replica that it names. A replica that forwards
/// a request has checked the token.
async fn admit_call(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let replica = app.replica.as_ref();
    let forwarded = replica.and_then(|replica| replica.forwarded_caller(&request));
    let is_forwarded = forwarded.is_some();
    let caller = match (forwarded, app.tokens()) {
        (Some(caller), _) => caller,
        (None, Some(tokens)) => authorize(&tokens, request.headers(), Scope::Acquire)?,
        (None, None) => Caller(None),
    };
    request.extensions_mut().insert(caller.clone());
    let settings = &app.settings;
    let request = buffered(request, settings.max_body_bytes, settings.body_timeout).await?;
    let _slot = app.pools.api.take()?;
    let Some(replica) = replica else {
        return Ok(next.run(request).await);
    };
    // A replica that restarted at the address has to find out, too.
    let owner = replica.owner_of_key(request.headers())?;
    if let Some(owner) = owner.filter(|_| !is_forwarded) {
        let forward = Forward {
            owner: &owner,
            caller: Some(&caller),
            wait: settings.max_wait,
            gone: replica_gone,
        };
        return replica.forward(forward, with_bytes(request).await?).await;
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(REPLICA, replica.name());
    Ok(response)
}

/// Middleware: like [`admit`], and sends the request to the replica that holds the lease. A replica that forwards a request
/// has checked the token.
async fn admit_lease(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let replica = app.replica.as_ref();
    let forwarded = replica.is_some_and(|replica| replica.forwarded_caller(&request).is_some());
    if let (Some(tokens), false) = (app.tokens(), forwarded) {
        authorize(&tokens, request.headers(), Scope::Acquire)?;
    }
    let settings = &app.settings;
    let request = buffered(request, settings.max_body_bytes, settings.body_timeout).await?;
    let _slot = app.pools.api.take()?;
    match (replica, app.locate_lease(&name)?) {
        (Some(replica), Location::At(owner)) if !forwarded => {
            let forward = Forward {
                owner: &owner,
                caller: None,
                wait: Duration::ZERO,
                gone: owner_gone,
            };
            replica.forward(forward, with_bytes(request).await?).await
        }
        _ => Ok(next.run(request).await),
    }
}

/// A request whose body is in memory already.
async fn with_bytes(request: Request) -> Result<HttpRequest<Bytes>, Problem> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|error| Problem::internal(&error))?;
    Ok(HttpRequest::from_parts(parts, body.to_bytes()))
}

/// Middleware: counts and logs every response. A server without tokens refuses requests that do not name this machine.
pub(crate) async fn observe(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let start = app.clock.elapsed();
    let named = match app.tokens() {
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
