//! A provider of models with scripted responses, over real HTTP.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use http_body::Frame;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::llm_gateway::serve;

/// What the provider got.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// The next response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Pieces,
}

/// A body that a test sends piece by piece. Ends when the sender is dropped.
#[derive(Debug)]
pub(crate) struct Pieces(UnboundedReceiver<Bytes>);

impl Pieces {
    /// The sender also tells when the body is dropped.
    pub(crate) fn channel() -> (UnboundedSender<Bytes>, Self) {
        let (sender, receiver) = unbounded_channel();
        (sender, Self(receiver))
    }

    pub(crate) fn whole(text: impl Into<Bytes>) -> Self {
        let (sender, pieces) = Self::channel();
        sender.send(text.into()).unwrap();
        pieces
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0
            .poll_recv(context)
            .map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FakeProvider {
    next: Arc<Mutex<Option<Reply>>>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl FakeProvider {
    /// Starts it and returns its URL.
    pub(crate) async fn start(&self) -> String {
        serve(Router::new().fallback(response).with_state(self.clone())).await
    }

    pub(crate) fn reply(&self, reply: Reply) {
        *self.next.lock().unwrap() = Some(reply);
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn response(State(provider): State<FakeProvider>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    provider.received.lock().unwrap().push(Received {
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body: serde_json::from_slice(&body).unwrap(),
    });
    let reply = provider.next.lock().unwrap().take().unwrap();
    Response::builder()
        .status(reply.status)
        .header("content-type", reply.content_type)
        .header("ratelimit", "the provider's own")
        .body(Body::new(reply.body))
        .unwrap()
}
