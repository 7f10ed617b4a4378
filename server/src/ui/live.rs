//! The live view of a bucket, by server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::Stream;
use tokio::sync::OwnedSemaphorePermit;
use zae_limiter::{EntityId, Resource};

use super::access::Visitor;
use super::{Ui, load, view};

/// How often the bucket is read.
const REFRESH: Duration = Duration::from_secs(1);
/// After this many events the stream ends. A browser that still looks connects again.
const MAX_EVENTS: u32 = 600;

struct Live {
    ui: Arc<Ui>,
    visitor: Visitor,
    entity: EntityId,
    resource: Resource,
    sent: u32,
    _place: OwnedSemaphorePermit,
}

/// `GET /ui/entities/{entity}/buckets/{resource}/events`.
pub(crate) async fn events(
    State(ui): State<Arc<Ui>>,
    Extension(visitor): Extension<Visitor>,
    Path((entity, resource)): Path<(String, String)>,
) -> Response {
    let (Ok(entity), Ok(resource)) = (EntityId::parse(entity), Resource::parse(resource)) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    // The browser shows that the view is not live, and asks again later.
    let Ok(place) = ui.live_views.clone().try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let live = Live {
        ui,
        visitor,
        entity,
        resource,
        sent: 0,
        _place: place,
    };
    Sse::new(stream(live))
        .keep_alive(KeepAlive::default())
        .into_response()
}

/// One event at once, then one a second, until the server stops or the visitor's token is removed.
fn stream(live: Live) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold(live, |mut live| async move {
        if live.sent > 0 {
            tokio::select! {
                () = tokio::time::sleep(REFRESH) => {}
                () = live.ui.app.stopped() => {}
            }
        }
        let app = &live.ui.app;
        let allowed = live.visitor.is_allowed(app.tokens().as_deref());
        if live.sent >= MAX_EVENTS || app.is_stopping() || !allowed {
            return None;
        }
        live.sent += 1;
        let data = load::live_bucket(&live.ui, &live.entity, &live.resource).await;
        let event = Event::default()
            .event("bucket")
            .data(view::live(&data).into_string());
        Some((Ok(event), live))
    })
}
