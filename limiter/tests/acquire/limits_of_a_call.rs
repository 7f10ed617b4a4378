//! Limits that come with a call.

use zae_limiter::error::Invalid;
use zae_limiter::{Error, Limit, RateLimiter};

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

/// A call with a limit that no other call has.
async fn under_a_name_of_its_own(limiter: &RateLimiter, number: usize) -> Result<(), Error> {
    let name = format!("limit-{number}");
    let limit = Limit::per_day(&name, 100).unwrap();
    let call = limiter.acquire("user-1", GPT).limits([limit]).consume(&name, 1);
    call.await?.commit().await
}

#[tokio::test(start_paused = true)]
async fn ever_new_names_are_refused_while_the_bucket_can_still_be_written() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:100/day"]).await;
    for number in 0..56 {
        under_a_name_of_its_own(&limiter, number).await.unwrap();
    }
    for number in 56..300 {
        let error = under_a_name_of_its_own(&limiter, number).await.unwrap_err();
        assert!(
            matches!(&error, Error::Invalid(Invalid::Argument { field: "limits", .. })),
            "{error}"
        );
        assert!(error.to_string().contains("room for 56 limits"), "{error}");
        tokio::time::sleep(secs(1)).await;
    }
    let names = |bucket: Bucket| bucket.0.into_keys().filter(|name| name.ends_with("_tk")).count();
    assert_eq!(names(stage.bucket("user-1").await.unwrap()), 56);
    // A hundred a day: a token is back after 15 minutes, and full limits make room, also for stored ones.
    tokio::time::sleep(secs(900)).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    for number in 300..340 {
        under_a_name_of_its_own(&limiter, number).await.unwrap();
    }
    tokio::time::sleep(secs(900)).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    assert!(names(stage.bucket("user-1").await.unwrap()) <= 30);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_without_room_is_decided_from_memory() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    for number in 0..56 {
        under_a_name_of_its_own(&limiter, number).await.unwrap();
    }
    under_a_name_of_its_own(&limiter, 56).await.unwrap_err();
    stage.wire.calls();
    under_a_name_of_its_own(&limiter, 57).await.unwrap_err();
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
}
