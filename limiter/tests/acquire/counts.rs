//! How many calls each thing costs.

use crate::acquire::support::*;

/// A limiter that has read the configuration and knows the bucket.
async fn warm(stage: &Stage, limits: &[&str]) -> zae_limiter::RateLimiter {
    let limiter = stage.limiter(limits).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    stage.wire.calls();
    limiter
}

#[tokio::test(start_paused = true)]
async fn a_cold_acquire_is_one_read_and_one_write() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.wire.operations(), ["BatchGetItem", "UpdateItem"]);
}

#[tokio::test(start_paused = true)]
async fn a_cold_acquire_on_a_bucket_of_another_process_costs_the_same() {
    let stage = Stage::new();
    warm(&stage, &["rpm:10"]).await;
    let other = stage.limiter(&["rpm:10"]).await;
    take(&other, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.wire.operations(), ["BatchGetItem", "UpdateItem"]);
}

#[tokio::test(start_paused = true)]
async fn a_warm_acquire_is_one_write_also_when_refill_is_needed() {
    let stage = Stage::new();
    // One comes back each second.
    let limiter = warm(&stage, &["rpm:10/10s"]).await;
    for (name, pause, tokens) in [
        ("at once", millis(0), 1),
        ("the rest", millis(0), 8),
        ("with refill", secs(4), 4),
        ("with part of it", secs(5), 1),
        ("full", secs(7), 10),
        ("long full", secs(29), 1),
    ] {
        advance(pause).await;
        take(&limiter, "user-1", "rpm", tokens).await.unwrap();
        let calls = stage.wire.calls();
        assert_eq!(calls.len(), 1, "{name}: {calls:?}");
        assert_eq!(
            (calls[0].operation.as_str(), calls[0].status),
            ("UpdateItem", 200),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_image_costs_one_write_more() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10"]).await;
    let other = stage.limiter(&["rpm:10"]).await;
    advance(secs(6)).await;
    take(&other, "user-1", "rpm", 10).await.unwrap();
    advance(secs(30)).await;
    stage.wire.calls();
    take(&limiter, "user-1", "rpm", 5).await.unwrap();
    let calls = stage.wire.calls();
    let statuses: Vec<_> = calls
        .iter()
        .map(|call| (call.operation.as_str(), call.status))
        .collect();
    assert_eq!(statuses, [("UpdateItem", 400), ("UpdateItem", 200)]);
}

#[tokio::test(start_paused = true)]
async fn after_the_configuration_has_expired_one_read_more() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10"]).await;
    advance(secs(61)).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.wire.operations(), ["BatchGetItem", "UpdateItem"]);
}

#[tokio::test(start_paused = true)]
async fn a_commit_without_adjustments_costs_nothing_and_one_with_them_a_write() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10", "tpm:1000"]).await;
    let lease = lease(&limiter, "user-1", "tpm", 10).await.unwrap();
    stage.wire.calls();
    lease.commit().await.unwrap();
    assert_eq!(stage.wire.operations(), Vec::<String>::new());

    let call = limiter
        .acquire("user-1", GPT)
        .consume("rpm", 1)
        .consume("tpm", 10);
    let mut lease = call.await.unwrap();
    stage.wire.calls();
    lease.adjust("tpm", 5).adjust("rpm", 1).adjust("tpm", -2);
    lease.commit().await.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
}

#[tokio::test(start_paused = true)]
async fn a_rollback_is_one_write() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10"]).await;
    let lease = lease(&limiter, "user-1", "rpm", 3).await.unwrap();
    stage.wire.calls();
    lease.rollback().await.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
}

#[tokio::test(start_paused = true)]
async fn adjustments_that_cancel_out_cost_nothing() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10"]).await;
    let mut lease = lease(&limiter, "user-1", "rpm", 3).await.unwrap();
    stage.wire.calls();
    lease.adjust("rpm", 5).adjust("rpm", -5);
    lease.commit().await.unwrap();
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_a_fresh_image_costs_nothing_for_a_second() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10"]).await;
    take(&limiter, "user-1", "rpm", 9).await.unwrap();
    stage.wire.calls();
    for _ in 0..50 {
        exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
        advance(millis(20)).await;
    }
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
    // The second is over: it looks, and then knows for another one.
    advance(millis(20)).await;
    exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    let calls = stage.wire.operations();
    assert_eq!(calls, ["GetItem"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_for_the_amount_and_not_for_the_bucket() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10"]).await;
    exceeded(take(&limiter, "user-1", "rpm", 10).await.unwrap_err());
    take(&limiter, "user-1", "rpm", 9).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_another_process_gave_back_is_found_when_the_memory_ends() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10"]).await;
    let other = stage.limiter(&["rpm:10"]).await;
    let lease = lease(&other, "user-1", "rpm", 9).await.unwrap();
    exceeded(take(&limiter, "user-1", "rpm", 5).await.unwrap_err());
    lease.rollback().await.unwrap();
    exceeded(take(&limiter, "user-1", "rpm", 5).await.unwrap_err());
    advance(millis(1001)).await;
    take(&limiter, "user-1", "rpm", 5).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_bucket_of_another_process_is_not_refused_by_a_read_that_may_be_behind() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10"]).await;
    take(&limiter, "user-1", "rpm", 9).await.unwrap();
    let other = stage.limiter(&["rpm:10"]).await;
    stage.wire.calls();
    exceeded(take(&other, "user-1", "rpm", 1).await.unwrap_err());
    assert_eq!(
        stage.wire.operations(),
        ["BatchGetItem", "GetItem"],
        "a read of the configuration may be behind; a refusal needs a consistent one"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_that_arrive_during_a_write_are_folded_into_the_next_one() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10000"]).await;
    stage.wire.latency(millis(10));
    let calls: Vec<_> = (0..500)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { take(&limiter, "user-1", "rpm", 1).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let most = stage.wire.most_in_flight();
    let operations = stage.wire.operations();
    assert!(operations.len() <= 2, "{operations:?}");
    assert_eq!(most, 1, "one write at a time");
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.number("ev"), Some(501), "each is an event");
    assert_eq!(bucket.consumed("rpm"), 501_000);
}

#[tokio::test(start_paused = true)]
async fn acquires_adjustments_and_refunds_share_a_write() {
    let stage = Stage::new();
    let limiter = warm(&stage, &["rpm:10000"]).await;
    let mut adjusted = lease(&limiter, "user-1", "rpm", 10).await.unwrap();
    let dropped = lease(&limiter, "user-1", "rpm", 10).await.unwrap();
    stage.wire.calls();
    stage.wire.latency(millis(10));
    adjusted.adjust("rpm", 7);
    drop(dropped);
    let (committed, taken) = tokio::join!(adjusted.commit(), take(&limiter, "user-1", "rpm", 3));
    committed.unwrap();
    taken.unwrap();
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
    assert_eq!(
        stage.bucket("user-1").await.unwrap().consumed("rpm"),
        (1 + 17 + 3) * 1000
    );
}

#[tokio::test(start_paused = true)]
async fn buckets_do_not_wait_for_each_other() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    for user in ["user-1", "user-2", "user-3"] {
        take(&limiter, user, "rpm", 1).await.unwrap();
    }
    stage.wire.calls();
    stage.wire.latency(millis(10));
    let one = |user| take(&limiter, user, "rpm", 1);
    let (a, b, c) = tokio::join!(one("user-1"), one("user-2"), one("user-3"));
    for taken in [a, b, c] {
        taken.unwrap();
    }
    assert_eq!(stage.wire.most_in_flight(), 3);
}

#[tokio::test(start_paused = true)]
async fn peeking_writes_nothing() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    let peek = limiter
        .acquire("user-1", GPT)
        .consume("rpm", 11)
        .peek()
        .await
        .unwrap();
    assert!(!peek.would_pass());
    let peek = limiter
        .acquire("user-1", GPT)
        .consume("rpm", 10)
        .peek()
        .await
        .unwrap();
    assert!(peek.would_pass());
    assert_eq!(peek.statuses()[0].available, 10);
    assert!(
        stage
            .wire
            .operations()
            .iter()
            .all(|operation| operation.ends_with("GetItem"))
    );
    assert!(stage.bucket("user-1").await.is_none());
}
