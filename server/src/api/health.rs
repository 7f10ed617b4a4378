//! `/healthz` and `/readyz`, for load balancers and orchestrators.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::problems::ProblemBody;
use crate::app::App;
use crate::problem::{Problem, ProblemKind};

/// The server can be used.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Reports that the process is alive
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "operation",
    responses((status = 200, description = "The process is alive", body = Health)),
)]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Reports whether the server should get requests
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operation",
    responses(
        (status = 200, description = "The table can be used", body = Health),
        (status = 503, description = "The table is unavailable, or the server is shutting down", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Result<Json<Health>, Problem> {
    let _slot = app.pools.health.take()?;
    if app.is_ready().await {
        return Ok(Json(Health { status: "ok" }));
    }
    let detail = "the table is unavailable, or the server is shutting down";
    Err(Problem::new(ProblemKind::Unavailable, detail))
}
