//! A server in the test, and an HTTP client for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use zae_limiter::{Limit, ManualClock, RateLimiter, RateLimiterBuilder, Timestamp};
use zae_limiter_server::{BearerTokens, Closed, Server, ServerHandle, Settings};

/// A server that runs until it is stopped or dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) handle: ServerHandle,
    /// The clock of the limiter and of the server.
    pub(crate) clock: Arc<ManualClock>,
    client: Client<HttpConnector, Full<Bytes>>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Closed>,
}

/// A response, whole.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self
    }

    /// Problem details of this type.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, name: &str) -> Value {
        let this = self.expect(status);
        assert_eq!(this.header("content-type"), Some("application/problem+json"));
        let body = this.json();
        assert_eq!(body["type"], format!("urn:zae-limiter:problem:{name}"), "{body}");
        assert_eq!(body["status"], status);
        assert!(body["title"].is_string() && body["detail"].is_string(), "{body}");
        body
    }

    pub(crate) fn lease(self) -> String {
        self.expect(200).json()["lease_id"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn noon() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap()))
}

pub(crate) fn limits() -> [Limit; 2] {
    [
        Limit::per_minute("rpm", 100).unwrap(),
        Limit::per_minute("tpm", 10_000).unwrap(),
    ]
}

impl TestServer {
    /// A server with `rpm` 100 and `tpm` 10,000 for everyone.
    pub(crate) async fn start() -> Self {
        Self::with(Settings::default(), None).await
    }

    pub(crate) async fn with(settings: Settings, tokens: Option<BearerTokens>) -> Self {
        Self::on(RateLimiter::embedded().default_limits(limits()), settings, tokens).await
    }

    pub(crate) async fn on(
        limiter: RateLimiterBuilder,
        settings: Settings,
        tokens: Option<BearerTokens>,
    ) -> Self {
        let clock = noon();
        let limiter = limiter.clock(clock.clone()).await.unwrap();
        let mut builder = Server::builder(limiter).settings(settings).clock(clock.clone());
        if let Some(tokens) = tokens {
            builder = builder.tokens(tokens);
        }
        let server = builder.bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        Self::running(server, clock)
    }

    pub(crate) fn running(server: Server, clock: Arc<ManualClock>) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self {
            address: server.address(),
            handle: server.handle(),
            clock,
            client: Client::builder(TokioExecutor::new()).build_http(),
            stop: Some(stop),
            running: tokio::spawn(server.run(async move {
                let _ = stopped.await;
            })),
        }
    }

    /// Tells the server to stop.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Tells the server to stop and waits for it.
    pub(crate) async fn stopped(mut self) -> Closed {
        if self.stop.is_some() {
            self.stop();
        }
        self.running.await.unwrap()
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = self.client.request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Response {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.send(Method::DELETE, path, &[], "").await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Response {
        let headers = [("content-type", "application/json")];
        self.send(Method::PUT, path, &headers, body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Response {
        let headers = [("content-type", "application/json")];
        self.send(Method::PATCH, path, &headers, body.to_string()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.post_with(path, &[], body).await
    }

    pub(crate) async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: Value) -> Response {
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        self.send(Method::POST, path, &all, body.to_string()).await
    }

    /// `rpm` tokens that user-1 has left.
    pub(crate) async fn available(&self, limit: &str) -> i64 {
        let path = "/v1/entities/user-1/resources/gpt-4/available";
        self.get(path).await.expect(200).json()["tokens"][limit]
            .as_i64()
            .unwrap()
    }
}

/// Waits for something that other tasks bring about.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
