//! A [tower](https://docs.rs/tower) layer that limits the requests of a service (feature `tower`).
//!
//! A function says for each request who pays what: a [`Call`], or nothing for requests that are not limited. A call that
//! is refused gets the response 429 with the refusal as JSON and the [header fields](crate::RateLimitHeaders); one for
//! which the table is unavailable, and the policy is to block, gets 503 (see
//! [`problem_response`](crate::http::problem_response)). A gRPC request gets a gRPC status instead. All other calls are
//! passed on, and their responses get the header fields.
//!
//! # The cost of the response
//!
//! The lease is committed when the body of the response has ended, streamed or not, or is dropped because the client has
//! disconnected. Until then the cost can be corrected:
//!
//! - by a [`ResponseCost`], which reads the head and the body of the response as they pass;
//! - by the handler, or anything else behind the layer: the [`Adjustments`] are in the extensions of the request.
//!
//! If the service fails, all tokens go back. A handler of axum never fails: [`Call::refund_if`] says for which responses
//! tokens go back all the same. If the client disconnects before there is a response, the tokens stay taken, because the
//! service may have done the work; [`Call::refund_on_disconnect`] changes that.
//!
//! # Layers behind layers
//!
//! A layer may be behind another one, such as one per user behind one per tenant. The outer one acquires first, and if the
//! inner one refuses, the outer call is committed all the same, unless its [`Call::refund_if`] says otherwise. A handler
//! corrects the call of the innermost layer: its [`Adjustments`] take the place of the others. The fields `RateLimit-Policy`
//! and `RateLimit` of a response stay as the innermost layer has set them.
//!
//! # Calls that are not counted
//!
//! While the table is unavailable and the policy is to allow, calls pass uncounted. Their [`Admission`](crate::Admission),
//! which is in the extensions of request and response, says so, and the response has the field
//! [`RateLimit-Admission`](crate::http::ADMISSION).
//!
//! ```
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//! use zae_limiter::tower::{Call, RateLimitLayer};
//! use zae_limiter::{Limit, RateLimiter};
//! # use std::convert::Infallible;
//! # type Body = http_body_util::Full<&'static [u8]>;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 1)?]).await?;
//! let layer = RateLimitLayer::new(limiter, |request: &http::Request<()>| {
//!     let user = request.headers().get("x-user")?.to_str().ok()?;
//!     Some(Call::new(user, "api").consume("rpm", 1))
//! });
//! let mut service = ServiceBuilder::new().layer(layer).service(service_fn(async |_: http::Request<()>| {
//!     Ok::<_, Infallible>(http::Response::new(Body::from(&b"hello"[..])))
//! }));
//! let request = || http::Request::get("/").header("x-user", "user-1").body(());
//! assert_eq!(service.ready().await?.call(request()?).await?.status(), 200);
//! assert_eq!(service.ready().await?.call(request()?).await?.status(), 429);
//! # Ok(()) }
//! ```

mod adjustments;
mod body;
mod call;
mod grpc;
mod layer;
mod response_cost;
mod service;
mod settlement;

pub use adjustments::Adjustments;
pub use body::LimitedBody;
pub use call::Call;
pub use layer::RateLimitLayer;
pub use response_cost::ResponseCost;
pub use service::RateLimit;
