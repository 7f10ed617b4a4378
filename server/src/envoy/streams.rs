//! What a gRPC stream may hold, and for how long.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tonic::Status;

use crate::app::App;
use crate::connections::Peer;

/// Every path of the gRPC health service.
const HEALTH: &str = "/grpc.health.";

/// Middleware: refuses a stream if too many are open, and ends one whose request does not arrive in time.
///
/// Streams of Envoy share the slots of the server; their token is checked before their body is read. The health service
/// needs no token, so its streams are limited per connection and cannot keep out others.
pub(super) async fn limit_streams(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let slot = if request.uri().path().starts_with(HEALTH) {
        let peer = request.extensions().get::<Peer>();
        peer.and_then(|peer| peer.health_streams.clone().try_acquire_owned().ok())
    } else {
        app.pools.grpc.take().ok()
    };
    let Some(slot) = slot else {
        let status = Status::unavailable("too many requests are in progress; try again later");
        return status.into_http::<tonic::body::Body>().map(Body::new);
    };
    let deadline = Box::pin(tokio::time::sleep(app.settings.body_timeout));
    let request = request.map(|body| Body::new(TimedBody { body, deadline }));
    let response = next.run(request).await;
    response.map(|body| Body::new(HeldBody { body, _slot: slot }))
}

/// A request body that fails if it does not arrive in time.
struct TimedBody {
    body: Body,
    deadline: Pin<Box<Sleep>>,
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() || self.deadline.as_mut().poll(context).is_pending() {
            return frame;
        }
        let late = Status::deadline_exceeded("the request did not arrive in time");
        Poll::Ready(Some(Err(axum::Error::new(late))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body that has a slot until it is sent.
struct HeldBody {
    body: Body,
    _slot: OwnedSemaphorePermit,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
