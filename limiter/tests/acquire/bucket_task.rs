//! The task of a bucket: it goes on whether its callers are polled, dropped, or their runtime has ended.

use std::future::{Future as _, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Waker};

use tokio::time::Instant;
use zae_limiter::{Acquire, RateLimiter};

use crate::acquire::leases::with;
use crate::acquire::support::*;

/// A call whose write is in flight, polled once and not again.
async fn in_flight(stage: &Stage, limiter: &RateLimiter) -> <Acquire as IntoFuture>::IntoFuture {
    take(limiter, "user-1", "tpm", 1).await.unwrap();
    stage.wire.latency(millis(10));
    stage.wire.calls();
    let mut call = limiter.acquire("user-1", GPT).consume("tpm", 10).into_future();
    let polled = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    tokio::time::sleep(millis(1)).await;
    assert_eq!(stage.wire.operations(), ["UpdateItem"], "its write is in flight");
    call
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_no_longer_polled_holds_up_nobody_else() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let forgotten = in_flight(&stage, &limiter).await;
    take(&limiter, "user-1", "tpm", 100).await.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 111_000);
    forgotten.await.unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn settling_does_not_wait_for_a_caller_that_is_no_longer_polled() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let forgotten = in_flight(&stage, &limiter).await;
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 11_000);
    drop(forgotten);
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_caller_is_dropped_goes_on_and_is_given_back() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    drop(in_flight(&stage, &limiter).await);
    limiter.settled().await;
    assert_eq!(stage.wire.operations(), ["UpdateItem"], "the refund");
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 1_000);
}

#[test]
fn a_caller_restarts_the_task_of_a_runtime_that_ended() {
    let (first, second) = (paused_runtime(), paused_runtime());
    let (stage, limiter) = first.block_on(async {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:10"]).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        stage.wire.latency(millis(100));
        let limiter_of_call = limiter.clone();
        tokio::spawn(async move { take(&limiter_of_call, "user-1", "rpm", 2).await });
        // Its write is on the way when the runtime stops being polled.
        tokio::time::sleep(millis(10)).await;
        (stage, limiter)
    });
    second.block_on(async {
        stage.wire.latency(millis(0));
        let waiting = {
            let limiter = limiter.clone();
            tokio::spawn(async move { take(&limiter, "user-1", "rpm", 3).await })
        };
        tokio::time::sleep(millis(10)).await;
        assert!(!waiting.is_finished(), "the task is on the other runtime");
        first.shutdown_background();
        let before = Instant::now();
        waiting.await.unwrap().unwrap();
        assert!(before.elapsed() <= millis(500), "{:?}", before.elapsed());
        limiter.settled().await;
        let consumed = stage.bucket("user-1").await.unwrap().consumed("rpm");
        assert!([4_000, 6_000].contains(&consumed), "{consumed}");
    });
}

#[tokio::test(start_paused = true)]
async fn settling_ends_beside_traffic_on_this_and_other_buckets() {
    let (stage, limiter) = with(&["tpm:1000000"]).await;
    stage.wire.latency(millis(10));
    // Two callers on each bucket: while a write carries the call of one, that of the other waits.
    let traffic: Vec<_> = (0..10)
        .map(|number| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                loop {
                    let user = format!("user-{}", number % 5);
                    take(&limiter, &user, "tpm", 1).await.unwrap();
                    tokio::time::sleep(millis(number)).await;
                }
            })
        })
        .collect();
    tokio::time::sleep(secs(1)).await;
    drop(lease(&limiter, "user-6", "tpm", 10).await.unwrap());
    let settled = tokio::time::timeout(secs(60), limiter.settled()).await;
    assert!(settled.is_ok(), "there is always a write under way somewhere");
    assert_eq!(stage.bucket("user-6").await.unwrap().consumed("tpm"), 0);
    traffic.iter().for_each(tokio::task::JoinHandle::abort);
}
