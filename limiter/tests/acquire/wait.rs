//! Waiting for tokens instead of being refused.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;
use zae_limiter::{Error, Lease, RateLimiter, RetryAfter};

use crate::support::*;

async fn patient(limiter: &RateLimiter, tokens: u64, patience: std::time::Duration) -> Result<Lease, Error> {
    let call = limiter.acquire("user-1", GPT).consume("rps", tokens);
    call.wait_up_to(patience).await
}

async fn empty(stage: &Stage) -> RateLimiter {
    let limiter = stage.limiter(&["rps:10/sec"]).await;
    take(&limiter, "user-1", "rps", 10).await.unwrap();
    limiter
}

#[tokio::test(start_paused = true)]
async fn it_goes_ahead_at_once_when_the_tokens_are_there() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rps:10/sec"]).await;
    let before = Instant::now();
    patient(&limiter, 10, secs(60))
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    assert_eq!(before.elapsed(), millis(0));
}

#[tokio::test(start_paused = true)]
async fn it_waits_until_they_are_there_and_not_longer() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let before = Instant::now();
    patient(&limiter, 5, secs(60))
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    let waited = before.elapsed();
    assert!(waited >= millis(500) && waited <= millis(505), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn it_is_refused_at_once_if_they_will_not_be_there_in_time() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let before = Instant::now();
    let refused = exceeded(patient(&limiter, 5, millis(400)).await.unwrap_err());
    assert_eq!(refused.retry_after(), RetryAfter::After(millis(500)));
    let never = exceeded(patient(&limiter, 11, secs(3600)).await.unwrap_err());
    assert_eq!(never.retry_after(), RetryAfter::Never);
    assert_eq!(before.elapsed(), millis(0));
}

#[tokio::test(start_paused = true)]
async fn any_patience_is_fine() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    patient(&limiter, 1, std::time::Duration::MAX)
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    exceeded(
        patient(&limiter, 10, std::time::Duration::ZERO)
            .await
            .unwrap_err(),
    );
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_order_of_arrival() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut callers = Vec::new();
    // The first asks for most: a small call behind it must not pass it by for ever.
    for (number, tokens) in [8, 1, 1, 3, 1].into_iter().enumerate() {
        let (limiter, served) = (limiter.clone(), served.clone());
        callers.push(tokio::spawn(async move {
            patient(&limiter, tokens, secs(60))
                .await
                .unwrap()
                .commit()
                .await
                .unwrap();
            served.lock().unwrap().push(number);
        }));
        tokio::task::yield_now().await;
    }
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn one_who_leaves_the_line_lets_the_next_one_go_ahead() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let first = {
        let limiter = limiter.clone();
        tokio::spawn(async move { patient(&limiter, 10, secs(60)).await })
    };
    tokio::task::yield_now().await;
    let second = {
        let limiter = limiter.clone();
        tokio::spawn(async move { patient(&limiter, 1, secs(60)).await.map(Lease::commit)?.await })
    };
    advance(millis(50)).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let before = Instant::now();
    second.await.unwrap().unwrap();
    assert!(before.elapsed() <= millis(55), "{:?}", before.elapsed());
    limiter.settled().await;
    assert_eq!(
        stage.bucket("user-1").await.unwrap().consumed("rps"),
        11_000,
        "nothing was taken for the first"
    );
}

#[tokio::test(start_paused = true)]
async fn a_whole_line_is_admitted_at_the_limit_s_rate() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let before = Instant::now();
    let callers: Vec<_> = (0..30)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { patient(&limiter, 1, secs(60)).await.map(Lease::commit)?.await })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    let waited = before.elapsed();
    assert!(waited >= secs(3) && waited <= millis(3100), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_line_whose_time_is_over_is_refused() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let callers: Vec<_> = (0..30)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { patient(&limiter, 1, secs(1)).await.map(Lease::commit)?.await })
        })
        .collect();
    let mut admitted = 0;
    for caller in callers {
        match caller.await.unwrap() {
            Ok(()) => admitted += 1,
            Err(error) => drop(exceeded(error)),
        }
    }
    assert!((9..=10).contains(&admitted), "{admitted}");
}
