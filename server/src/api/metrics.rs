//! `GET /metrics`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, header};

use super::problems::Problems;
use crate::app::App;
use crate::problem::{Problem, ProblemKind};

/// Shows metrics
///
/// In the text format of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    responses((status = 200, description = "Metrics", body = String, content_type = "text/plain"), Problems),
)]
pub(crate) async fn metrics(
    State(app): State<Arc<App>>,
) -> Result<([(HeaderName, &'static str); 1], String), Problem> {
    let requests = app.pools.api.taken();
    let text = app.metrics.text(&app.limiter, &app.leases, requests);
    let text = text.ok_or_else(|| {
        let detail = "metrics go to the recorder of the application that runs this server";
        Problem::new(ProblemKind::NotFound, detail)
    })?;
    Ok((
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    ))
}
