//! A server in the test, and a client of the rate limit service.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{IntoRequest, Response, Status};
use tonic_prost::ProstCodec;
use zae_limiter::{Limit, ManualClock, RateLimiter, RateLimiterBuilder, Timestamp};
use zae_limiter_server::{BearerTokens, Closed, Server, ServerHandle, Settings};

use crate::grpc::messages::{
    Code, DescriptorStatus, Entry, RateLimitDescriptor, RateLimitRequest, RateLimitResponse,
};

pub(crate) const DOMAIN: &str = "gateway";

/// `user` counts on rpm; with `kind: tokens` on tpm, which can be given back; with `kind: trial` on rpm as a shadow.
pub(crate) const MAPPING: &str = r#"
domains:
  gateway:
    - match: {user: "*"}
      entity: "{user}"
      resource: gpt-4
      limit: rpm
    - match: {user: "*", kind: tokens}
      entity: "{user}"
      resource: gpt-4
      limit: tpm
      refundable_seconds: 60
    - name: trial
      match: {user: "*", kind: trial}
      entity: "trial-{user}"
      resource: gpt-4
      limit: rpm
      shadow: true
    - match: {user: "*", kind: typo}
      entity: "{user}"
      resource: gpt-4
      limit: nope
"#;

/// A client of the service.
#[derive(Clone)]
pub(crate) struct RateLimitClient {
    grpc: Grpc<Channel>,
}

impl RateLimitClient {
    pub(crate) fn new(channel: Channel) -> Self {
        let grpc = Grpc::new(channel);
        Self { grpc }
    }

    pub(crate) async fn should_rate_limit(
        &mut self,
        request: impl IntoRequest<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        self.call("ShouldRateLimit", request).await
    }

    pub(crate) async fn call(
        &mut self,
        method: &str,
        request: impl IntoRequest<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let path = format!("/envoy.service.ratelimit.v3.RateLimitService/{method}");
        self.grpc.ready().await.unwrap();
        let path = PathAndQuery::try_from(path).unwrap();
        self.grpc
            .unary(request.into_request(), path, ProstCodec::default())
            .await
    }
}

/// A server that runs until it is dropped.
pub(crate) struct TestServer {
    pub(crate) http: SocketAddr,
    pub(crate) grpc: SocketAddr,
    pub(crate) handle: ServerHandle,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) limiter: RateLimiter,
    pub(crate) client: RateLimitClient,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Closed>,
}

pub(crate) fn limits() -> [Limit; 2] {
    [
        Limit::per_minute("rpm", 10).unwrap(),
        Limit::per_minute("tpm", 1_000).unwrap(),
    ]
}

pub(crate) async fn channel(address: SocketAddr) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
    endpoint.connect().await.unwrap()
}

impl TestServer {
    /// A server with `rpm` 10 and `tpm` 1,000 for everyone.
    pub(crate) async fn start() -> Self {
        let limiter = RateLimiter::embedded().default_limits(limits());
        Self::on(limiter, Settings::default(), None).await
    }

    pub(crate) async fn on(
        limiter: RateLimiterBuilder,
        settings: Settings,
        tokens: Option<BearerTokens>,
    ) -> Self {
        Self::mapped(limiter, settings, tokens, MAPPING).await
    }

    pub(crate) async fn mapped(
        limiter: RateLimiterBuilder,
        settings: Settings,
        tokens: Option<BearerTokens>,
        mapping: &str,
    ) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap()));
        let limiter = limiter.clock(clock.clone()).await.unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut builder = Server::builder(limiter.clone())
            .settings(settings)
            .clock(clock.clone())
            .envoy(mapping.parse().unwrap(), any);
        if let Some(tokens) = tokens {
            builder = builder.tokens(tokens);
        }
        let server = builder.bind(any).await.unwrap();
        let grpc = server.grpc_address().unwrap();
        let (stop, stopped) = oneshot::channel();
        Self {
            http: server.address(),
            grpc,
            handle: server.handle(),
            clock,
            limiter,
            stop: Some(stop),
            running: tokio::spawn(server.run(async move {
                let _ = stopped.await;
            })),
            client: RateLimitClient::new(channel(grpc).await),
        }
    }

    pub(crate) async fn stopped(mut self) -> Closed {
        drop(self.stop.take());
        self.running.await.unwrap()
    }

    /// Tokens that an entity has left.
    pub(crate) async fn left(&self, entity: &str, limit: &str) -> i64 {
        let peek = self.limiter.acquire(entity, "gpt-4").peek().await.unwrap();
        peek.tokens(limit).unwrap()
    }

    pub(crate) async fn ask(&self, request: RateLimitRequest) -> Result<RateLimitResponse, Status> {
        let response = self.client.clone().should_rate_limit(request).await;
        response.map(tonic::Response::into_inner)
    }

    pub(crate) async fn ok(&self, request: RateLimitRequest) -> RateLimitResponse {
        let response = self.ask(request).await.unwrap();
        assert_eq!(response.overall_code(), Code::Ok, "{response:?}");
        response
    }

    pub(crate) async fn over_limit(&self, request: RateLimitRequest) -> RateLimitResponse {
        let response = self.ask(request).await.unwrap();
        assert_eq!(response.overall_code(), Code::OverLimit, "{response:?}");
        response
    }
}

pub(crate) fn request(
    hits: u32,
    descriptors: impl IntoIterator<Item = RateLimitDescriptor>,
) -> RateLimitRequest {
    RateLimitRequest {
        domain: DOMAIN.to_owned(),
        descriptors: descriptors.into_iter().collect(),
        hits_addend: hits,
    }
}

pub(crate) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry {
        key: (*key).into(),
        value: (*value).into(),
    };
    RateLimitDescriptor {
        entries: entries.iter().map(entry).collect(),
        ..RateLimitDescriptor::default()
    }
}

/// Requests of a user.
pub(crate) fn calls(user: &str) -> RateLimitDescriptor {
    descriptor(&[("user", user)])
}

/// Tokens of a user.
pub(crate) fn tokens(user: &str, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor {
        hits_addend: Some(hits),
        ..descriptor(&[("user", user), ("kind", "tokens")])
    }
}

/// Tokens that a user gets back.
pub(crate) fn refund(user: &str, hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor {
        is_negative_hits: true,
        ..tokens(user, hits)
    }
}

pub(crate) fn codes(statuses: &[DescriptorStatus]) -> Vec<Code> {
    statuses.iter().map(DescriptorStatus::code).collect()
}
