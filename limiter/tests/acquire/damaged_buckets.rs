//! Buckets that somebody damages while a limiter uses them: an error until they are repaired, never an admission.

use zae_limiter::error::Internal;
use zae_limiter::{Error, OnUnavailable, RateLimiter};

use crate::acquire::support::*;

/// A limiter that has taken tokens of its bucket, and admits calls where the table is unavailable.
async fn in_use(tokens: u64) -> (Stage, RateLimiter) {
    let stage = Stage::new();
    let builder = stage.builder().default_limits([hoard("rpm", 10)]);
    let limiter = builder.on_unavailable(OnUnavailable::Allow).await.unwrap();
    take(&limiter, "user-1", "rpm", tokens).await.unwrap();
    stage.wire.calls();
    (stage, limiter)
}

/// Makes the item one that cannot be read. Returns the time of its last refill, which repairs it.
async fn damage(stage: &Stage) -> Option<i64> {
    let refilled_at = stage.bucket("user-1").await.unwrap().number("rf");
    stage.tamper("user-1", &[("rf", Some(-5))]).await;
    refilled_at
}

async fn is_an_error(limiter: &RateLimiter) {
    let error = take(limiter, "user-1", "rpm", 2).await.unwrap_err();
    assert!(
        matches!(error, Error::Internal(Internal::Malformed(_))),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_whose_item_cannot_be_read_is_an_error_until_the_repair() {
    let (stage, limiter) = in_use(1).await;
    let refilled_at = damage(&stage).await;
    is_an_error(&limiter).await;
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 1_000);

    stage.tamper("user-1", &[("rf", refilled_at)]).await;
    take(&limiter, "user-1", "rpm", 2).await.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 3_000);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_cannot_be_read_before_a_refusal_is_an_error_until_the_repair() {
    let (stage, limiter) = in_use(10).await;
    let refilled_at = damage(&stage).await;
    // What the limiter knows is too old to refuse a call.
    advance(secs(2)).await;
    is_an_error(&limiter).await;
    assert_eq!(stage.wire.operations(), ["GetItem"]);

    stage.tamper("user-1", &[("rf", refilled_at)]).await;
    exceeded(take(&limiter, "user-1", "rpm", 2).await.unwrap_err());
}

#[test]
fn a_refund_that_waits_for_the_repair_outlives_its_runtime() {
    let first = paused_runtime();
    let (stage, limiter, refilled_at) = first.block_on(async {
        let (stage, limiter) = in_use(1).await;
        let dropped = lease(&limiter, "user-1", "rpm", 4).await.unwrap();
        let refilled_at = damage(&stage).await;
        stage.wire.calls();
        drop(dropped);
        // The refund was refused, and waits for its next attempt when the runtime ends.
        tokio::time::sleep(millis(1)).await;
        assert!(!stage.wire.calls().is_empty(), "it was sent");
        assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 5_000);
        (stage, limiter, refilled_at)
    });
    drop(first);
    paused_runtime().block_on(async {
        stage.tamper("user-1", &[("rf", refilled_at)]).await;
        let report = limiter.shutdown().await;
        assert_eq!(report.unwritten_total, 0, "{report:?}");
        assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 1_000);
    });
}
