//! The layer.

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

use super::service::RateLimit;
use crate::RateLimiter;

/// Limits the requests of a service. `F` says for each request who pays what: a function from `&http::Request<B>` to
/// `Option<Call>`.
pub struct RateLimitLayer<F> {
    limiter: RateLimiter,
    calls: Arc<F>,
}

impl<F> RateLimitLayer<F> {
    /// A layer on this limiter. Requests for which `calls` returns nothing are passed on without a limit.
    pub fn new(limiter: RateLimiter, calls: F) -> Self {
        Self {
            limiter,
            calls: Arc::new(calls),
        }
    }
}

/// The function is shared, so it need not be `Clone`.
impl<F> Clone for RateLimitLayer<F> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            calls: self.calls.clone(),
        }
    }
}

impl<F> fmt::Debug for RateLimitLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").finish_non_exhaustive()
    }
}

impl<S, F> Layer<S> for RateLimitLayer<F> {
    type Service = RateLimit<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit::new(inner, self.limiter.clone(), self.calls.clone())
    }
}
