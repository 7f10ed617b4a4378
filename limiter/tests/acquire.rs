//! What `acquire` does, through the public API on the embedded store.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use zae_limiter::{
    EmbeddedStore, Error, Limit, ManualClock, RateLimitExceeded, RateLimiter, Repository, RetryAfter,
    Timestamp,
};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap()))
}

async fn limiter(clock: &Arc<ManualClock>, limits: &[&str]) -> RateLimiter {
    let limits: Vec<Limit> = limits.iter().map(|text| text.parse().unwrap()).collect();
    RateLimiter::embedded()
        .clock(clock.clone())
        .default_limits(limits)
        .await
        .unwrap()
}

fn exceeded(error: Error) -> RateLimitExceeded {
    match error {
        Error::RateLimitExceeded(exceeded) => *exceeded,
        other => panic!("{other}"),
    }
}

async fn available(limiter: &RateLimiter, entity: &str, limit: &str) -> i64 {
    let peek = limiter.acquire(entity, "gpt-4").peek().await.unwrap();
    peek.statuses
        .iter()
        .find(|s| s.limit.name().as_str() == limit && s.entity.as_str() == entity)
        .unwrap()
        .available
}

async fn take(limiter: &RateLimiter, entity: &str, limit: &str, tokens: u64) -> Result<(), Error> {
    limiter
        .acquire(entity, "gpt-4")
        .consume(limit, tokens)
        .await?
        .commit()
        .await
}

#[tokio::test]
async fn tokens_are_taken_until_there_are_none() {
    let clock = clock();
    let limiter = limiter(&clock, &["rpm:3", "tpm:1000"]).await;
    for _ in 0..3 {
        let lease = limiter
            .acquire("user-1", "gpt-4")
            .consume("rpm", 1)
            .consume("tpm", 100)
            .await
            .unwrap();
        lease.commit().await.unwrap();
    }
    let refused = limiter
        .acquire("user-1", "gpt-4")
        .consume("rpm", 1)
        .consume("tpm", 100)
        .await
        .unwrap_err();
    let refused = exceeded(refused);
    assert_eq!(refused.violations().count(), 1);
    assert_eq!(refused.passed().count(), 1);
    assert_eq!(refused.retry_after(), RetryAfter::After(Duration::from_secs(20)));
    assert_eq!(available(&limiter, "user-1", "rpm").await, 0);
    assert_eq!(
        available(&limiter, "user-1", "tpm").await,
        700,
        "a refused call takes nothing of any limit"
    );
    let _: &Repository = &limiter;
    let _ = EmbeddedStore::memory();
}

#[tokio::test]
async fn a_refusal_holds_until_the_promised_moment_and_not_longer() {
    let clock = clock();
    let limiter = limiter(&clock, &["rpm:3"]).await;
    take(&limiter, "user-1", "rpm", 3).await.unwrap();
    let refused = exceeded(take(&limiter, "user-1", "rpm", 2).await.unwrap_err());
    let RetryAfter::After(wait) = refused.retry_after() else {
        panic!("never")
    };
    clock.advance(wait - Duration::from_millis(1));
    take(&limiter, "user-1", "rpm", 2).await.unwrap_err();
    clock.advance(Duration::from_millis(1));
    take(&limiter, "user-1", "rpm", 2).await.unwrap();
}

#[tokio::test]
async fn a_lease_that_is_dropped_goes_back_and_a_committed_one_does_not() {
    let clock = clock();
    let limiter = limiter(&clock, &["rpm:10"]).await;
    let lease = limiter
        .acquire("user-1", "gpt-4")
        .consume("rpm", 4)
        .await
        .unwrap();
    assert_eq!(available(&limiter, "user-1", "rpm").await, 6);
    drop(lease);
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rpm").await, 10);
    take(&limiter, "user-1", "rpm", 4).await.unwrap();
    limiter.settled().await;
    assert_eq!(available(&limiter, "user-1", "rpm").await, 6);
}

#[tokio::test]
async fn an_adjustment_may_make_debt_which_time_pays() {
    let clock = clock();
    let limiter = limiter(&clock, &["tpm:1000"]).await;
    let mut lease = limiter
        .acquire("user-1", "gpt-4")
        .consume("tpm", 500)
        .await
        .unwrap();
    lease.adjust("tpm", 1500);
    assert_eq!(lease.consumed().values().copied().collect::<Vec<_>>(), [2000]);
    lease.commit().await.unwrap();
    assert_eq!(available(&limiter, "user-1", "tpm").await, -1000);
    clock.advance(Duration::from_secs(60));
    assert_eq!(available(&limiter, "user-1", "tpm").await, 0);
    take(&limiter, "user-1", "tpm", 1).await.unwrap_err();
    clock.advance(Duration::from_secs(60));
    take(&limiter, "user-1", "tpm", 1000).await.unwrap();
}
