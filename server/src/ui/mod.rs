//! A page for people: limits, levels, usage and the audit trail in the browser, under `/ui`.
//!
//! Everything is rendered here. The script only shows times in the viewer's zone and refreshes the live view.
//!
//! - `access`: who may see the page, and who may change limits
//! - `load`: reads what views show, within bounds
//! - `view`: data in, markup out
//! - `table`, `chart`, `level`: parts of views; a table exports itself as CSV and JSON
//! - `differences`: what audit events changed, old value and new
//! - `page`, `assets`: the frame around views, style sheet and script
//! - `routes`, `changes`, `live`: requests

mod access;
mod assets;
mod changes;
mod chart;
mod differences;
mod failure;
mod form;
mod level;
mod limit_form;
mod live;
mod load;
mod options;
mod page;
mod params;
mod respond;
mod routes;
mod table;
mod text;
mod url;
mod view;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use tokio::sync::{Mutex, Semaphore};

pub use access::LoginToken;
pub use options::{StackHealth, UiOptions};

use crate::app::App;
use crate::error::Error;
use crate::extract::buffered;
use crate::problem::Problem;
use access::{Access, Visitor};
use load::StackReport;
use page::Frame;

/// How many live views are open at the same time.
const MAX_LIVE_VIEWS: usize = 64;

/// The largest form that anyone may send: a token.
const MAX_LOGIN_BYTES: usize = 4 * 1024;

/// What all requests of the UI share.
#[derive(Debug)]
pub(crate) struct Ui {
    app: Arc<App>,
    options: UiOptions,
    access: Access,
    live_views: Arc<Semaphore>,
    /// The last report about the stack, and when it was made.
    stack_report: Mutex<Option<(Duration, StackReport)>>,
}

impl Ui {
    fn frame(&self, visitor: Option<&Visitor>) -> Frame {
        let principal = visitor.and_then(|visitor| visitor.principal.as_ref());
        Frame {
            table: self.app.limiter.repository().name().to_string(),
            edit: self.options.edit,
            signed_in: visitor.is_some() && self.access.needs_session(),
            principal: principal.map(ToString::to_string),
        }
    }
}

/// The routes under `/ui`, served over TLS or not.
pub(crate) fn router(app: &Arc<App>, options: UiOptions, tls: bool) -> Result<Router, Error> {
    let access = Access::new(options.once.clone(), app.tokens().is_some(), tls)?;
    let ui = Arc::new(Ui {
        app: app.clone(),
        options,
        access,
        live_views: Arc::new(Semaphore::new(MAX_LIVE_VIEWS)),
        stack_report: Mutex::default(),
    });
    let guarded = Router::new()
        .route("/ui", get(routes::overview))
        .route("/ui/entities", get(routes::entities))
        .route("/ui/entities/{entity}", get(routes::entity))
        .route("/ui/entities/{entity}/children", get(routes::children))
        .route("/ui/entities/{entity}/buckets/{resource}", get(routes::bucket))
        .route(
            "/ui/entities/{entity}/buckets/{resource}/events",
            get(live::events),
        )
        .route("/ui/resources", get(routes::resources))
        .route("/ui/resources/{resource}", get(routes::resource))
        .route("/ui/limits", get(routes::limits))
        .route("/ui/limits/edit", get(changes::edit))
        .route("/ui/limits/review", post(changes::review))
        .route("/ui/limits/apply", post(changes::apply))
        .route("/ui/usage", get(routes::usage))
        .route("/ui/audit", get(routes::audit))
        .route("/ui/logout", post(access::leave))
        .route("/ui/{*rest}", get(routes::not_found))
        .route_layer(middleware::from_fn_with_state(
            (app.clone(), form::MAX_BYTES),
            admit,
        ))
        .route_layer(middleware::from_fn_with_state(ui.clone(), access::guard));
    let open = Router::new()
        .route("/ui/login", get(access::login).post(access::form))
        .route("/ui/assets/{name}", get(assets::serve))
        .route_layer(middleware::from_fn_with_state(
            (app.clone(), MAX_LOGIN_BYTES),
            admit,
        ));
    Ok(guarded
        .merge(open)
        .layer(middleware::from_fn(protect))
        .with_state(ui))
}

/// Middleware: reads the body and then takes a slot. A client that sends its body slowly has no slot.
async fn admit(
    State((app, most)): State<(Arc<App>, usize)>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let request = buffered(request, most, app.settings.body_timeout).await?;
    let _slot = app.pools.ui.take()?;
    Ok(next.run(request).await)
}

/// Nothing from elsewhere, no inline code, no frames, no copies in shared caches.
async fn protect(request: Request, next: Next) -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                          connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With no-referrer, browsers would send `Origin: null` with forms, which is_same_origin refuses.
        (header::REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
