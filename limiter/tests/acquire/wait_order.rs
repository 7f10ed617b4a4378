//! Calls that wait for the same tokens form a FIFO queue.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;
use zae_limiter::{Error, RetryAfter};

use crate::acquire::support::*;
use crate::acquire::wait::{empty, many_patient, patient, take_patiently, team, waiting};

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
            take_patiently(&limiter, tokens, secs(60)).await.unwrap();
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
        tokio::spawn(async move { take_patiently(&limiter, 1, secs(60)).await })
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
    for caller in many_patient(&limiter, 30, 1, secs(60)) {
        caller.await.unwrap().unwrap();
    }
    let waited = before.elapsed();
    assert!(waited >= secs(3) && waited <= millis(3100), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_those_ahead_leave_no_tokens_for_is_refused_at_once() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    // They need the refill of three seconds.
    let callers = many_patient(&limiter, 30, 1, secs(60));
    advance(millis(50)).await;
    let before = Instant::now();
    let refused = exceeded(patient(&limiter, 1, secs(1)).await.unwrap_err());
    assert_eq!(before.elapsed(), millis(0));
    assert!(refused.retry_after() > RetryAfter::After(secs(2)), "{refused:?}");
    // One that can be served in time waits.
    take_patiently(&limiter, 1, secs(60)).await.unwrap();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn of_more_calls_than_can_be_served_in_time_the_others_are_refused_at_once() {
    let stage = Stage::new();
    stage.wire.latency(millis(5));
    let limiter = empty(&stage).await;
    let start = Instant::now();
    // Ten come back each second.
    let calls: Vec<_> = many_patient(&limiter, 2_000, 1, secs(5))
        .into_iter()
        .map(|call| tokio::spawn(async move { (call.await.unwrap(), start.elapsed()) }))
        .collect();
    let (mut admitted, mut at_once) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            (Ok(()), _) => admitted += 1,
            (Err(error), after) => {
                drop(exceeded(error));
                at_once += usize::from(after <= millis(100));
            }
        }
    }
    assert!((48..=50).contains(&admitted), "{admitted}");
    assert!(
        admitted + at_once >= 1_995,
        "{admitted} admitted, {at_once} refused at once"
    );
}

#[tokio::test(start_paused = true)]
async fn a_line_whose_time_is_over_is_refused() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let mut admitted = 0;
    for caller in many_patient(&limiter, 30, 1, secs(1)) {
        match caller.await.unwrap() {
            Ok(()) => admitted += 1,
            Err(error) => drop(exceeded(error)),
        }
    }
    assert!((9..=10).contains(&admitted), "{admitted}");
}

#[tokio::test(start_paused = true)]
async fn impatient_callers_do_not_pass_by_one_who_came_before_them() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let first = waiting(&limiter, "user-1", 10, millis(1_100)).await;
    let mut later = Vec::new();
    for _ in 0..10 {
        later.push(waiting(&limiter, "user-1", 1, millis(500)).await);
    }
    for call in later {
        let refused = exceeded(call.await.unwrap().unwrap_err());
        let status = refused.primary_limit().unwrap();
        // Five tokens are there by then, and spoken for.
        assert_eq!((status.available, status.requested), (0, 1));
        let RetryAfter::After(wait) = status.retry_after else {
            panic!("{:?}", status.retry_after)
        };
        assert!(wait >= millis(550), "after the first, not before: {wait:?}");
    }
    first.await.unwrap().unwrap();
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rps"), 20_000);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_the_same_parent_are_served_in_order_of_arrival() {
    let stage = Stage::new();
    let limiter = team(&stage).await;
    let mut calls = Vec::new();
    // The first asks for most; members who come later want less, and must not pass it by.
    for (user, tokens) in [
        ("user-1", 8),
        ("user-2", 1),
        ("user-3", 1),
        ("user-2", 3),
        ("user-1", 1),
    ] {
        calls.push(waiting(&limiter, user, tokens, secs(60)).await);
    }
    let mut served = Vec::new();
    for call in calls {
        served.push(call.await.unwrap().unwrap());
    }
    assert!(served.is_sorted(), "{served:?}");
    assert_eq!(stage.bucket("team").await.unwrap().consumed("rps"), 24_000);
}

#[tokio::test(start_paused = true)]
async fn one_who_waits_for_its_own_bucket_does_not_hold_up_its_parent_s_others() {
    let stage = Stage::new();
    let limiter = team(&stage).await;
    set_limits(&limiter, "user-1", &["rps:6/min"]).await;
    take(&limiter, "user-1", "rps", 6).await.unwrap_err();
    advance(secs(1)).await;
    take(&limiter, "user-1", "rps", 6).await.unwrap();
    // Ten seconds for its own token; the team's are there after a hundred milliseconds.
    let slow = waiting(&limiter, "user-1", 1, secs(60)).await;
    take(&limiter, "team", "rps", 4).await.unwrap();
    let before = Instant::now();
    let quick = waiting(&limiter, "user-2", 1, secs(60)).await;
    assert!(quick.await.unwrap().unwrap() - before < millis(200));
    assert!(slow.await.unwrap().unwrap() - before > secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_full_line_is_an_error_of_its_own() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:1"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let call = || {
        let call = limiter.acquire("user-1", GPT).consume("rpm", 1);
        let call = call.wait_up_to(secs(30 * 24 * 3600));
        async move { call.await.map(drop) }
    };
    let calls: Vec<_> = (0..10_000).map(|_| tokio::spawn(call())).collect();
    tokio::time::sleep(millis(10)).await;
    let late = call().await;
    assert!(
        matches!(
            &late,
            Err(Error::Overloaded {
                what: "calls waiting for tokens of this bucket",
                limit: 10_000,
                ..
            })
        ),
        "{late:?}"
    );
    limiter.shutdown().await;
    for call in calls {
        let ended = call.await.unwrap();
        assert!(matches!(ended, Err(Error::ShutDown { .. })), "{ended:?}");
    }
}
