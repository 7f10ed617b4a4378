//! Who works on a bucket: the caller alone, and a task as soon as somebody else needs the bucket or the caller has gone.

use std::future::{Future as _, IntoFuture as _};
use std::pin::Pin;
use std::task::{Context, Waker};

use zae_limiter::{AcquireFuture, RateLimiter};

use crate::leases::with;
use crate::support::*;

/// A call whose write is under way, polled twice and not again: the first time it lets others ask too.
async fn under_way(stage: &Stage, limiter: &RateLimiter) -> AcquireFuture {
    take(limiter, "user-1", "tpm", 1).await.unwrap();
    stage.wire.latency(millis(10));
    stage.wire.calls();
    let mut call = limiter.acquire("user-1", GPT).consume("tpm", 10).into_future();
    for _ in 0..2 {
        let polled = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }
    assert_eq!(stage.wire.operations(), ["UpdateItem"], "its write is under way");
    call
}

#[tokio::test(start_paused = true)]
async fn a_caller_works_on_its_bucket_without_a_task() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let call = under_way(&stage, &limiter).await;
    assert_eq!(
        tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        tasks
    );
    call.await.unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_is_no_longer_polled_holds_up_nobody_else() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let forgotten = under_way(&stage, &limiter).await;
    take(&limiter, "user-1", "tpm", 100).await.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 111_000);
    forgotten.await.unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn settling_does_not_wait_for_a_caller_that_is_no_longer_polled() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    let forgotten = under_way(&stage, &limiter).await;
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 11_000);
    drop(forgotten);
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_caller_is_dropped_goes_on_and_is_given_back() {
    let (stage, limiter) = with(&["tpm:1000"]).await;
    drop(under_way(&stage, &limiter).await);
    limiter.settled().await;
    assert_eq!(stage.wire.operations(), ["UpdateItem"], "the refund");
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 1_000);
}
