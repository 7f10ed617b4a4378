//! `GET /metrics`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, header};

use super::problems::Problems;
use crate::app::App;

/// Shows metrics
///
/// In the text format of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    responses((status = 200, description = "Metrics", body = String, content_type = "text/plain"), Problems),
)]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> ([(HeaderName, &'static str); 1], String) {
    let text = app
        .metrics
        .text(&app.limiter, &app.leases, app.requests_in_progress());
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
}
