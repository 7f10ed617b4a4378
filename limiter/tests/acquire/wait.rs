//! Waiting for tokens instead of being refused.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;
use zae_limiter::{Error, Lease, NewEntity, OnUnavailable, RateLimiter, RetryAfter};

use crate::support::*;

async fn patient(limiter: &RateLimiter, tokens: u64, patience: std::time::Duration) -> Result<Lease, Error> {
    let call = limiter.acquire("user-1", GPT).consume("rps", tokens);
    call.wait_up_to(patience).await
}

async fn empty(stage: &Stage) -> RateLimiter {
    let limiter = stage.limiter(&["rps:10/sec"]).await;
    take(&limiter, "user-1", "rps", 10).await.unwrap();
    limiter
}

#[tokio::test(start_paused = true)]
async fn it_goes_ahead_at_once_when_the_tokens_are_there() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rps:10/sec"]).await;
    let before = Instant::now();
    patient(&limiter, 10, secs(60))
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    assert_eq!(before.elapsed(), millis(0));
}

#[tokio::test(start_paused = true)]
async fn it_waits_until_they_are_there_and_not_longer() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let before = Instant::now();
    patient(&limiter, 5, secs(60))
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    let waited = before.elapsed();
    assert!(waited >= millis(500) && waited <= millis(505), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn it_is_refused_at_once_if_they_will_not_be_there_in_time() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let before = Instant::now();
    let refused = exceeded(patient(&limiter, 5, millis(400)).await.unwrap_err());
    assert_eq!(refused.retry_after(), RetryAfter::After(millis(500)));
    let never = exceeded(patient(&limiter, 11, secs(3600)).await.unwrap_err());
    assert_eq!(never.retry_after(), RetryAfter::Never);
    assert_eq!(before.elapsed(), millis(0));
}

#[tokio::test(start_paused = true)]
async fn any_patience_is_fine() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    patient(&limiter, 1, std::time::Duration::MAX)
        .await
        .unwrap()
        .commit()
        .await
        .unwrap();
    exceeded(
        patient(&limiter, 10, std::time::Duration::ZERO)
            .await
            .unwrap_err(),
    );
}

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
            patient(&limiter, tokens, secs(60))
                .await
                .unwrap()
                .commit()
                .await
                .unwrap();
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
        tokio::spawn(async move { patient(&limiter, 1, secs(60)).await.map(Lease::commit)?.await })
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
    let callers: Vec<_> = (0..30)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { patient(&limiter, 1, secs(60)).await.map(Lease::commit)?.await })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    let waited = before.elapsed();
    assert!(waited >= secs(3) && waited <= millis(3100), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_line_whose_time_is_over_is_refused() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let callers: Vec<_> = (0..30)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { patient(&limiter, 1, secs(1)).await.map(Lease::commit)?.await })
        })
        .collect();
    let mut admitted = 0;
    for caller in callers {
        match caller.await.unwrap() {
            Ok(()) => admitted += 1,
            Err(error) => drop(exceeded(error)),
        }
    }
    assert!((9..=10).contains(&admitted), "{admitted}");
}

/// Waits in a task of its own, which has begun to wait when this returns.
async fn waiting(
    limiter: &RateLimiter,
    entity: &'static str,
    tokens: u64,
    patience: std::time::Duration,
) -> tokio::task::JoinHandle<Result<Instant, Error>> {
    let call = limiter
        .acquire(entity, GPT)
        .consume("rps", tokens)
        .wait_up_to(patience);
    let call = tokio::spawn(async move {
        call.await?.commit().await?;
        Ok(Instant::now())
    });
    tokio::time::sleep(millis(1)).await;
    call
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
        let status = refused.primary_violation().unwrap();
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

/// An empty team with two members who have plenty themselves.
async fn team(stage: &Stage) -> RateLimiter {
    let limiter = stage.limiter(&["rps:100/sec"]).await;
    limiter
        .repository()
        .create_entity(NewEntity::new("team"))
        .await
        .unwrap();
    limiter
        .repository()
        .set_limits("team", GPT, limits(&["rps:10/sec"]))
        .await
        .unwrap();
    for user in ["user-1", "user-2", "user-3"] {
        let user = NewEntity::new(user).parent("team").cascade(true);
        limiter.repository().create_entity(user).await.unwrap();
    }
    take(&limiter, "team", "rps", 10).await.unwrap();
    limiter
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
    limiter
        .repository()
        .set_limits("user-1", GPT, limits(&["rps:6/min"]))
        .await
        .unwrap();
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
async fn those_who_wait_in_an_outage_are_all_answered_within_the_budget() {
    for policy in [OnUnavailable::Block, OnUnavailable::Allow] {
        let stage = Stage::new();
        let limiter = team(&stage).await;
        let callers: Vec<_> = ["user-1", "user-2", "user-1", "user-3", "user-1", "user-2"]
            .into_iter()
            .map(|user| {
                let call = limiter.acquire(user, GPT).consume("rps", 5);
                let call = call.wait_up_to(secs(60)).on_unavailable(policy);
                tokio::spawn(async move { call.await })
            })
            .collect();
        tokio::time::sleep(millis(400)).await;
        stage.wire.always(Fault::Silence);
        let before = Instant::now();
        for caller in callers {
            match (caller.await.unwrap(), policy) {
                (Ok(lease), OnUnavailable::Allow) => {
                    assert_ne!(lease.admission(), zae_limiter::Admission::Counted);
                }
                (Err(error), OnUnavailable::Block) => assert!(error.is_unavailable(), "{error}"),
                (result, _) => panic!("{result:?}"),
            }
        }
        // A hundred milliseconds until the first one asks, and its budget.
        assert!(before.elapsed() <= millis(1_110), "{:?}", before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn finding_the_levels_of_one_who_would_wait_counts_against_the_budget() {
    let stage = Stage::new();
    let limiter = team(&stage).await;
    let org = NewEntity::new("org");
    limiter.repository().create_entity(org).await.unwrap();
    let change = zae_limiter::EntityChange::new().parent("org").cascade(true);
    limiter.repository().update_entity("team", change).await.unwrap();
    // Three levels, nothing known of any: each takes almost half of the budget.
    let cold = stage.limiter(&["rps:100/sec"]).await;
    stage.wire.latency(millis(450));
    let before = Instant::now();
    let error = cold
        .acquire("user-3", GPT)
        .consume("rps", 1)
        .wait_up_to(secs(60))
        .await
        .unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert_eq!(before.elapsed(), secs(1));
}

/// How many bucket writes were sent since the last look.
fn writes(stage: &Stage) -> usize {
    let operations = stage.wire.operations();
    operations
        .iter()
        .filter(|operation| *operation == "UpdateItem")
        .count()
}

#[tokio::test(start_paused = true)]
async fn five_hundred_patient_calls_on_a_full_bucket_share_few_writes() {
    for latency in [0, 5] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rps:1000/sec"]).await;
        take(&limiter, "user-1", "rps", 1).await.unwrap();
        stage.wire.latency(millis(latency));
        writes(&stage);
        let before = Instant::now();
        let callers: Vec<_> = (0..500)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move { patient(&limiter, 1, secs(60)).await.map(Lease::commit)?.await })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap().unwrap();
        }
        let sent = writes(&stage);
        assert!(sent <= 5, "{sent} writes");
        assert!(before.elapsed() <= millis(6 * latency), "{:?}", before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_combined_into_one_write_when_their_tokens_are_due() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rps:100000/sec"]).await;
    take(&limiter, "user-1", "rps", 100_000).await.unwrap();
    stage.wire.latency(millis(5));
    writes(&stage);
    // Half a millisecond each: while one write is under way, the tokens of ten more come back.
    let callers: Vec<_> = (0..500)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { patient(&limiter, 50, secs(60)).await.map(Lease::commit)?.await })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    let sent = writes(&stage);
    assert!(sent <= 60, "{sent} writes");
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rps"), 125_000_000);
}

#[tokio::test(start_paused = true)]
async fn one_whose_bucket_is_throttled_does_not_send_the_others_away() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let first = waiting(&limiter, "user-1", 1, secs(60)).await;
    let second = waiting(&limiter, "user-1", 1, secs(60)).await;
    stage.wire.always_for("UpdateItem", Fault::Throttled);
    let error = first.await.unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    stage.wire.heal();
    second.await.unwrap().unwrap();
}
