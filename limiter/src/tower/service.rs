//! The service that the layer makes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::adjustments::Adjustments;
use super::body::LimitedBody;
use super::call::Call;
use super::grpc;
use super::settlement::Settlement;
use crate::http::{insert_fields, mark_admission, problem_response};
use crate::{Lease, RateLimitHeaders, RateLimiter};

/// A service whose requests are limited. Made by [`RateLimitLayer`](super::RateLimitLayer).
pub struct RateLimit<S, F> {
    inner: S,
    limiter: RateLimiter,
    calls: Arc<F>,
}

impl<S, F> RateLimit<S, F> {
    pub(super) fn new(inner: S, limiter: RateLimiter, calls: Arc<F>) -> Self {
        Self {
            inner,
            limiter,
            calls,
        }
    }
}

/// The function is shared, so it need not be `Clone`.
impl<S: Clone, F> Clone for RateLimit<S, F> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.limiter.clone(), self.calls.clone())
    }
}

impl<S: fmt::Debug, F> fmt::Debug for RateLimit<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<S, F, ReqBody, ResBody> Service<Request<ReqBody>> for RateLimit<S, F>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    F: Fn(&Request<ReqBody>) -> Option<Call>,
    ReqBody: Send + 'static,
{
    type Response = Response<LimitedBody<ResBody>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        // The service that is ready serves this request; the clone gets ready for the next.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let Some(call) = (self.calls)(&request) else {
            let response = inner.call(request);
            return Box::pin(async { Ok(response.await?.map(LimitedBody::unlimited)) });
        };
        let acquire = call.acquire(&self.limiter);
        Box::pin(async move {
            match acquire.await {
                Ok(lease) => pass_on(inner, request, call, lease).await,
                Err(error) if grpc::is_grpc(request.headers()) => {
                    Ok(grpc::response(&error).map(LimitedBody::own))
                }
                Err(error) => Ok(problem_response(&error).map(LimitedBody::own)),
            }
        })
    }
}

/// If the service fails, the tokens go back.
async fn pass_on<S, ReqBody, ResBody>(
    mut inner: S,
    mut request: Request<ReqBody>,
    call: Call,
    lease: Lease,
) -> Result<Response<LimitedBody<ResBody>>, S::Error>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    let fields = RateLimitHeaders::admitted(&lease.statuses());
    let admission = lease.admission();
    let adjustments = Adjustments::default();
    request.extensions_mut().insert(admission);
    request.extensions_mut().insert(adjustments.clone());
    let mut settlement = Settlement::new(lease, adjustments, call);
    let (mut head, body) = match inner.call(request).await {
        Ok(response) => response.into_parts(),
        Err(error) => {
            settlement.refund();
            return Err(error);
        }
    };
    settlement.head(&head);
    // Those of a layer or service behind this one are about a closer limit.
    if !head.headers.contains_key("ratelimit") {
        insert_fields(&mut head.headers, fields);
    }
    mark_admission(&mut head.headers, admission);
    head.extensions.insert(admission);
    Ok(Response::from_parts(head, LimitedBody::limited(body, settlement)))
}
