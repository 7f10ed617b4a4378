//! The end of a limiter: nobody comes in any more, and everything that is under way is waited for.

use tokio::runtime::Runtime;
use tokio::time::Instant;
use zae_limiter::{Error, Lease, OnUnavailable};

use crate::acquire::support::*;

fn is_shut_down(error: &Error) -> bool {
    matches!(error, Error::ShutDown { .. }) && !error.is_unavailable()
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_refunds_adjustments_and_calls_that_nobody_waits_for() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:1000"]).await;
    let dropped = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
    let mut adjusted = lease(&limiter, "user-1", "tpm", 20).await.unwrap();
    let rolled_back = lease(&limiter, "user-1", "tpm", 3).await.unwrap();
    stage.wire.latency(millis(100));
    drop(dropped);
    adjusted.adjust("tpm", 30);
    let commit = tokio::spawn(adjusted.commit());
    let rollback = tokio::spawn(rolled_back.rollback());
    let cancelled = {
        let limiter = limiter.clone();
        tokio::spawn(async move { take(&limiter, "user-1", "tpm", 400).await })
    };
    tokio::time::sleep(millis(60)).await;
    cancelled.abort();
    let report = limiter.shutdown().await;
    assert_eq!(report.unwritten_total, 0);
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 50_000);
    commit.await.unwrap().unwrap();
    rollback.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_a_call_that_still_reads_its_configuration() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:1000"]).await;
    stage.wire.latency(millis(100));
    let call = {
        let limiter = limiter.clone();
        tokio::spawn(async move { take(&limiter, "user-1", "tpm", 400).await })
    };
    tokio::time::sleep(millis(10)).await;
    limiter.shutdown().await;
    assert_eq!(limiter.stats().granted, 1, "it has its outcome");
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_tokens_are_sent_away_by_a_shutdown() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:10"]).await;
    take(&limiter, "user-1", "rpm", 10).await.unwrap();
    // The first sleeps until its tokens should be there; the others wait for their turn.
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let call = limiter.acquire("user-1", GPT).consume("rpm", 5);
            let call = call.wait_up_to(secs(600)).on_unavailable(OnUnavailable::Allow);
            tokio::spawn(async move { call.await.map(drop) })
        })
        .collect();
    tokio::time::sleep(millis(10)).await;
    let before = Instant::now();
    limiter.shutdown().await;
    for caller in callers {
        assert!(is_shut_down(&caller.await.unwrap().unwrap_err()));
    }
    assert_eq!(before.elapsed(), millis(0), "nobody waits for tokens any more");
    tokio::time::sleep(secs(120)).await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_held_takes_no_more_after_a_shutdown_but_can_be_committed() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:1000"]).await;
    let mut held = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
    limiter.shutdown().await;
    assert!(is_shut_down(&held.consume("tpm", 100).await.unwrap_err()));
    assert!(is_shut_down(
        &take(&limiter, "user-1", "tpm", 1).await.unwrap_err()
    ));
    held.adjust("tpm", 50);
    held.commit().await.unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("tpm"), 150_000);
}

/// A limiter of another runtime, and two leases of it: one that is dropped there while responses take long, and one that is
/// still held.
fn left_behind(runtime: &Runtime) -> (Stage, zae_limiter::RateLimiter, Lease) {
    runtime.block_on(async {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:10"]).await;
        let held = lease(&limiter, "user-1", "rpm", 4).await.unwrap();
        let dropped = lease(&limiter, "user-2", "rpm", 4).await.unwrap();
        stage.wire.latency(millis(100));
        drop(dropped);
        // The write is on its way when the runtime ends.
        tokio::time::sleep(millis(10)).await;
        stage.wire.latency(millis(0));
        (stage, limiter, held)
    })
}

#[test]
fn what_a_runtime_left_undone_is_done_by_the_shutdown() {
    let first = paused_runtime();
    let (stage, limiter, held) = left_behind(&first);
    drop(first);
    // No runtime is there at all.
    drop(held);
    paused_runtime().block_on(async {
        let report = limiter.shutdown().await;
        assert_eq!(report.unwritten_total, 0);
        for user in ["user-1", "user-2"] {
            assert_eq!(stage.bucket(user).await.unwrap().consumed("rpm"), 0, "{user}");
        }
    });
}
