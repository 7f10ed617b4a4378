//! Waiting for tokens instead of being refused.

use tokio::time::Instant;
use zae_limiter::{Error, Lease, NewEntity, OnUnavailable, RateLimiter, RetryAfter};

use crate::acquire::support::*;

pub(crate) async fn patient(
    limiter: &RateLimiter,
    tokens: u64,
    patience: std::time::Duration,
) -> Result<Lease, Error> {
    let call = limiter.acquire("user-1", GPT).consume("rps", tokens);
    call.wait_up_to(patience).await
}

/// The same, committed.
pub(crate) async fn take_patiently(
    limiter: &RateLimiter,
    tokens: u64,
    patience: std::time::Duration,
) -> Result<(), Error> {
    patient(limiter, tokens, patience).await?.commit().await
}

/// Many of them at the same time, each in a task of its own.
pub(crate) fn many_patient(
    limiter: &RateLimiter,
    calls: usize,
    tokens: u64,
    patience: std::time::Duration,
) -> Vec<tokio::task::JoinHandle<Result<(), Error>>> {
    let call = || {
        let limiter = limiter.clone();
        tokio::spawn(async move { take_patiently(&limiter, tokens, patience).await })
    };
    std::iter::repeat_with(call).take(calls).collect()
}

pub(crate) async fn empty(stage: &Stage) -> RateLimiter {
    let limiter = stage.limiter(&["rps:10/sec"]).await;
    take(&limiter, "user-1", "rps", 10).await.unwrap();
    limiter
}

/// Waits in a task of its own, which has begun to wait when this returns.
pub(crate) async fn waiting(
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

/// An empty team with two members who have plenty themselves.
pub(crate) async fn team(stage: &Stage) -> RateLimiter {
    let limiter = stage.limiter(&["rps:100/sec"]).await;
    create(&limiter, NewEntity::new("team")).await;
    set_limits(&limiter, "team", &["rps:10/sec"]).await;
    for user in ["user-1", "user-2", "user-3"] {
        create(&limiter, child(user, "team")).await;
    }
    take(&limiter, "team", "rps", 10).await.unwrap();
    limiter
}

#[tokio::test(start_paused = true)]
async fn it_goes_ahead_at_once_when_the_tokens_are_there() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rps:10/sec"]).await;
    let before = Instant::now();
    take_patiently(&limiter, 10, secs(60)).await.unwrap();
    assert_eq!(before.elapsed(), millis(0));
}

#[tokio::test(start_paused = true)]
async fn it_waits_until_they_are_there_and_not_longer() {
    let stage = Stage::new();
    let limiter = empty(&stage).await;
    let before = Instant::now();
    take_patiently(&limiter, 5, secs(60)).await.unwrap();
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
    take_patiently(&limiter, 1, std::time::Duration::MAX)
        .await
        .unwrap();
    exceeded(
        patient(&limiter, 10, std::time::Duration::ZERO)
            .await
            .unwrap_err(),
    );
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
        for caller in many_patient(&limiter, 500, 1, secs(60)) {
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
    for caller in many_patient(&limiter, 500, 50, secs(60)) {
        caller.await.unwrap().unwrap();
    }
    let sent = writes(&stage);
    assert!(sent <= 60, "{sent} writes");
    assert_eq!(stage.bucket("user-1").await.unwrap().consumed("rps"), 125_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_bucket_is_throttled_does_not_make_the_others_give_up() {
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
