//! The rate limit service as a gRPC service with one method.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::FutureExt as _;
use tonic::codegen::{Body, BoxFuture, Service, StdError, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::messages::{RateLimitRequest, RateLimitResponse};
use super::service::RateLimits;

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Decodes requests and encodes responses.
#[derive(Debug, Clone)]
pub(super) struct RateLimitEndpoint {
    limits: Arc<RateLimits>,
    max_request_bytes: usize,
}

impl RateLimitEndpoint {
    pub(super) fn new(limits: RateLimits, max_request_bytes: usize) -> Self {
        let limits = Arc::new(limits);
        Self {
            limits,
            max_request_bytes,
        }
    }
}

impl NamedService for RateLimitEndpoint {
    const NAME: &'static str = "envoy.service.ratelimit.v3.RateLimitService";
}

impl<B> Service<http::Request<B>> for RateLimitEndpoint
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move {
            if request.uri().path() != SHOULD_RATE_LIMIT {
                return Ok(Status::unimplemented("there is no such method").into_http());
            }
            let mut grpc = Grpc::new(ProstCodec::default())
                .apply_max_message_size_config(Some(endpoint.max_request_bytes), None);
            Ok(grpc.unary(endpoint, request).await)
        })
    }
}

impl UnaryService<RateLimitRequest> for RateLimitEndpoint {
    type Response = RateLimitResponse;
    type Future = BoxFuture<Response<RateLimitResponse>, Status>;

    fn call(&mut self, request: Request<RateLimitRequest>) -> Self::Future {
        let limits = self.limits.clone();
        let respond = async move { limits.should_rate_limit(request.into_inner()).await };
        respond.map(|result| result.map(Response::new)).boxed()
    }
}
