//! What an outage costs: few requests, no adjustment, and a prompt shutdown.

use tokio::time::Instant;
use zae_limiter::{BreakerState, Error, Lease, RateLimiter};

use crate::acquire::support::*;
use crate::acquire::unavailable::OUTAGES;

/// More buckets than a breaker can overlook.
const BUCKETS: usize = 500;

/// Every bucket has a call under way when the table becomes unavailable.
async fn lose_the_table(stage: &Stage, limiter: &RateLimiter, fault: Fault) {
    stage.wire.always(fault);
    let calls: Vec<_> = (0..BUCKETS)
        .map(|number| {
            let limiter = limiter.clone();
            tokio::spawn(async move { take(&limiter, &format!("user-{number}"), "rpm", 1).await })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap().unwrap_err().is_unavailable());
    }
}

#[tokio::test(start_paused = true)]
async fn five_hundred_unconfirmed_buckets_send_few_requests_during_an_outage() {
    for fault in [
        Fault::Silence,
        Fault::LostRequest,
        Fault::ServerError,
        Fault::ConnectionRefused,
    ] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:1000"]).await;
        warm(&limiter, BUCKETS).await;
        lose_the_table(&stage, &limiter, fault).await;
        stage.wire.calls();
        let (mut total, mut most) = (0, 0);
        for _ in 0..90 {
            tokio::time::sleep(secs(1)).await;
            let sent = stage.wire.calls().len();
            total += sent;
            most = most.max(sent);
        }
        assert!(most <= 10, "{fault:?}: {most} in one second");
        assert!(total <= 30, "{fault:?}: {total} in 90 seconds");
        assert_eq!(stage.wire.calls().len(), 0, "{fault:?}");
        let before = Instant::now();
        limiter.shutdown().await;
        assert!(before.elapsed() <= secs(1), "{fault:?}: {:?}", before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_in_an_outage_ends_within_the_time_budget_if_nothing_is_to_be_written() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1000"]).await;
    warm(&limiter, BUCKETS).await;
    lose_the_table(&stage, &limiter, Fault::Silence).await;
    stage.wire.calls();
    let before = Instant::now();
    let report = limiter.shutdown().await;
    assert!(before.elapsed() <= secs(1), "{:?}", before.elapsed());
    assert_eq!(report.unwritten_total, 0);
    assert!(stage.wire.calls().len() <= 10);
}

#[tokio::test(start_paused = true)]
async fn shutdown_in_an_outage_gives_up_changes_after_the_settle_budget() {
    for fault in [Fault::Silence, Fault::LostRequest, Fault::ConnectionRefused] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:1000"]).await;
        let leases = leases(&limiter, 40).await;
        stage.wire.always(fault);
        drop(leases);
        let before = Instant::now();
        let report = limiter.shutdown().await;
        assert!(before.elapsed() <= secs(31), "{fault:?}: {:?}", before.elapsed());
        assert_eq!(report.unwritten_total, 40, "{fault:?}");
        let unconfirmed = report.unwritten.iter().any(|one| one.maybe_written);
        assert_eq!(unconfirmed, fault != Fault::ConnectionRefused, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_returns_as_soon_as_the_table_responds() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1000"]).await;
    let leases = leases(&limiter, 40).await;
    stage.wire.always(Fault::Silence);
    drop(leases);
    tokio::time::sleep(secs(15)).await;
    assert_eq!(limiter.stats().breaker, BreakerState::Open);
    stage.wire.heal();
    let before = Instant::now();
    let report = limiter.shutdown().await;
    assert!(before.elapsed() <= secs(2), "{:?}", before.elapsed());
    assert_eq!(report.unwritten_total, 0);
    for number in 0..40 {
        let bucket = stage.bucket(&format!("user-{number}")).await.unwrap();
        assert_eq!(bucket.consumed("rpm"), 0);
    }
}

/// One held lease each.
async fn leases(limiter: &RateLimiter, buckets: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    for number in 0..buckets {
        leases.push(lease(limiter, &format!("user-{number}"), "rpm", 1).await.unwrap());
    }
    leases
}

#[tokio::test(start_paused = true)]
async fn adjustments_wait_for_the_end_of_the_outage_and_their_callers_do_not() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1000"]).await;
    let mut held = lease(&limiter, "user-1", "rpm", 10).await.unwrap();
    stage.wire.always(Fault::Silence);
    take(&limiter, "user-2", "rpm", 1).await.unwrap_err();
    tokio::time::sleep(millis(2_000)).await;
    drop(take(&limiter, "user-1", "rpm", 1).await);
    assert_eq!(limiter.stats().breaker, BreakerState::Open);
    held.adjust("rpm", 5);
    let before = Instant::now();
    let error = held.commit().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert_eq!(before.elapsed(), millis(0));
    tokio::time::sleep(secs(20)).await;
    stage.wire.heal();
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpm"), 15_000);
    assert_eq!(limiter.stats().unwritten, 0);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_expire_for_a_while_cost_no_adjustment() {
    for fault in [Fault::Denied, Fault::NoTable, Fault::Invalid] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:1000"]).await;
        let mut adjusted = lease(&limiter, "user-1", "rpm", 10).await.unwrap();
        let dropped = lease(&limiter, "user-1", "rpm", 100).await.unwrap();
        stage.wire.always(fault);
        adjusted.adjust("rpm", 5);
        let error = adjusted.commit().await.unwrap_err();
        assert!(!error.is_unavailable(), "{fault:?}: {error}");
        drop(dropped);
        let error = take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
        assert!(!error.is_unavailable(), "{fault:?}: {error}");
        tokio::time::sleep(secs(20)).await;
        stage.wire.heal();
        limiter.settled().await;
        let bucket = stage.bucket("user-1").await.unwrap();
        assert_eq!(bucket.consumed("rpm"), 15_000, "{fault:?}");
        assert_eq!(limiter.stats().unwritten, 0, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_leaves_nothing_unconfirmed() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1000"]).await;
    warm(&limiter, 1).await;
    stage.wire.always(Fault::ConnectionRefused);
    let error = take(&limiter, "user-0", "rpm", 1).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    limiter.settled().await;
    stage.wire.heal();
    tokio::time::sleep(secs(10)).await;
    stage.wire.calls();
    take(&limiter, "user-0", "rpm", 1).await.unwrap();
    let calls = stage.wire.calls();
    let writes = calls
        .iter()
        .filter(|call| call.operation == "UpdateItem" && call.partition == "ENTITY#user-0");
    assert_eq!(writes.count(), 1, "there is nothing to look for");
}

#[tokio::test(start_paused = true)]
async fn a_debit_whose_caller_was_sent_away_is_given_back() {
    for outage in [Fault::LostResponse, Fault::SilentResponse] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:10"]).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        stage.wire.always(outage);
        let error = take(&limiter, "user-1", "rpm", 3).await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        assert_eq!(
            stage.bucket("user-1").await.unwrap().consumed("rpm"),
            4_000,
            "it was carried out"
        );
        stage.wire.heal();
        limiter.settled().await;
        assert_eq!(
            stage.bucket("user-1").await.unwrap().consumed("rpm"),
            1_000,
            "{outage:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn adjustments_are_written_when_the_table_is_back() {
    for outage in OUTAGES {
        let stage = Stage::new();
        let limiter = stage.limiter(&["tpm:1000"]).await;
        let mut lease = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
        stage.wire.always(outage);
        lease.adjust("tpm", 50);
        let error = lease.commit().await.unwrap_err();
        assert!(error.is_unavailable(), "{outage:?}: {error}");
        advance(secs(5)).await;
        stage.wire.heal();
        let report = limiter.shutdown().await;
        assert_eq!(report.unwritten_total, 0, "{outage:?}");
        assert_eq!(
            stage.bucket("user-1").await.unwrap().consumed("tpm"),
            150_000,
            "{outage:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn adjustments_that_cannot_be_written_are_reported_and_shutdown_ends() {
    for outage in OUTAGES {
        let stage = Stage::new();
        let limiter = stage.limiter(&["tpm:1000"]).await;
        let mut held = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
        let dropped = lease(&limiter, "user-1", "tpm", 200).await.unwrap();
        stage.wire.always(outage);
        held.adjust("tpm", 50);
        held.commit().await.unwrap_err();
        drop(dropped);
        let before = Instant::now();
        let report = limiter.shutdown().await;
        assert!(before.elapsed() < secs(120), "{outage:?}: {:?}", before.elapsed());
        assert_eq!(report.unwritten_total, 2, "{outage:?}");
        let mut changes: Vec<_> = report.unwritten.iter().map(|one| one.changes[0].1).collect();
        changes.sort_unstable();
        assert_eq!(changes, [-200_000, 50_000], "{outage:?}");
        assert_eq!(limiter.stats().unwritten, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn adjustments_that_are_denied_are_reported() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:1000"]).await;
    let mut lease = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
    stage.wire.always(Fault::Denied);
    lease.adjust("tpm", 50);
    assert!(matches!(
        lease.commit().await.unwrap_err(),
        Error::PermissionDenied { .. }
    ));
    assert_eq!(limiter.shutdown().await.unwritten_total, 1);
}

#[tokio::test(start_paused = true)]
async fn a_debit_without_an_answer_is_found_after_a_denial_too() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:10/day"]).await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    stage
        .wire
        .plan("UpdateItem", [Fault::LostResponse, Fault::Denied]);
    take(&limiter, "user-1", "rpd", 3).await.unwrap_err();
    limiter.settled().await;
    take(&limiter, "user-1", "rpd", 1).await.unwrap();
    limiter.settled().await;
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rpd"), 2_000);
}
