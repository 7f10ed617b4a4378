//! What comes back with time, through the store.

use zae_limiter::{Clock, RetryAfter};

use crate::acquire::support::*;

/// Takes one token whenever the last refusal says that there is one, for a minute by the clock that decides.
async fn admitted_in_a_minute(latency: std::time::Duration) -> u64 {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rps:10/sec"]).await;
    stage.wire.latency(latency);
    // Reads the configuration, so that the first decision is made at the first acquire and not a round trip later.
    limiter.acquire("user-1", GPT).peek().await.unwrap();
    let start = stage.clock.now();
    let mut admitted = 0;
    while stage.clock.now().since(start) <= 60_000 {
        match take(&limiter, "user-1", "rps", 1).await {
            Ok(()) => admitted += 1,
            Err(error) => match exceeded(error).retry_after() {
                RetryAfter::After(wait) => advance(wait).await,
                other => panic!("{other:?}"),
            },
        }
    }
    admitted
}

#[tokio::test(start_paused = true)]
async fn a_saturated_limit_admits_its_rate_and_its_burst_whatever_the_round_trip_takes() {
    for latency in [0, 1, 7, 30, 90] {
        let admitted = admitted_in_a_minute(millis(latency)).await;
        assert_eq!(admitted, 600 + 10, "with a round trip of {latency} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn odd_rates_lose_nothing_however_often_they_are_asked() {
    let stage = Stage::new();
    // Seven in 61 seconds: nothing divides.
    let limiter = stage.limiter(&["odd:7/61s"]).await;
    let mut taken = drain(&limiter, "user-1", "odd").await;
    for step in [1, 7, 13, 997, 1000, 8713].iter().cycle().take(600) {
        advance(millis(*step)).await;
        taken += drain(&limiter, "user-1", "odd").await;
    }
    let elapsed: u64 = [1, 7, 13, 997, 1000, 8713].iter().cycle().take(600).sum();
    assert_eq!(taken, 7 + elapsed * 7 / 61_000);
}

#[tokio::test(start_paused = true)]
async fn limits_with_different_periods_on_one_bucket_refill_independently() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rps:10/sec", "rpd:50/day"]).await;
    let call = || limiter.acquire("user-1", GPT).consume("rps", 5).consume("rpd", 5);
    for _ in 0..10 {
        call().await.unwrap().commit().await.unwrap();
        advance(millis(500)).await;
    }
    let refused = exceeded(call().await.unwrap_err());
    let names: Vec<_> = refused
        .refused_limits()
        .map(|one| one.limit.name().as_str())
        .collect();
    assert_eq!(names, ["rpd"]);
    assert_eq!(available(&limiter, "user-1", "rps").await, 10);
    // 24 hours over 50 is one token in 28 minutes and 48 seconds, of which five seconds are over.
    let first = exceeded(take(&limiter, "user-1", "rpd", 1).await.unwrap_err());
    assert_eq!(first.retry_after(), RetryAfter::After(secs(28 * 60 + 48 - 5)));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_holds_until_the_promised_time_and_not_longer() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:3"]).await;
    take(&limiter, "user-1", "rpm", 3).await.unwrap();
    let refused = exceeded(take(&limiter, "user-1", "rpm", 2).await.unwrap_err());
    assert_eq!(refused.retry_after(), RetryAfter::After(secs(40)));
    advance(secs(40) - millis(1)).await;
    let almost = exceeded(take(&limiter, "user-1", "rpm", 2).await.unwrap_err());
    assert_eq!(almost.retry_after(), RetryAfter::After(millis(1)));
    advance(millis(1)).await;
    take(&limiter, "user-1", "rpm", 2).await.unwrap();
}
