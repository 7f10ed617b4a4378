//! Limits that come with a call.

use crate::acquire::support::*;

#[tokio::test(start_paused = true)]
async fn they_are_honoured_on_a_bucket_that_exists() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    let call = || {
        limiter
            .acquire("user-1", GPT)
            .consume("rpd", 1)
            .limits(limits(&["rpd:2/day"]))
    };
    call().await.unwrap().commit().await.unwrap();
    call().await.unwrap().commit().await.unwrap();
    let refused = exceeded(call().await.unwrap_err());
    assert_eq!(refused.statuses()[0].limit.burst().get(), 2);
}

#[tokio::test(start_paused = true)]
async fn they_need_no_stored_limits() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    let call = || {
        limiter
            .acquire("user-1", GPT)
            .consume("rpd", 1)
            .limits(limits(&["rpd:2/day"]))
    };
    for _ in 0..2 {
        call().await.unwrap().commit().await.unwrap();
    }
    exceeded(call().await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn they_cost_one_write_once_the_bucket_has_them() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    let call = || {
        limiter
            .acquire("user-1", GPT)
            .consume("rpd", 1)
            .limits(limits(&["rpd:50/day"]))
    };
    call().await.unwrap().commit().await.unwrap();
    stage.wire.calls();
    call().await.unwrap().commit().await.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
}

#[tokio::test(start_paused = true)]
async fn callers_that_disagree_never_get_more_than_the_looser_of_the_two() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:20/day"]).await;
    let mut taken = 0;
    for round in 0..60 {
        let call = limiter.acquire("user-1", GPT).consume("rpd", 1);
        let call = if round % 2 == 0 {
            call
        } else {
            call.limits(limits(&["rpd:10/day"]))
        };
        if let Ok(lease) = call.await {
            lease.commit().await.unwrap();
            taken += 1;
        }
    }
    assert!(taken <= 20, "{taken}");
    assert!(taken >= 10, "{taken}");
}

#[tokio::test(start_paused = true)]
async fn more_of_a_lease_is_taken_under_the_limits_that_it_came_with() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    let call = limiter.acquire("user-1", GPT).consume("special", 1);
    let mut lease = call.limits(limits(&["special:5/day"])).await.unwrap();
    lease.consume("special", 3).await.unwrap();
    exceeded(lease.consume("special", 2).await.unwrap_err());
    lease.commit().await.unwrap();
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.level("special"), 1000);
    assert_eq!(
        bucket.number("b_rpd_tk"),
        None,
        "the stored limits were not brought back in between"
    );
}
