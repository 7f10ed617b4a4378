//! The tower layer: what a request takes, and what its response corrects.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::{Layer, Service, ServiceExt, service_fn};
use zae_limiter::tower::{Adjustments, Call, LimitedBody, RateLimitLayer, ResponseCost};
use zae_limiter::{Admission, OnUnavailable, RateLimiter};

use crate::support::*;

const LIMITS: [&str; 2] = ["rpm:10", "tpm:1000"];

type Calls = fn(&Request<()>) -> Option<Call>;

/// Every request of the header's user takes one of `rpm` and 100 of `tpm`.
fn estimated(request: &Request<()>) -> Option<Call> {
    let user = request.headers().get("x-user")?.to_str().ok()?;
    Some(Call::new(user, GPT).consume("rpm", 1).consume("tpm", 100))
}

fn corrected(request: &Request<()>) -> Option<Call> {
    estimated(request).map(|call| call.corrected_by(Counted(0)))
}

/// A byte of the response costs a token, and the trailer `x-cost` more.
struct Counted(i64);

impl ResponseCost for Counted {
    fn data(&mut self, chunk: &[u8]) {
        self.0 += i64::try_from(chunk.len()).unwrap();
    }

    fn trailers(&mut self, trailers: &HeaderMap) {
        let cost = trailers.get("x-cost").unwrap().to_str().unwrap();
        self.0 += cost.parse::<i64>().unwrap();
    }

    fn adjustments(&mut self) -> Vec<(String, i64)> {
        vec![("tpm".to_owned(), self.0 - 100)]
    }
}

/// A body in pieces.
struct Pieces(VecDeque<Frame<Bytes>>);

impl Pieces {
    fn new(lengths: &[usize]) -> Self {
        let frames = lengths
            .iter()
            .map(|length| Frame::data(vec![b'x'; *length].into()));
        Self(frames.collect())
    }

    fn with_cost(mut self, cost: &'static str) -> Self {
        let trailers = HeaderMap::from_iter([("x-cost".parse().unwrap(), cost.parse().unwrap())]);
        self.0.push_back(Frame::trailers(trailers));
        self
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

fn request(user: &str) -> Request<()> {
    Request::get("/").header("x-user", user).body(()).unwrap()
}

async fn hello(_: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

async fn ask<S, B>(
    limiter: &RateLimiter,
    calls: Calls,
    service: S,
    request: Request<()>,
) -> Result<Response<LimitedBody<B>>, S::Error>
where
    S: Service<Request<()>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
{
    let layer = RateLimitLayer::new(limiter.clone(), calls);
    layer.layer(service).oneshot(request).await
}

async fn text<B: Body<Data = Bytes, Error = Infallible>>(response: Response<B>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What is left of `rpm` and `tpm` when everything is written.
async fn left(limiter: &RateLimiter) -> [i64; 2] {
    limiter.settled().await;
    [
        available(limiter, "user-1", "rpm").await,
        available(limiter, "user-1", "tpm").await,
    ]
}

#[tokio::test(start_paused = true)]
async fn an_admitted_request_is_passed_on_and_its_response_has_the_fields() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let service = service_fn(async |request: Request<()>| {
        let admission = request.extensions().get::<Admission>().copied();
        assert_eq!(admission, Some(Admission::Counted));
        hello(request).await
    });
    let response = ask(&limiter, estimated, service, request("user-1"))
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers();
    assert_eq!(
        headers["ratelimit-policy"],
        r#""rpm";q=10;w=60, "tpm";q=1000;w=60"#
    );
    assert_eq!(headers["ratelimit"], r#""rpm";r=9;t=6, "tpm";r=900;t=1"#);
    assert!(!headers.contains_key("ratelimit-admission"));
    assert_eq!(
        response.extensions().get::<Admission>(),
        Some(&Admission::Counted)
    );
    assert_eq!(response.body().size_hint().exact(), Some(5));
    assert_eq!(text(response).await, "hello");
    assert_eq!(left(&limiter).await, [9, 900]);
}

#[tokio::test(start_paused = true)]
async fn the_fields_of_the_innermost_layer_stay() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let small: Calls = |request| {
        let user = request.headers().get("x-user")?.to_str().ok()?;
        Some(Call::new(user, "inner").consume("rpm", 7))
    };
    let inner = RateLimitLayer::new(limiter.clone(), small).layer(service_fn(hello));
    let alone = inner.clone().oneshot(request("user-2")).await.unwrap();
    let nested = ask(&limiter, estimated, inner, request("user-1")).await.unwrap();
    for field in ["ratelimit-policy", "ratelimit"] {
        assert!(alone.headers().contains_key(field));
        assert_eq!(
            nested.headers().get_all(field).iter().collect::<Vec<_>>(),
            alone.headers().get_all(field).iter().collect::<Vec<_>>(),
        );
    }
    assert_eq!(left(&limiter).await, [9, 900], "both have acquired");
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_gets_429_with_a_problem_and_never_reaches_the_service() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1", "tpm:1000"]).await;
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    let service = service_fn(move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        hello(request)
    });
    let first = ask(&limiter, estimated, service.clone(), request("user-1")).await;
    drop(first.unwrap());
    let response = ask(&limiter, estimated, service, request("user-1"))
        .await
        .unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.headers()["retry-after"], "60");
    assert_eq!(response.headers()["ratelimit"], r#""rpm";r=0;t=60, "tpm";r=900"#);
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(
        problem["type"],
        "https://iana.org/assignments/http-problem-types#quota-exceeded"
    );
    assert_eq!(problem["status"], 429);
    assert_eq!(problem["violated-policies"], serde_json::json!(["rpm"]));
    assert_eq!(problem["error"], "rate_limit_exceeded");
    assert_eq!(problem["limits"][0]["limit_name"], "rpm");
    assert_eq!(served.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_grpc_request_is_refused_with_a_grpc_status() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1", "tpm:1000"]).await;
    let call = || {
        let mut request = request("user-1");
        let grpc = "application/grpc+proto".parse().unwrap();
        request.headers_mut().insert("content-type", grpc);
        ask(&limiter, estimated, service_fn(hello), request)
    };
    assert!(!call().await.unwrap().headers().contains_key("grpc-status"));
    let response = call().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/grpc");
    assert_eq!(response.headers()["grpc-status"], "8");
    assert_eq!(
        response.headers()["grpc-message"],
        "Rate limit exceeded for user-1/gpt-4: [rpm]. Retry after 60.0s"
    );
    assert_eq!(response.headers()["retry-after"], "60");
    assert!(response.body().is_end_stream());
    assert_eq!(text(response).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_call_is_not_limited() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1"]).await;
    for _ in 0..3 {
        let anonymous = Request::get("/").body(()).unwrap();
        let response = ask(&limiter, estimated, service_fn(hello), anonymous)
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("ratelimit"));
    }
    assert_eq!(limiter.stats().granted, 0);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_body_is_counted_when_it_has_ended() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let service =
        service_fn(async |_| Ok::<_, Infallible>(Response::new(Pieces::new(&[200, 50]).with_cost("30"))));
    let response = ask(&limiter, corrected, service, request("user-1"))
        .await
        .unwrap();
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    assert_eq!(left(&limiter).await, [9, 900], "the estimate, until the end");
    body.frame().await.unwrap().unwrap();
    body.frame().await.unwrap().unwrap();
    assert!(body.frame().await.is_none());
    assert_eq!(
        left(&limiter).await,
        [9, 720],
        "at the end, while the body is still held"
    );
    drop(body);
    assert_eq!(left(&limiter).await, [9, 720]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_is_counted_as_far_as_it_was_sent() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Pieces::new(&[150, 500]))));
    let response = ask(&limiter, corrected, service, request("user-1"))
        .await
        .unwrap();
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    let report = limiter.shutdown().await;
    assert_eq!(report.unwritten_total, 0);
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!([bucket.consumed("rpm"), bucket.consumed("tpm")], [1_000, 150_000]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_outside_of_the_runtime_is_counted() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Pieces::new(&[500]))));
    let response = ask(&limiter, estimated, service, request("user-1"))
        .await
        .unwrap();
    std::thread::spawn(move || drop(response)).join().unwrap();
    assert_eq!(left(&limiter).await, [9, 900]);
}

/// A cost that cannot be told.
struct Broken;

impl ResponseCost for Broken {
    fn adjustments(&mut self) -> Vec<(String, i64)> {
        panic!("a second panic would end the process");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_a_panic_drops_is_counted_without_the_cost_of_the_response() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let calls: Calls = |request| estimated(request).map(|call| call.corrected_by(Broken));
    let response = ask(&limiter, calls, service_fn(hello), request("user-1"))
        .await
        .unwrap();
    let broken = std::thread::spawn(move || {
        let _held = response;
        panic!("whoever sends the body breaks");
    });
    assert!(broken.join().is_err());
    assert_eq!(left(&limiter).await, [9, 900]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_costs_nothing() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let service = service_fn(async |_| Err::<Response<Full<Bytes>>, _>("the upstream is down"));
    let failure = ask(&limiter, corrected, service, request("user-1"))
        .await
        .unwrap_err();
    assert_eq!(failure, "the upstream is down");
    assert_eq!(left(&limiter).await, [10, 1000]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_before_its_response_costs_nothing() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let service = service_fn(async |request: Request<()>| {
        std::future::pending::<()>().await;
        hello(request).await
    });
    let call = ask(&limiter, corrected, service, request("user-1"));
    assert!(tokio::time::timeout(secs(1), call).await.is_err());
    assert_eq!(limiter.stats().granted, 1);
    assert_eq!(left(&limiter).await, [10, 1000]);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_a_failure_gives_everything_back_and_others_do_not() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let calls: Calls =
        |request| estimated(request).map(|call| call.refund_if(|head| head.status.is_server_error()));
    for (status, expected) in [(502, [10, 1000]), (404, [9, 900])] {
        let service = service_fn(move |_| async move {
            let response = Response::builder().status(status);
            Ok::<_, Infallible>(response.body(Full::<Bytes>::default()).unwrap())
        });
        let response = ask(&limiter, calls, service, request("user-1")).await.unwrap();
        assert_eq!(response.status(), status);
        drop(response);
        assert_eq!(left(&limiter).await, expected, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_corrects_the_cost_by_the_extension_of_the_request() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let service = service_fn(async |request: Request<()>| {
        let cost = request.extensions().get::<Adjustments>().unwrap();
        cost.adjust("tpm", -40);
        cost.clone().adjust("tpm", -20);
        hello(request).await
    });
    let response = ask(&limiter, estimated, service, request("user-1"))
        .await
        .unwrap();
    assert_eq!(text(response).await, "hello");
    assert_eq!(left(&limiter).await, [9, 960]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_passes_uncounted_is_marked() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    stage.wire.always(Fault::LostRequest);
    let calls: Calls = |request| corrected(request).map(|call| call.on_unavailable(OnUnavailable::Allow));
    let response = ask(&limiter, calls, service_fn(hello), request("user-1"))
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["ratelimit-admission"],
        "allowed_while_unavailable"
    );
    assert!(!response.headers().contains_key("ratelimit"));
    let admission = Some(&Admission::AllowedWhileUnavailable);
    assert_eq!(response.extensions().get::<Admission>(), admission);
    assert_eq!(text(response).await, "hello");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_blocked_with_503_if_that_is_the_policy() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    stage.wire.always(Fault::LostRequest);
    let response = ask(&limiter, estimated, service_fn(hello), request("user-1"))
        .await
        .unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["type"], "urn:zae-limiter:problem:unavailable");
}

#[tokio::test(start_paused = true)]
async fn an_entity_that_is_invalid_is_a_bad_request() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let response = ask(&limiter, estimated, service_fn(hello), request("user#1"))
        .await
        .unwrap();
    assert_eq!(response.status(), 400);
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["field"], "entity id");
}
