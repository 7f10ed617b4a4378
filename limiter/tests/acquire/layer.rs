//! The tower layer: what a request takes, and how it is refused.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::{Layer, Service, ServiceExt, service_fn};
use zae_limiter::tower::{Call, LimitedBody, RateLimitLayer};
use zae_limiter::{Admission, ConfigLevel, Mode, OnUnavailable, RateLimiter};

use crate::acquire::layer_costs::corrected;
use crate::acquire::support::*;

pub(crate) const LIMITS: [&str; 2] = ["rpm:10", "tpm:1000"];

pub(crate) type Calls = fn(&Request<()>) -> Option<Call>;

/// Every request of the header's user takes one of `rpm` and 100 of `tpm`.
pub(crate) fn estimated(request: &Request<()>) -> Option<Call> {
    let user = request.headers().get("x-user")?.to_str().ok()?;
    Some(Call::new(user, GPT).consume("rpm", 1).consume("tpm", 100))
}

pub(crate) fn request(user: &str) -> Request<()> {
    Request::get("/").header("x-user", user).body(()).unwrap()
}

pub(crate) async fn hello(_: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

pub(crate) async fn ask<S, B>(
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

pub(crate) async fn text<B: Body<Data = Bytes, Error = Infallible>>(response: Response<B>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What is left of `rpm` and `tpm` when everything is written.
pub(crate) async fn left(limiter: &RateLimiter) -> [i64; 2] {
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
async fn requests_follow_the_mode_of_their_resource() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1", "tpm:1000"]).await;
    let level = ConfigLevel::Resource(GPT.parse().unwrap());
    let mark = async |mode| {
        limiter.repository().set_mode(&level, mode).await.unwrap();
        let asked = ask(&limiter, estimated, service_fn(hello), request("user-1")).await;
        let response = asked.unwrap();
        let mark = response.headers().get("ratelimit-admission");
        (
            response.status().as_u16(),
            mark.map(|mark| mark.to_str().unwrap().to_owned()),
        )
    };
    assert_eq!(mark(Mode::Observe).await, (200, None));
    assert_eq!(mark(Mode::Observe).await, (200, Some("observed".to_owned())));
    assert_eq!(mark(Mode::Bypass).await, (200, Some("bypassed".to_owned())));
    assert_eq!(mark(Mode::Disabled).await, (403, None));
    let asked = ask(&limiter, estimated, service_fn(hello), request("user-1")).await;
    let response = asked.unwrap();
    assert!(!response.headers().contains_key("retry-after"));
    let problem: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["type"], "urn:zae-limiter:problem:disabled");
    let mut grpc = request("user-1");
    grpc.headers_mut()
        .insert("content-type", "application/grpc".parse().unwrap());
    let refused = ask(&limiter, estimated, service_fn(hello), grpc).await.unwrap();
    assert_eq!(refused.headers()["grpc-status"], "7");
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
