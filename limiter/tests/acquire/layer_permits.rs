//! The tower layer: a response holds its permit until its last byte, however it ends.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use tower::service_fn;
use zae_limiter::RateLimiter;
use zae_limiter::tower::Call;

use crate::acquire::layer::{ask, request};
use crate::acquire::layer_costs::Pieces;
use crate::acquire::support::*;

const LIMITS: [&str; 2] = ["rpm:10", "parallel:1 at once for 60s"];

fn in_flight(request: &Request<()>) -> Option<Call> {
    let user = request.headers().get("x-user")?.to_str().ok()?;
    Some(Call::new(user, GPT).consume("rpm", 1).consume("parallel", 1))
}

async fn stream(
    limiter: &RateLimiter,
) -> Response<impl Body<Data = Bytes, Error = Infallible> + Unpin + Send + 'static> {
    let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Pieces::new(&[10, 20, 30]))));
    ask(limiter, in_flight, service, request("user-1")).await.unwrap()
}

async fn permits(limiter: &RateLimiter) -> i64 {
    limiter.settled().await;
    available(limiter, "user-1", "parallel").await
}

#[tokio::test(start_paused = true)]
async fn a_stream_holds_its_permit_until_its_last_byte() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let mut body = stream(&limiter).await.into_body();
    for _ in 0..3 {
        body.frame().await.unwrap().unwrap();
        assert_eq!(permits(&limiter).await, 0);
        assert_eq!(stream(&limiter).await.status(), 429);
    }
    assert!(body.frame().await.is_none());
    assert_eq!(
        permits(&limiter).await,
        1,
        "at the end, while the body is still held"
    );
    assert_eq!(stream(&limiter).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_lasts_longer_than_the_expiry_keeps_its_permit() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let mut body = stream(&limiter).await.into_body();
    body.frame().await.unwrap().unwrap();
    tokio::time::sleep(secs(300)).await;
    assert_eq!(stream(&limiter).await.status(), 429);
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(permits(&limiter).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_releases_the_permit() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    let mut body = stream(&limiter).await.into_body();
    body.frame().await.unwrap().unwrap();
    // The server drops the body when the connection is gone.
    drop(body);
    assert_eq!(permits(&limiter).await, 1);
    let response = stream(&limiter).await;
    assert_eq!(response.status(), 200);
    // Before the first byte, and outside of the runtime.
    std::thread::spawn(move || drop(response)).join().unwrap();
    assert_eq!(permits(&limiter).await, 1);
}
