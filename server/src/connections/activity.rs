//! Whether a connection has requests.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};

/// Counts the requests of a connection, from their head to the end of their response.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    started: AtomicUsize,
    running: AtomicUsize,
}

/// A request that is being served. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Running(Arc<Counts>);

impl Activity {
    pub(super) fn begin(&self) -> Running {
        self.0.started.fetch_add(1, Ordering::Relaxed);
        self.0.running.fetch_add(1, Ordering::Relaxed);
        Running(self.0.clone())
    }

    /// The number of requests started so far.
    pub(super) fn started(&self) -> usize {
        self.0.started.load(Ordering::Relaxed)
    }

    /// True if no request is running and none has started since the count was `started`.
    pub(super) fn is_idle_since(&self, started: usize) -> bool {
        self.started() == started && self.0.running.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Running {
    /// The response, which is running until its body has ended.
    pub(super) fn until_sent(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| Body::new(SentBody { body, _running: self }))
    }
}

struct SentBody {
    body: Body,
    _running: Running,
}

impl HttpBody for SentBody {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_request_runs_until_its_response_is_sent() {
        let activity = Activity::default();
        assert!(activity.is_idle_since(0));
        let response = activity.begin().until_sent(Response::new(Body::from("text")));
        assert!(!activity.is_idle_since(0) && !activity.is_idle_since(1));
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "text");
        assert!(activity.is_idle_since(1) && !activity.is_idle_since(0));
    }
}
