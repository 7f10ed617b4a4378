//! Tokens that are taken in chunks: spent without a call, and accounted for to the last one.

use tokio::runtime::Runtime;
use zae_limiter::{Admission, BreakerState, NewEntity, RateLimiter};

use crate::acquire::support::*;

/// A limiter that takes chunks everywhere, on a bucket that gives nothing back while a test runs.
async fn limiter(stage: &Stage) -> RateLimiter {
    let builder = stage.builder().token_chunks();
    builder
        .default_limits([hoard("rpm", 100_000), hoard("tpm", 10_000_000)])
        .await
        .unwrap()
}

/// A hundred calls a second until there is a chunk; how many calls that were.
async fn busy(limiter: &RateLimiter, entity: &str) -> u64 {
    for call in 1..=150 {
        let lease = limiter.acquire(entity, GPT).consume("rpm", 1).consume("tpm", 50);
        lease.await.unwrap().commit().await.unwrap();
        tokio::time::sleep(millis(10)).await;
        // Not just after the last debit, so that the next calls need none.
        if limiter.stats().chunk_grants > 0 && limiter.stats().chunk_tokens > 15 * 51 {
            return call;
        }
    }
    panic!("no chunk: {:?}", limiter.stats());
}

async fn settle(stage: &Stage, limiter: &RateLimiter, entity: &str) -> (i64, i64, i64) {
    let report = limiter.shutdown().await;
    assert_eq!(report.unwritten_total, 0, "{report:?}");
    assert_eq!(limiter.stats().chunk_tokens, 0);
    let bucket = stage.bucket(entity).await.unwrap();
    (
        bucket.consumed("rpm"),
        bucket.consumed("tpm"),
        bucket.number("ev").unwrap(),
    )
}

#[tokio::test(start_paused = true)]
async fn calls_on_a_busy_bucket_cost_no_request() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    let calls = busy(&limiter, "user-1").await;
    stage.wire.calls();
    for _ in 0..3 {
        let lease = lease(&limiter, "user-1", "rpm", 1).await.unwrap();
        assert_eq!(lease.admission(), Admission::Counted);
        lease.commit().await.unwrap();
    }
    assert_eq!(stage.wire.calls().len(), 0);
    assert!(limiter.stats().chunk_tokens_peak >= limiter.stats().chunk_tokens);
    let calls = i64::try_from(calls).unwrap();
    let (rpm, tpm, events) = settle(&stage, &limiter, "user-1").await;
    assert_eq!(
        (rpm, tpm, events),
        ((calls + 3) * 1000, calls * 50_000, calls + 3)
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_setting_and_on_other_resources_every_call_asks_the_table() {
    let stage = Stage::new();
    for builder in [stage.builder(), stage.builder().token_chunks_on("another")] {
        let limiter = builder.default_limits([hoard("rpm", 100_000)]).await.unwrap();
        for _ in 0..100 {
            take(&limiter, "user-1", "rpm", 1).await.unwrap();
            tokio::time::sleep(millis(10)).await;
        }
        let stats = limiter.stats();
        assert_eq!((stats.chunk_grants, stats.chunk_tokens_peak), (0, 0));
    }
    let invalid = stage.builder().token_chunks_on("no/resource#name").await;
    assert!(invalid.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_resource_can_be_named() {
    let stage = Stage::new();
    let builder = stage.builder().token_chunks_on(GPT);
    let limits = [hoard("rpm", 100_000), hoard("tpm", 10_000_000)];
    let limiter = builder.default_limits(limits).await.unwrap();
    busy(&limiter, "user-1").await;
}

#[tokio::test(start_paused = true)]
async fn adjustments_releases_and_rollbacks_are_booked_exactly() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    let calls = i64::try_from(busy(&limiter, "user-1").await).unwrap();
    let call = || {
        limiter
            .acquire("user-1", GPT)
            .consume("rpm", 1)
            .consume("tpm", 50)
    };
    let mut more = call().await.unwrap();
    more.adjust("tpm", 7);
    more.commit().await.unwrap();
    let mut much_more = call().await.unwrap();
    much_more.adjust("tpm", 5_000);
    much_more.commit().await.unwrap();
    let mut less = call().await.unwrap();
    less.release("tpm", 20);
    less.commit().await.unwrap();
    call().await.unwrap().rollback().await.unwrap();
    drop(call().await.unwrap());
    let (rpm, tpm, events) = settle(&stage, &limiter, "user-1").await;
    assert_eq!(rpm, (calls + 3) * 1000);
    assert_eq!(tpm, (calls * 50 + 57 + 5_050 + 30) * 1000);
    assert_eq!(events, calls + 5);
}

#[tokio::test(start_paused = true)]
async fn a_chunk_that_nobody_uses_goes_back() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    let calls = i64::try_from(busy(&limiter, "user-1").await).unwrap();
    assert!(limiter.stats().chunk_tokens > 0);
    tokio::time::sleep(secs(3)).await;
    assert_eq!(limiter.stats().chunk_tokens, 0);
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.consumed("rpm"), calls * 1000);
    assert_eq!(bucket.number("ev"), Some(calls));
}

#[tokio::test(start_paused = true)]
async fn parents_have_chunks_of_their_own() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    let repository = limiter.repository();
    repository.create_entity(NewEntity::new("team")).await.unwrap();
    let user = NewEntity::new("user-1").parent("team").cascade(true);
    repository.create_entity(user).await.unwrap();
    let calls = i64::try_from(busy(&limiter, "user-1").await).unwrap();
    stage.wire.calls();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.wire.calls().len(), 0);
    limiter.shutdown().await;
    for entity in ["user-1", "team"] {
        let bucket = stage.bucket(entity).await.unwrap();
        assert_eq!(bucket.consumed("rpm"), (calls + 1) * 1000, "{entity}");
        assert_eq!(bucket.number("ev"), Some(calls + 1), "{entity}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_parent_refuses_leaves_nothing_behind() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    let repository = limiter.repository();
    repository.create_entity(NewEntity::new("team")).await.unwrap();
    let user = NewEntity::new("user-1").parent("team").cascade(true);
    repository.create_entity(user).await.unwrap();
    repository
        .set_limits("team", GPT, [hoard("tpm", 100_000), hoard("rpm", 120)])
        .await
        .unwrap();
    let mut admitted = 0;
    for _ in 0..200 {
        let call = limiter
            .acquire("user-1", GPT)
            .consume("rpm", 1)
            .consume("tpm", 50);
        match call.await {
            Ok(lease) => {
                lease.commit().await.unwrap();
                admitted += 1;
            }
            Err(error) => drop(exceeded(error)),
        }
        tokio::time::sleep(millis(10)).await;
    }
    limiter.shutdown().await;
    assert_eq!(admitted, 120, "all that the parent has, and no more");
    for entity in ["user-1", "team"] {
        let bucket = stage.bucket(entity).await.unwrap();
        assert_eq!(bucket.consumed("rpm"), 120_000, "{entity}");
    }
}

#[tokio::test(start_paused = true)]
async fn limits_of_a_call_are_not_met_from_a_chunk() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    let calls = i64::try_from(busy(&limiter, "user-1").await).unwrap();
    stage.wire.calls();
    let call = limiter.acquire("user-1", GPT).consume("rpm", 1);
    let own = call.limits([hoard("rpm", 500), hoard("tpm", 10_000_000)]);
    own.await.unwrap().commit().await.unwrap();
    assert!(!stage.wire.calls().is_empty());
    // The bucket has other parameters now, so that the chunk is not spent either.
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert!(!stage.wire.calls().is_empty());
    limiter.shutdown().await;
    assert_eq!(
        stage.bucket("user-1").await.unwrap().consumed("rpm"),
        (calls + 2) * 1000
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_goes_with_chunks() {
    let stage = Stage::new();
    let builder = stage.builder().token_chunks();
    let limiter = builder.default_limits(limits(&["rps:200/sec"])).await.unwrap();
    let mut admitted = 0;
    for _ in 0..300 {
        take(&limiter, "user-1", "rps", 1).await.unwrap();
        admitted += 1;
        tokio::time::sleep(millis(10)).await;
    }
    assert!(limiter.stats().chunk_tokens > 0);
    let large = limiter.acquire("user-1", GPT).consume("rps", 200);
    large.wait_up_to(secs(5)).await.unwrap().commit().await.unwrap();
    limiter.shutdown().await;
    assert_eq!(
        stage.bucket("user-1").await.unwrap().consumed("rps"),
        (admitted + 200) * 1000
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_in_hand_are_spent_while_the_circuit_breaker_is_open() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    busy(&limiter, "user-1").await;
    for number in 0..20 {
        take(&limiter, &format!("other-{number}"), "rpm", 1)
            .await
            .unwrap();
    }
    stage.wire.always(Fault::ConnectionRefused);
    let others: Vec<_> = (0..20)
        .map(|number| {
            let limiter = limiter.clone();
            tokio::spawn(async move { take(&limiter, &format!("other-{number}"), "rpm", 1).await })
        })
        .collect();
    let mut spent = 0;
    while limiter.stats().breaker == BreakerState::Closed {
        tokio::time::sleep(millis(100)).await;
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        spent += 1;
        assert!(spent < 12, "the breaker does not open");
    }
    for other in others {
        assert!(other.await.unwrap().unwrap_err().is_unavailable());
    }
    let before = limiter.stats().chunk_tokens;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(limiter.stats().chunk_tokens, before - 1);
    // Nothing can be given back now; it is reported and not waited for.
    let started = tokio::time::Instant::now();
    let report = limiter.shutdown().await;
    assert!(started.elapsed() <= secs(2), "{:?}", started.elapsed());
    assert_eq!(report.unwritten_total, 1, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_forgets_to_shut_down_strands_one_chunk() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    let calls = i64::try_from(busy(&limiter, "user-1").await).unwrap();
    let most = i64::try_from(limiter.stats().chunk_tokens_peak).unwrap();
    let bucket = stage.bucket("user-1").await.unwrap();
    let stranded = bucket.consumed("rpm") - calls * 1000;
    assert!((1..=most * 1000).contains(&stranded), "{stranded} of {most}");
}

#[test]
fn a_chunk_whose_runtime_ended_is_tended_by_the_next_caller() {
    let first = Runtime::new().unwrap();
    let second = Runtime::new().unwrap();
    let limiter = first.block_on(async {
        let builder = RateLimiter::embedded().token_chunks();
        let limiter = builder.default_limits([hoard("rpm", 100_000)]).await.unwrap();
        while limiter.stats().chunk_grants == 0 {
            take(&limiter, "user-1", "rpm", 1).await.unwrap();
        }
        limiter
    });
    drop(first);
    second.block_on(async {
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        let report = limiter.shutdown().await;
        assert_eq!(report.unwritten_total, 0);
        assert_eq!(limiter.stats().chunk_tokens, 0);
    });
}
