//! The rate limit service of Envoy (RLS v3) over gRPC.
//!
//! - `mapping`: which entity, resource and limit a descriptor counts on, from a file
//! - `plan`: the pure step from a request to what is taken and given back
//! - `refunds`: the pure index of leases that negative hits can still give back
//! - `reply`: the pure step from limits to the messages of the protocol
//! - `messages`: the messages of the protocol
//! - `service`: what is taken and given back, and the response
//! - `endpoint`: the gRPC service
//! - `health`: the gRPC health service
//! - `streams`: how many streams are open, and for how long

mod endpoint;
mod health;
mod mapping;
mod messages;
mod plan;
mod refunds;
mod reply;
mod service;
mod streams;

use std::sync::Arc;

use axum::{Router, middleware};
use tonic::service::Routes;
use tonic::{Request, Status};
use tonic_health::pb::health_server::HealthServer;

pub use mapping::{EnvoyMapping, InvalidMapping};

use crate::app::App;
use crate::auth::{self, Denied, Scope};
use endpoint::RateLimitEndpoint;
use health::HealthService;
use service::RateLimits;

/// The gRPC services. Only the health service needs no token.
pub(crate) fn router(app: &Arc<App>, mapping: EnvoyMapping) -> Router {
    let limits = RateLimits::new(app.clone(), mapping);
    let limits = RateLimitEndpoint::new(limits, app.settings.max_body_bytes);
    let authorized = app.clone();
    let limits = tonic::service::interceptor::InterceptedService::new(limits, move |request| {
        authorize(&authorized, request)
    });
    let health = HealthServer::new(HealthService::new(app.clone()));
    Routes::new(limits)
        .add_service(health)
        .prepare()
        .into_axum_router()
        .layer(middleware::from_fn_with_state(
            app.clone(),
            streams::limit_streams,
        ))
}

fn authorize(app: &App, request: Request<()>) -> Result<Request<()>, Status> {
    let Some(tokens) = app.tokens() else {
        return Ok(request);
    };
    let header = request.metadata().get("authorization");
    let header = header.and_then(|value| value.to_str().ok());
    match auth::check(&tokens, header, Scope::Acquire) {
        Ok(_) => Ok(request),
        Err(denied @ Denied::Unauthorized) => Err(Status::unauthenticated(denied.to_string())),
        Err(denied @ Denied::Forbidden(_)) => Err(Status::permission_denied(denied.to_string())),
    }
}
