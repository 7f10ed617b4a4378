//! Calls that memory decides: ready with their first poll, without a request, and with the result that the table would give.

use std::future::{Future as _, IntoFuture as _};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use zae_limiter::error::Invalid;
use zae_limiter::{Acquire, Error, Lease, Limit};

use crate::acquire::leases::with;
use crate::acquire::support::*;

/// The result, if the first poll has it.
fn first_poll(call: Acquire) -> Option<Result<Lease, Error>> {
    let mut future = call.into_future();
    match Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_was_just_seen_is_repeated_at_once() {
    let (stage, limiter) = with(&["rpm:10", "tpm:1000"]).await;
    take(&limiter, "user-1", "rpm", 10).await.unwrap();
    let seen = exceeded(take(&limiter, "user-1", "rpm", 2).await.unwrap_err());
    stage.wire.calls();
    let call = || limiter.acquire("user-1", GPT).consume("rpm", 2);
    let refused = first_poll(call()).expect("memory refuses it");
    assert_eq!(exceeded(refused.unwrap_err()), seen);
    assert!(stage.wire.calls().is_empty());
    assert_eq!(limiter.stats().refused, 2);
    assert!(
        first_poll(limiter.acquire("user-1", GPT).consume("tpm", 2)).is_none(),
        "there is enough"
    );
    limiter.settled().await;
    advance(secs(2)).await;
    assert!(first_poll(call()).is_none(), "the memory is over");
}

#[tokio::test(start_paused = true)]
async fn tokens_that_come_back_are_seen() {
    let (_stage, limiter) = with(&["rpm:10"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let held = lease(&limiter, "user-1", "rpm", 9).await.unwrap();
    let call = || limiter.acquire("user-1", GPT).consume("rpm", 5);
    assert!(call().await.is_err());
    drop(held);
    assert!(first_poll(call()).is_none(), "a refund is queued");
    call().await.unwrap().commit().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn limits_that_this_process_changes_hold_for_the_next_call() {
    let (_stage, limiter) = with(&["rpm:10"]).await;
    take(&limiter, "user-1", "rpm", 10).await.unwrap();
    assert!(take(&limiter, "user-1", "rpm", 2).await.is_err());
    assert!(take(&limiter, "user-1", "rpm", 2).await.is_err());
    let more = [
        Limit::per_second("rpm", 100).unwrap(),
        Limit::per_minute("tpm", 5).unwrap(),
    ];
    limiter
        .repository()
        .set_limits("user-1", GPT, more)
        .await
        .unwrap();
    advance(millis(100)).await;
    take(&limiter, "user-1", "tpm", 1).await.unwrap();
    advance(millis(100)).await;
    take(&limiter, "user-1", "rpm", 2).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_repeated_call_with_a_mistake_says_what_is_wrong() {
    let (_stage, limiter) = with(&["rpm:10"]).await;
    for _ in 0..2 {
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
    }
    let unknown = take(&limiter, "user-1", "typo", 1).await;
    assert!(
        matches!(
            unknown,
            Err(Error::Invalid(Invalid::Argument { field: "limit", .. }))
        ),
        "{unknown:?}"
    );
    let nothing = limiter.acquire("user-1", GPT).consume("rpm", 0).await;
    assert!(matches!(
        nothing,
        Err(Error::Invalid(Invalid::Argument { field: "consume", .. }))
    ));
    limiter.shutdown().await;
    let late = take(&limiter, "user-1", "rpm", 1).await;
    assert!(matches!(late, Err(Error::ShutDown { .. })));
}

#[tokio::test(start_paused = true)]
async fn tokens_taken_ahead_are_granted_at_once() {
    let stage = Stage::new();
    let builder = stage.builder().token_chunks();
    let limiter = builder.default_limits([hoard("rpm", 100_000)]).await.unwrap();
    let call = || limiter.acquire("user-1", GPT).consume("rpm", 1);
    let mut calls = 0;
    while limiter.stats().chunk_tokens < 5 {
        call().await.unwrap().commit().await.unwrap();
        tokio::time::sleep(millis(10)).await;
        calls += 1;
    }
    stage.wire.calls();
    let kept = first_poll(call()).expect("it was taken ahead").unwrap();
    let given_back = first_poll(call()).expect("it was taken ahead").unwrap();
    assert!(stage.wire.calls().is_empty());
    kept.commit().await.unwrap();
    drop(given_back);
    assert_eq!(limiter.stats().granted, calls + 2);
    assert_eq!(limiter.shutdown().await.unwritten_total, 0);
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.consumed("rpm"), i64::try_from(calls + 1).unwrap() * 1000);
}
