//! Changes of the configuration that must reach buckets which are already there.
//!
//! One limiter changes the configuration; the one that acquires has it in its cache and learns of it within the
//! cache's time to live.

use zae_limiter::{EntityChange, NewEntity, RateLimiter};

use crate::acquire::support::*;

struct Two {
    stage: Stage,
    /// Changes things.
    admin: RateLimiter,
    /// Acquires, with a cache of a minute.
    user: RateLimiter,
}

impl Two {
    async fn with(resource_defaults: &[&str]) -> Self {
        let stage = Stage::new();
        let admin = stage.limiter(&[]).await;
        set_resource_limits(&admin, resource_defaults).await;
        let user = stage.limiter(&[]).await;
        Self { stage, admin, user }
    }

    async fn set(&self, texts: &[&str]) {
        set_resource_limits(&self.admin, texts).await;
    }

    /// Lets the cache expire. A token of a daily limit takes far longer to come back.
    async fn cache_expires(&self) {
        advance(secs(61)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lowered_limit_reaches_a_live_bucket() {
    let two = Two::with(&["rpd:100/day"]).await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    two.set(&["rpd:5/day"]).await;
    two.cache_expires().await;
    assert_eq!(drain(&two.user, "user-1", "rpd").await, 5);
}

#[tokio::test(start_paused = true)]
async fn a_raised_limit_keeps_the_level_and_fills_to_the_new_burst() {
    let two = Two::with(&["rpd:10/day"]).await;
    take(&two.user, "user-1", "rpd", 10).await.unwrap();
    two.set(&["rpd:86400/day"]).await;
    two.cache_expires().await;
    let refused = exceeded(take(&two.user, "user-1", "rpd", 5).await.unwrap_err());
    assert_eq!(
        refused.statuses()[0].limit.burst().get(),
        86_400,
        "the refusal speaks of the new limit"
    );
    take(&two.user, "user-1", "rpd", 1).await.unwrap_err();
    // One a second from now on.
    advance(secs(20)).await;
    assert_eq!(drain(&two.user, "user-1", "rpd").await, 20);
}

#[tokio::test(start_paused = true)]
async fn an_added_limit_starts_full_and_the_others_keep_their_level() {
    let two = Two::with(&["rpd:10/day"]).await;
    take(&two.user, "user-1", "rpd", 7).await.unwrap();
    two.set(&["rpd:10/day", "tpd:1000/day"]).await;
    two.cache_expires().await;
    let call = || {
        two.user
            .acquire("user-1", GPT)
            .consume("rpd", 1)
            .consume("tpd", 400)
    };
    call().await.unwrap().commit().await.unwrap();
    call().await.unwrap().commit().await.unwrap();
    assert_eq!(available(&two.user, "user-1", "rpd").await, 1);
    assert_eq!(available(&two.user, "user-1", "tpd").await, 200);
}

#[tokio::test(start_paused = true)]
async fn an_added_limit_that_a_call_does_not_consume_does_not_break_the_bucket() {
    let two = Two::with(&["rpd:10/day"]).await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    two.set(&["rpd:10/day", "tpd:1000/day"]).await;
    two.cache_expires().await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    take(&two.user, "user-1", "tpd", 1000).await.unwrap();
    exceeded(take(&two.user, "user-1", "tpd", 1).await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn a_removed_limit_no_longer_refuses_and_is_unknown() {
    let two = Two::with(&["rpd:10/day", "tpd:100/day"]).await;
    let call = two
        .user
        .acquire("user-1", GPT)
        .consume("rpd", 1)
        .consume("tpd", 100);
    call.await.unwrap().commit().await.unwrap();
    two.set(&["rpd:10/day"]).await;
    two.cache_expires().await;
    assert_eq!(drain(&two.user, "user-1", "rpd").await, 9);
    let error = take(&two.user, "user-1", "tpd", 1).await.unwrap_err();
    assert!(error.to_string().contains("has the limits rpd"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn removing_a_limit_and_adding_it_again_gives_nothing_away() {
    let two = Two::with(&["rpd:1000/day", "tpd:10/day"]).await;
    let mut taken = drain(&two.user, "user-1", "tpd").await;
    for _ in 0..5 {
        two.set(&["rpd:1000/day"]).await;
        two.cache_expires().await;
        take(&two.user, "user-1", "rpd", 1).await.unwrap();
        two.set(&["rpd:1000/day", "tpd:10/day"]).await;
        two.cache_expires().await;
        taken += drain(&two.user, "user-1", "tpd").await;
    }
    assert_eq!(taken, 10);
}

#[tokio::test(start_paused = true)]
async fn a_removed_limit_leaves_the_item_once_it_is_full() {
    let two = Two::with(&["rpd:10/day", "rps:10/sec"]).await;
    let call = two
        .user
        .acquire("user-1", GPT)
        .consume("rpd", 1)
        .consume("rps", 10);
    call.await.unwrap().commit().await.unwrap();
    two.set(&["rpd:10/day"]).await;
    two.cache_expires().await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    let bucket = two.stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.number("b_rps_tk"), None, "{bucket:?}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_period_changes_the_rate_from_then_on() {
    let two = Two::with(&["calls:60/hour"]).await;
    take(&two.user, "user-1", "calls", 60).await.unwrap();
    two.set(&["calls:60/min"]).await;
    // A minute at the old rate has brought one token.
    two.cache_expires().await;
    assert_eq!(drain(&two.user, "user-1", "calls").await, 1);
    advance(secs(10)).await;
    assert_eq!(drain(&two.user, "user-1", "calls").await, 10);
}

#[tokio::test(start_paused = true)]
async fn limits_of_the_entity_reach_its_live_buckets_at_both_levels() {
    let two = Two::with(&["rpd:100/day"]).await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    two.admin
        .repository()
        .set_default_limits("user-1", limits(&["rpd:20/day"]))
        .await
        .unwrap();
    two.cache_expires().await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    assert_eq!(available(&two.user, "user-1", "rpd").await, 19);
    two.admin
        .repository()
        .set_limits("user-1", GPT, limits(&["rpd:3/day"]))
        .await
        .unwrap();
    two.cache_expires().await;
    assert_eq!(drain(&two.user, "user-1", "rpd").await, 3);
    let resource = zae_limiter::ConfigLevel::Entity("user-1".parse().unwrap(), GPT.parse().unwrap());
    two.admin.repository().delete_config(&resource).await.unwrap();
    two.cache_expires().await;
    exceeded(take(&two.user, "user-1", "rpd", 4).await.unwrap_err());
    let peek = two.user.acquire("user-1", GPT).peek().await.unwrap();
    assert_eq!(
        peek.statuses()[0].limit.burst().get(),
        20,
        "the entity's default again"
    );
}

#[tokio::test(start_paused = true)]
async fn system_limits_reach_live_buckets() {
    let stage = Stage::new();
    let admin = stage.limiter(&[]).await;
    admin
        .repository()
        .set_system_defaults(limits(&["rpd:100/day"]))
        .await
        .unwrap();
    let user = stage.limiter(&[]).await;
    take(&user, "user-1", "rpd", 1).await.unwrap();
    admin
        .repository()
        .set_system_defaults(limits(&["rpd:2/day"]))
        .await
        .unwrap();
    advance(secs(61)).await;
    assert_eq!(drain(&user, "user-1", "rpd").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_parent_is_charged() {
    let two = Two::with(&["rpd:10/day"]).await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    two.admin
        .repository()
        .create_entity(NewEntity::new("org"))
        .await
        .unwrap();
    let entity = NewEntity::new("user-1").parent("org").cascade(true);
    two.admin.repository().create_entity(entity).await.unwrap();
    two.cache_expires().await;
    take(&two.user, "user-1", "rpd", 2).await.unwrap();
    assert_eq!(available(&two.user, "org", "rpd").await, 8);
    assert_eq!(available(&two.user, "user-1", "rpd").await, 7);

    two.admin
        .repository()
        .create_entity(NewEntity::new("club"))
        .await
        .unwrap();
    let moved = EntityChange::new().parent("club");
    two.admin
        .repository()
        .update_entity("user-1", moved)
        .await
        .unwrap();
    two.cache_expires().await;
    take(&two.user, "user-1", "rpd", 3).await.unwrap();
    assert_eq!(available(&two.user, "org", "rpd").await, 8);
    assert_eq!(available(&two.user, "club", "rpd").await, 7);
    let bucket = two.stage.bucket("user-1").await.unwrap();
    assert_eq!(
        bucket.0["parent_id"].as_s().unwrap(),
        "club",
        "the peer reads it from the bucket"
    );
}

#[tokio::test(start_paused = true)]
async fn cascade_switched_on_and_off_reaches_live_buckets() {
    let two = Two::with(&["rpd:10/day"]).await;
    two.admin
        .repository()
        .create_entity(NewEntity::new("org"))
        .await
        .unwrap();
    two.admin
        .repository()
        .create_entity(NewEntity::new("user-1").parent("org"))
        .await
        .unwrap();
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    assert_eq!(available(&two.user, "org", "rpd").await, 10);
    for (cascade, left) in [(true, 9), (false, 9), (true, 8)] {
        let change = EntityChange::new().cascade(cascade);
        two.admin
            .repository()
            .update_entity("user-1", change)
            .await
            .unwrap();
        two.cache_expires().await;
        take(&two.user, "user-1", "rpd", 1).await.unwrap();
        assert_eq!(available(&two.user, "org", "rpd").await, left);
        let bucket = two.stage.bucket("user-1").await.unwrap();
        assert_eq!(bucket.0["cascade"].as_bool().unwrap(), &cascade);
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_sees_its_own_changes_at_once() {
    let two = Two::with(&["rpd:100/day"]).await;
    take(&two.admin, "user-1", "rpd", 1).await.unwrap();
    two.set(&["rpd:5/day"]).await;
    assert_eq!(drain(&two.admin, "user-1", "rpd").await, 5);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_another_process_has_applied_arrives_with_the_next_write() {
    let two = Two::with(&["rpd:100/day"]).await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    two.set(&["rpd:5/day"]).await;
    take(&two.admin, "user-1", "rpd", 1).await.unwrap();
    // Its cache is still good for a minute; the bucket tells.
    assert_eq!(drain(&two.user, "user-1", "rpd").await, 4);
}

#[tokio::test(start_paused = true)]
async fn processes_with_different_caches_do_not_rewrite_each_other() {
    let two = Two::with(&["rpd:1000/day"]).await;
    let third = two.stage.limiter(&[]).await;
    for limiter in [&two.user, &third] {
        take(limiter, "user-1", "rpd", 1).await.unwrap();
    }
    two.set(&["rpd:1000/day", "tpd:10/day"]).await;
    take(&two.admin, "user-1", "tpd", 10).await.unwrap();
    let mut taken = 10;
    for _ in 0..20 {
        for limiter in [&two.user, &two.admin, &third] {
            take(limiter, "user-1", "rpd", 1).await.unwrap();
            taken += u64::from(take(limiter, "user-1", "tpd", 1).await.is_ok());
        }
        advance(secs(3)).await;
    }
    assert_eq!(taken, 10, "an added limit is full once");
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_configuration_is_not_written_again_when_the_cache_expires() {
    let two = Two::with(&["rpd:100/day"]).await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    let etag = two.stage.bucket("user-1").await.unwrap().0["cf"].clone();
    two.cache_expires().await;
    take(&two.user, "user-1", "rpd", 1).await.unwrap();
    assert_eq!(two.stage.bucket("user-1").await.unwrap().0["cf"], etag);
}
