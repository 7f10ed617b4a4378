//! An outage gets quieter: one circuit breaker per limiter, one look for a write in doubt, and a prompt shutdown.

use std::num::NonZeroU32;

use tokio::time::Instant;
use zae_limiter::{
    Admission, BreakerState, Error, Lease, ManualClock, OnUnavailable, RateLimiter, Timestamp,
};

use crate::support::*;

/// More buckets than a breaker can overlook.
const BUCKETS: usize = 500;

/// One warm bucket each.
async fn warm(limiter: &RateLimiter, buckets: usize) {
    for number in 0..buckets {
        take(limiter, &format!("user-{number}"), "rpm", 1).await.unwrap();
    }
}

/// Every bucket has a call under way when the table goes away.
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
async fn five_hundred_buckets_in_doubt_send_few_requests_while_the_table_is_away() {
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
        let in_doubt = report.unwritten.iter().any(|one| one.in_doubt);
        assert_eq!(in_doubt, fault != Fault::ConnectionRefused, "{fault:?}");
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

/// A limiter whose table does not respond, which it knows.
async fn away(stage: &Stage, policy: OnUnavailable) -> RateLimiter {
    let builder = stage.builder().default_limits(limits(&["rpm:1000"]));
    let limiter = builder.on_unavailable(policy).await.unwrap();
    warm(&limiter, 3).await;
    stage.wire.always(Fault::Silence);
    drop(take(&limiter, "user-0", "rpm", 1).await);
    assert_eq!(limiter.stats().breaker, BreakerState::Open);
    stage.wire.calls();
    limiter
}

#[tokio::test(start_paused = true)]
async fn while_the_breaker_is_open_calls_are_decided_at_once_without_a_request() {
    for policy in [OnUnavailable::Allow, OnUnavailable::Block] {
        let stage = Stage::new();
        let limiter = away(&stage, policy).await;
        let before = Instant::now();
        for entity in ["user-0", "user-1", "never-seen"] {
            for patience in [None, Some(secs(60))] {
                let call = limiter.acquire(entity, GPT).consume("rpm", 1);
                let call = match patience {
                    Some(patience) => call.wait_up_to(patience),
                    None => call,
                };
                match (call.await, policy) {
                    (Ok(lease), OnUnavailable::Allow) => {
                        assert_eq!(lease.admission(), Admission::AllowedWhileUnavailable);
                    }
                    (Err(error), OnUnavailable::Block) => {
                        let text = error.to_string();
                        assert!(error.is_unavailable(), "{text}");
                        assert!(
                            text.contains("the circuit breaker is open since 2026-01-31T12:00:01Z"),
                            "{text}"
                        );
                    }
                    (result, _) => panic!("{result:?}"),
                }
            }
        }
        assert_eq!(before.elapsed(), millis(0));
        assert_eq!(stage.wire.operations(), Vec::<String>::new());
        assert_eq!(limiter.stats().breaker_opened, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_breaker_is_open_the_outage_share_decides_at_once() {
    let stage = Stage::new();
    let builder = stage.builder().default_limits(limits(&["rpm:10"]));
    let limiter = builder
        .on_unavailable(OnUnavailable::Allow)
        .share_while_unavailable(NonZeroU32::new(2).unwrap())
        .await
        .unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    stage.wire.always(Fault::Silence);
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let before = Instant::now();
    for _ in 0..4 {
        let lease = lease(&limiter, "user-1", "rpm", 1).await.unwrap();
        assert_eq!(lease.admission(), Admission::Local);
        lease.commit().await.unwrap();
    }
    exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    assert_eq!(before.elapsed(), millis(0));
}

#[tokio::test(start_paused = true)]
async fn the_first_response_closes_the_breaker() {
    let stage = Stage::new();
    let limiter = away(&stage, OnUnavailable::Block).await;
    stage.wire.heal();
    // The pause before the first probe is at most this long; the call that makes it is served.
    tokio::time::sleep(millis(100)).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let stats = limiter.stats();
    assert_eq!((stats.breaker, stats.breaker_opened), (BreakerState::Closed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_slow_probes_no_longer_than_for_one_attempt() {
    let stage = Stage::new();
    let limiter = away(&stage, OnUnavailable::Block).await;
    // Closed too early twice: from now on it takes four responses.
    for _ in 0..2 {
        stage.wire.heal();
        tokio::time::sleep(millis(100)).await;
        while limiter.stats().breaker == BreakerState::Open {
            drop(take(&limiter, "user-1", "rpm", 1).await);
            tokio::time::sleep(millis(10)).await;
        }
        stage.wire.always(Fault::Silence);
        while limiter.stats().breaker == BreakerState::Closed {
            take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
        }
    }
    assert_eq!(limiter.stats().breaker_opened, 3);
    // Until no bucket probes by itself any more.
    tokio::time::sleep(secs(60)).await;
    stage.wire.heal();
    stage.wire.latency(millis(400));
    let mut longest = millis(0);
    while limiter.stats().breaker == BreakerState::Open {
        let before = Instant::now();
        let refused = take(&limiter, "user-2", "rpm", 1).await.is_err();
        if refused {
            longest = longest.max(before.elapsed());
        }
        tokio::time::sleep(millis(10)).await;
    }
    assert!(longest > millis(400), "no call made the probes: {longest:?}");
    assert!(longest <= millis(501), "{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn even_a_throttled_response_closes_the_breaker() {
    let stage = Stage::new();
    let limiter = away(&stage, OnUnavailable::Block).await;
    stage.wire.always(Fault::Throttled);
    tokio::time::sleep(secs(6)).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
    assert_eq!(limiter.stats().breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn throttling_and_denials_never_open_the_breaker() {
    for fault in [Fault::Throttled, Fault::Conflict, Fault::Denied] {
        for cold in [false, true] {
            let stage = Stage::new();
            let limiter = stage.limiter(&["rpm:1000"]).await;
            if !cold {
                warm(&limiter, 20).await;
            }
            stage.wire.always(fault);
            for number in 0..20 {
                take(&limiter, &format!("user-{number}"), "rpm", 1)
                    .await
                    .unwrap_err();
            }
            assert_eq!(limiter.stats().breaker_opened, 0, "{fault:?}, cold {cold}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_bucket_that_fails_beside_others_that_respond_does_not_open_the_breaker() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1000"]).await;
    warm(&limiter, 2).await;
    stage.wire.always_on("user-0", Fault::Silence);
    let failing = {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            for _ in 0..3 {
                take(&limiter, "user-0", "rpm", 1).await.unwrap_err();
            }
        })
    };
    while !failing.is_finished() {
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        tokio::time::sleep(millis(100)).await;
    }
    failing.await.unwrap();
    assert_eq!(limiter.stats().breaker_opened, 0);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_has_seen_nothing_learns_that_the_table_is_away() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1000"]).await;
    stage.wire.always(Fault::Silence);
    for entity in ["user-1", "user-2", "user-3"] {
        take(&limiter, entity, "rpm", 1).await.unwrap_err();
        tokio::time::sleep(millis(600)).await;
    }
    assert_eq!(limiter.stats().breaker, BreakerState::Open);
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
async fn a_refused_connection_leaves_nothing_in_doubt() {
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
    let writes = stage.wire.operations();
    let writes = writes.iter().filter(|operation| *operation == "UpdateItem");
    assert_eq!(writes.count(), 1, "there is nothing to look for");
}

#[test]
fn a_caller_takes_up_the_work_of_a_runtime_that_ended() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let (first, second) = (runtime(), runtime());
    let (stage, limiter) = first.block_on(async {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:10"]).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        stage.wire.latency(millis(100));
        let limiter_of_call = limiter.clone();
        tokio::spawn(async move { take(&limiter_of_call, "user-1", "rpm", 2).await });
        // Its write is on the way when the runtime stops being polled.
        tokio::time::sleep(millis(10)).await;
        (stage, limiter)
    });
    second.block_on(async {
        stage.wire.latency(millis(0));
        let waiting = {
            let limiter = limiter.clone();
            tokio::spawn(async move { take(&limiter, "user-1", "rpm", 3).await })
        };
        tokio::time::sleep(millis(10)).await;
        assert!(!waiting.is_finished(), "the other runtime works on the bucket");
        first.shutdown_background();
        let before = Instant::now();
        waiting.await.unwrap().unwrap();
        assert!(before.elapsed() <= millis(500), "{:?}", before.elapsed());
        limiter.settled().await;
        let consumed = stage.bucket("user-1").await.unwrap().consumed("rpm");
        assert!([4_000, 6_000].contains(&consumed), "{consumed}");
    });
}

#[tokio::test(start_paused = true)]
async fn a_full_line_is_an_error_of_its_own() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let calls: Vec<_> = (0..10_001)
        .map(|_| {
            let call = limiter.acquire("user-1", GPT).consume("rpm", 1);
            let call = call.wait_up_to(secs(30 * 24 * 3600));
            tokio::spawn(async move { call.await.map(drop) })
        })
        .collect();
    tokio::time::sleep(millis(10)).await;
    limiter.shutdown().await;
    let mut full = 0;
    for call in calls {
        full += u32::from(matches!(call.await.unwrap(), Err(Error::Overloaded { .. })));
    }
    assert_eq!(full, 1);
}

#[test]
fn while_the_breaker_is_open_a_decision_starts_no_timer_and_sends_nothing() {
    let with_timers = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let (stage, limiter, known) = with_timers.block_on(async {
        let stage = Stage::new();
        let clock = std::sync::Arc::new(ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap()));
        let builder = stage
            .builder()
            .clock(clock.clone())
            .default_limits(limits(&["rpm:10"]));
        let limiter = builder
            .share_while_unavailable(NonZeroU32::new(2).unwrap())
            .await
            .unwrap();
        let known = take(&limiter, "user-1", "rpm", 1).await;
        stage.wire.always(Fault::Silence);
        for _ in 0..2 {
            take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
            clock.advance(secs(1));
        }
        assert_eq!(limiter.stats().breaker, BreakerState::Open);
        stage.wire.calls();
        (stage, limiter, known)
    });
    known.unwrap();
    // A runtime without timers: whoever starts one panics.
    let without_timers = tokio::runtime::Builder::new_current_thread().build().unwrap();
    without_timers.block_on(async {
        for entity in ["user-1", "never-seen"] {
            for policy in [OnUnavailable::Block, OnUnavailable::Allow] {
                for patience in [None, Some(secs(60))] {
                    let call = limiter
                        .acquire(entity, GPT)
                        .consume("rpm", 1)
                        .on_unavailable(policy);
                    let call = match patience {
                        Some(patience) => call.wait_up_to(patience),
                        None => call,
                    };
                    match call.await {
                        Ok(lease) => assert_eq!(lease.admission(), Admission::Local),
                        Err(error) => assert!(error.is_unavailable(), "{error}"),
                    }
                }
            }
        }
    });
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
}
