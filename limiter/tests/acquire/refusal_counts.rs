//! Refusals become visible in the table: in the bucket of the entity that was refused, from time to time.

use zae_limiter::NewEntity;

use crate::acquire::support::*;

async fn refuse(limiter: &zae_limiter::RateLimiter, entity: &str, times: usize) {
    for _ in 0..times {
        exceeded(take(limiter, entity, "rpm", 5).await.unwrap_err());
    }
}

async fn counted(stage: &Stage, entity: &str) -> Option<i64> {
    stage.bucket(entity).await.unwrap().number("rj")
}

/// A limiter with a bucket for each of two users.
async fn started(stage: &Stage) -> zae_limiter::RateLimiter {
    let limiter = stage.limiter(&["rpm:2"]).await;
    for user in ["user-1", "user-2"] {
        take(&limiter, user, "rpm", 1).await.unwrap();
    }
    stage.wire.calls();
    limiter
}

#[tokio::test(start_paused = true)]
async fn refusals_are_written_once_a_minute_per_bucket() {
    let stage = Stage::new();
    let limiter = started(&stage).await;
    refuse(&limiter, "user-1", 7).await;
    refuse(&limiter, "user-2", 2).await;
    assert_eq!(stage.wire.operations(), Vec::<String>::new(), "from memory");
    tokio::time::sleep(secs(66)).await;
    assert_eq!(stage.wire.operations(), ["UpdateItem", "UpdateItem"]);
    assert_eq!(counted(&stage, "user-1").await, Some(7));
    assert_eq!(counted(&stage, "user-2").await, Some(2));
    tokio::time::sleep(secs(200)).await;
    assert!(stage.wire.operations().is_empty(), "nobody was refused");
    refuse(&limiter, "user-1", 1).await;
    stage.wire.calls();
    tokio::time::sleep(secs(66)).await;
    assert_eq!(stage.wire.operations(), ["UpdateItem"]);
    assert_eq!(counted(&stage, "user-1").await, Some(8));
}

#[test]
fn refusals_go_on_being_written_after_the_runtime_of_the_first_has_ended() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let (stage, limiter) = runtime().block_on(async {
        let stage = Stage::new();
        let limiter = started(&stage).await;
        refuse(&limiter, "user-1", 3).await;
        (stage, limiter)
    });
    runtime().block_on(async {
        refuse(&limiter, "user-1", 2).await;
        tokio::time::sleep(secs(66)).await;
        assert_eq!(counted(&stage, "user-1").await, Some(5));
    });
}

#[tokio::test(start_paused = true)]
async fn shutdown_writes_what_is_left() {
    let stage = Stage::new();
    let limiter = started(&stage).await;
    refuse(&limiter, "user-1", 3).await;
    limiter.shutdown().await;
    assert_eq!(counted(&stage, "user-1").await, Some(3));
    assert_eq!(counted(&stage, "user-2").await, None);
}

#[tokio::test(start_paused = true)]
async fn no_task_of_a_refusal_outlives_the_limiter() {
    let metrics = tokio::runtime::Handle::current().metrics();
    for shuts_down in [true, false] {
        let stage = Stage::new();
        let limiter = started(&stage).await;
        refuse(&limiter, "user-1", 1).await;
        limiter.settled().await;
        assert_eq!(metrics.num_alive_tasks(), 1, "it waits to be counted");
        if shuts_down {
            limiter.shutdown().await;
        } else {
            drop(limiter);
        }
        // No time passes.
        tokio::task::yield_now().await;
        assert_eq!(metrics.num_alive_tasks(), 0, "after a shutdown: {shuts_down}");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_in_time_if_refusals_cannot_be_written() {
    let stage = Stage::new();
    let limiter = started(&stage).await;
    refuse(&limiter, "user-1", 3).await;
    stage.wire.always(Fault::Silence);
    let before = tokio::time::Instant::now();
    assert_eq!(limiter.shutdown().await.unwritten_total, 0);
    assert!(before.elapsed() <= millis(1_001), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_table_that_was_silent_costs_one_count_and_the_next_minute_is_counted() {
    let stage = Stage::new();
    let limiter = started(&stage).await;
    refuse(&limiter, "user-1", 3).await;
    refuse(&limiter, "user-2", 3).await;
    stage.wire.always(Fault::Silence);
    tokio::time::sleep(secs(67)).await;
    assert_eq!(
        stage.wire.operations().len(),
        1,
        "the second bucket waits for its turn"
    );
    stage.wire.heal();
    tokio::time::sleep(secs(67)).await;
    let counts = [counted(&stage, "user-1").await, counted(&stage, "user-2").await];
    assert!(
        counts == [Some(3), None] || counts == [None, Some(3)],
        "{counts:?}"
    );
    refuse(&limiter, "user-1", 1).await;
    refuse(&limiter, "user-2", 1).await;
    tokio::time::sleep(secs(67)).await;
    let counts = [counted(&stage, "user-1").await, counted(&stage, "user-2").await];
    assert!(
        counts == [Some(4), Some(1)] || counts == [Some(1), Some(4)],
        "{counts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_the_breaker_is_open_and_all_of_it_later() {
    let stage = Stage::new();
    let limiter = started(&stage).await;
    refuse(&limiter, "user-1", 3).await;
    tokio::time::sleep(secs(50)).await;
    stage.wire.always(Fault::Silence);
    take(&limiter, "user-2", "rpm", 1).await.unwrap_err();
    assert_eq!(limiter.stats().breaker, zae_limiter::BreakerState::Open);
    tokio::time::sleep(secs(20)).await;
    stage.wire.heal();
    assert_eq!(counted(&stage, "user-1").await, None);
    tokio::time::sleep(secs(70)).await;
    assert_eq!(counted(&stage, "user-1").await, Some(3));
}

#[tokio::test(start_paused = true)]
async fn refusals_during_a_write_are_written_a_minute_later() {
    let stage = Stage::new();
    let limiter = started(&stage).await;
    refuse(&limiter, "user-1", 3).await;
    let during = limiter.clone();
    stage
        .wire
        .before("UpdateItem", async move { refuse(&during, "user-1", 2).await });
    tokio::time::sleep(secs(66)).await;
    assert_eq!(counted(&stage, "user-1").await, Some(3));
    tokio::time::sleep(secs(66)).await;
    assert_eq!(counted(&stage, "user-1").await, Some(5));
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_the_write_that_is_under_way() {
    let stage = Stage::new();
    let limiter = started(&stage).await;
    refuse(&limiter, "user-1", 3).await;
    let (arrived, arrives) = tokio::sync::oneshot::channel();
    stage.wire.before("UpdateItem", async move {
        arrived.send(()).unwrap();
        tokio::time::sleep(millis(300)).await;
    });
    arrives.await.unwrap();
    limiter.shutdown().await;
    assert_eq!(counted(&stage, "user-1").await, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_write_of_refusals_changes_nothing_else_and_fails_no_acquire() {
    let stage = Stage::new();
    let limiter = started(&stage).await;
    let before = stage.bucket("user-1").await.unwrap();
    refuse(&limiter, "user-1", 1).await;
    tokio::time::sleep(secs(66)).await;
    let mut after = stage.bucket("user-1").await.unwrap();
    after.0.remove("rj").unwrap();
    assert_eq!(after, before);
    take(&limiter, "user-1", "rpm", 2).await.unwrap();
    assert_eq!(counted(&stage, "user-1").await, Some(1));
}

#[tokio::test(start_paused = true)]
async fn whoever_called_is_counted_also_if_the_limit_is_a_parents() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:2"]).await;
    let repository = limiter.repository();
    repository.create_entity(NewEntity::new("org-1")).await.unwrap();
    let child = NewEntity::new("user-1").parent("org-1").cascade(true);
    repository.create_entity(child).await.unwrap();
    repository
        .set_limits("user-1", GPT, limits(&["rpm:100"]))
        .await
        .unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    refuse(&limiter, "user-1", 2).await;
    limiter.shutdown().await;
    assert_eq!(counted(&stage, "user-1").await, Some(2));
    assert_eq!(counted(&stage, "org-1").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_does_not_exist_is_not_made_by_refusals() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:2"]).await;
    refuse(&limiter, "user-1", 2).await;
    limiter.shutdown().await;
    assert!(stage.bucket("user-1").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn counting_can_be_turned_off() {
    let stage = Stage::new();
    let builder = stage.builder().default_limits(limits(&["rpm:2"]));
    let limiter = builder.count_refusals(false).await.unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    refuse(&limiter, "user-1", 2).await;
    stage.wire.calls();
    tokio::time::sleep(secs(66)).await;
    limiter.shutdown().await;
    assert!(stage.wire.operations().is_empty());
    assert_eq!(counted(&stage, "user-1").await, None);
}
