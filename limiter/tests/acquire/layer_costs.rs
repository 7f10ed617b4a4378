//! The tower layer: how the response corrects what a request takes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use tower::service_fn;
use zae_limiter::tower::{Adjustments, Call, ResponseCost};

use crate::acquire::layer::{Calls, LIMITS, ask, estimated, hello, left, request, text};
use crate::acquire::support::*;

pub(crate) fn corrected(request: &Request<()>) -> Option<Call> {
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
pub(crate) struct Pieces(VecDeque<Frame<Bytes>>);

impl Pieces {
    pub(crate) fn new(lengths: &[usize]) -> Self {
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
        panic!("the sender of the body panics");
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
async fn a_request_that_is_canceled_before_its_response_is_paid_unless_the_call_says_otherwise() {
    let refunded: Calls = |request| corrected(request).map(|call| call.refund_on_disconnect(true));
    for (calls, expected) in [(corrected as Calls, [9, 916]), (refunded, [10, 1000])] {
        let stage = Stage::new();
        let limiter = stage.limiter(&LIMITS).await;
        let service = service_fn(async |request: Request<()>| {
            std::future::pending::<()>().await;
            hello(request).await
        });
        let call = ask(&limiter, calls, service, request("user-1"));
        assert!(tokio::time::timeout(secs(1), call).await.is_err());
        assert_eq!(limiter.stats().granted, 1);
        assert_eq!(left(&limiter).await, expected, "with the refill of a second");
    }
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
async fn a_request_may_charge_several_resources() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let calls: Calls = |request| {
        let call = estimated(request)?;
        Some(call.and("budget").cascade(false).consume("tpm", 700))
    };
    let service = service_fn(async |request: Request<()>| {
        let cost = request.extensions().get::<Adjustments>().unwrap();
        cost.adjust_on("budget", "tpm", -40);
        cost.adjust_on(GPT, "tpm", 20);
        cost.adjust("rpm", 1);
        hello(request).await
    });
    let response = ask(&limiter, calls, service, request("user-1")).await.unwrap();
    let policies = response.headers()["ratelimit-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(policies.contains(r#""budget/tpm""#), "{policies}");
    assert_eq!(text(response).await, "hello");
    assert_eq!(left(&limiter).await, [8, 880]);
    let budget = || async {
        let peek = limiter.acquire("user-1", "budget").peek().await.unwrap();
        (peek.tokens("rpm"), peek.tokens("tpm"))
    };
    assert_eq!(budget().await, (Some(10), Some(340)));
    let refused = ask(&limiter, calls, service, request("user-1")).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(left(&limiter).await, [8, 880]);
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
