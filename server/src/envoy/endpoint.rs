//! The rate limit service as a gRPC service with one method.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use futures::future::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use prost::Message as _;
use tonic::codegen::{Body, BoxFuture, Service, StdError, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::messages::{Code, RateLimitRequest, RateLimitResponse};
use super::service::RateLimits;

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// `OUT_OF_RANGE`, the status of a message that is too large.
const TOO_LARGE: http::HeaderValue = http::HeaderValue::from_static("11");

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
            let limits = endpoint.limits.clone();
            let response = grpc.unary(endpoint, request).await;
            if response.headers().get(Status::GRPC_STATUS) == Some(&TOO_LARGE) {
                limits.note_too_large();
                return Ok(over_limit());
            }
            Ok(response)
        })
    }
}

/// `OVER_LIMIT` in response to a request that is not decoded. As an error it would pass, if Envoy is set up so.
fn over_limit() -> http::Response<tonic::body::Body> {
    let response = RateLimitResponse {
        overall_code: Code::OverLimit.into(),
        ..RateLimitResponse::default()
    };
    let message = response.encode_to_vec();
    // Not compressed, then the length of the message.
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap_or_default().to_be_bytes());
    frame.extend(message);
    let done = [(Status::GRPC_STATUS.clone(), http::HeaderValue::from_static("0"))];
    let done: http::HeaderMap = done.into_iter().collect();
    let body = Full::new(Bytes::from(frame)).with_trailers(ready(Some(Ok(done))));
    let mut response = http::Response::new(tonic::body::Body::new(body));
    let grpc = http::HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
    response
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
