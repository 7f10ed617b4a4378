//! One circuit breaker per limiter: when it opens, what closes it, and what is decided while it is open.

use std::num::NonZeroU32;

use tokio::time::Instant;
use zae_limiter::{Admission, BreakerState, ManualClock, OnUnavailable, RateLimiter, Timestamp};

use crate::acquire::support::*;

/// A limiter whose table does not respond, which it knows.
async fn while_unavailable(stage: &Stage, policy: OnUnavailable) -> RateLimiter {
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
        let limiter = while_unavailable(&stage, policy).await;
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
        .outage_fraction(NonZeroU32::new(2).unwrap())
        .await
        .unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    stage.wire.always(Fault::Silence);
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let before = Instant::now();
    // Five, less what the table has admitted before.
    for _ in 0..3 {
        let lease = lease(&limiter, "user-1", "rpm", 1).await.unwrap();
        assert_eq!(lease.admission(), Admission::Local);
        lease.commit().await.unwrap();
    }
    exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    assert_eq!(before.elapsed(), millis(0));
}

#[test]
fn while_the_breaker_is_open_a_decision_starts_no_timer_and_sends_nothing() {
    let with_timers = paused_runtime();
    let (stage, limiter, known) = with_timers.block_on(async {
        let stage = Stage::new();
        let clock = std::sync::Arc::new(ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap()));
        let builder = stage
            .builder()
            .clock(clock.clone())
            .default_limits(limits(&["rpm:10"]));
        let limiter = builder
            .outage_fraction(NonZeroU32::new(2).unwrap())
            .await
            .unwrap();
        let known = take(&limiter, "user-1", "rpm", 1).await;
        stage.wire.always(Fault::Silence);
        for _ in 0..2 {
            clock.advance(secs(1));
            take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
        }
        assert_eq!(limiter.stats().breaker, BreakerState::Open);
        stage.wire.calls();
        (stage, limiter, known)
    });
    known.unwrap();
    // A runtime without timers: starting one panics.
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

#[tokio::test(start_paused = true)]
async fn the_first_response_closes_the_breaker() {
    let stage = Stage::new();
    let limiter = while_unavailable(&stage, OnUnavailable::Block).await;
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
    let limiter = while_unavailable(&stage, OnUnavailable::Block).await;
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

/// Writes get no response, reads do.
#[tokio::test(start_paused = true)]
async fn while_only_writes_fail_the_breaker_stays_open_and_calls_are_decided_at_once() {
    for fault in [Fault::Silence, Fault::ServerError] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:1000"]).await;
        warm(&limiter, 20).await;
        stage.wire.always_for("UpdateItem", fault);
        let start = Instant::now();
        let callers: Vec<_> = (0..20)
            .map(|number| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    let mut slow = 0;
                    while start.elapsed() < secs(60) {
                        let before = Instant::now();
                        take(&limiter, &format!("user-{number}"), "rpm", 1)
                            .await
                            .unwrap_err();
                        slow += usize::from(before.elapsed() > millis(50));
                        tokio::time::sleep(millis(100)).await;
                    }
                    slow
                })
            })
            .collect();
        let mut slow = 0;
        for caller in callers {
            slow += caller.await.unwrap();
        }
        assert_eq!(limiter.stats().breaker_opened, 1, "{fault:?}");
        // One for each caller before it opened, and one for each probe.
        assert!(slow <= 60, "{fault:?}: {slow} slow calls");
        stage.wire.heal();
        tokio::time::sleep(secs(6)).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        assert_eq!(limiter.stats().breaker, BreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn even_a_throttled_response_closes_the_breaker() {
    let stage = Stage::new();
    let limiter = while_unavailable(&stage, OnUnavailable::Block).await;
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
