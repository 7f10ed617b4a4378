//! What happens on a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use hyper::body::{Frame, SizeHint};

/// Counts the requests of a connection, and the steps that they make: a head that arrives, a part of a body in either
/// direction, the end of a response.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicUsize,
    steps: AtomicUsize,
    open: AtomicUsize,
}

impl Activity {
    /// Counts a request, and watches its body.
    pub(super) fn request<B>(&self, request: Request<B>) -> Request<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        self.step();
        request.map(|body| self.watched(Body::new(body), None))
    }

    /// Watches the body of a response. One that stays open makes no progress and is not meant to.
    pub(super) fn response(&self, response: Response<Body>, stays_open: bool) -> Response<Body> {
        self.step();
        let open = stays_open.then(|| Open::new(self.0.clone()));
        response.map(|body| self.watched(body, open))
    }

    /// Whether a response is open that is meant to stay so.
    pub(super) fn stays_open(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) > 0
    }

    /// The number of requests so far.
    pub(super) fn requests(&self) -> usize {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// The number of steps so far. A connection on which it does not change makes no progress.
    pub(super) fn steps(&self) -> usize {
        self.0.steps.load(Ordering::Relaxed)
    }

    fn step(&self) {
        self.0.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn watched(&self, body: Body, open: Option<Open>) -> Body {
        Body::new(WatchedBody {
            body,
            activity: self.clone(),
            _open: open,
        })
    }
}

/// A response that stays open until this is dropped.
#[derive(Debug)]
struct Open(Arc<Counts>);

impl Open {
    fn new(counts: Arc<Counts>) -> Self {
        counts.open.fetch_add(1, Ordering::Relaxed);
        Self(counts)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

struct WatchedBody {
    body: Body,
    activity: Activity,
    _open: Option<Open>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            self.activity.step();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn heads_and_parts_of_bodies_are_progress() {
        let activity = Activity::default();
        let request = activity.request(Request::new(Body::from("question")));
        assert_eq!((activity.requests(), activity.steps()), (1, 1));
        assert_eq!(
            request.into_body().collect().await.unwrap().to_bytes(),
            "question"
        );
        let received = activity.steps();
        assert!(received > 1);
        let response = activity.response(Response::new(Body::from("text")), true);
        assert!(activity.stays_open());
        assert_eq!(activity.steps(), received + 1);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "text");
        assert!(activity.steps() > received + 1);
        assert_eq!(activity.requests(), 1);
        assert!(!activity.stays_open());
    }
}
