//! When buckets may be forgotten.

use zae_limiter::Clock;

use crate::acquire::support::*;

impl Stage {
    /// Seconds until the bucket expires.
    async fn life(&self, entity: &str) -> Option<i64> {
        let expires = self.bucket(entity).await.unwrap().number("ttl")?;
        Some(expires - self.clock.now().seconds())
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_bucket_on_defaults_lives_ten_and_a_half_fill_times_of_its_slowest_limit() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60", "rph:100/hour"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.life("user-1").await, Some(7 * 3600 * 3 / 2));
}

#[tokio::test(start_paused = true)]
async fn the_burst_counts_and_not_the_capacity() {
    let stage = Stage::new();
    // A thousand tokens at a hundred a minute take ten minutes.
    let limiter = stage.limiter(&["rpm:100:1000"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.life("user-1").await, Some(7 * 600 * 3 / 2));
}

#[tokio::test(start_paused = true)]
async fn debt_lengthens_the_life() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:100"]).await;
    let mut held = lease(&limiter, "user-1", "tpm", 100).await.unwrap();
    held.adjust("tpm", 1_900);
    held.commit().await.unwrap();
    // Nineteen hundred below zero: twenty minutes to full.
    let life = stage.life("user-1").await.unwrap();
    assert!(life >= 2 * 20 * 60, "{life}");
}

#[tokio::test(start_paused = true)]
async fn somebody_who_has_not_seen_a_debt_does_not_shorten_the_life_that_it_was_given() {
    let stage = Stage::new();
    let (one, other) = (
        stage.limiter(&["tpm:100"]).await,
        stage.limiter(&["tpm:100"]).await,
    );
    let mut deep = lease(&one, "user-1", "tpm", 1).await.unwrap();
    let mut shallow = lease(&other, "user-1", "tpm", 1).await.unwrap();
    deep.adjust("tpm", 9_998);
    deep.commit().await.unwrap();
    shallow.adjust("tpm", 1_900);
    shallow.commit().await.unwrap();
    // 11,900 tokens to full at a hundred a minute.
    let life = stage.life("user-1").await.unwrap();
    assert!(life >= 119 * 60, "{life}");
}

#[tokio::test(start_paused = true)]
async fn debts_that_nobody_saw_together_lengthen_the_life_too() {
    let stage = Stage::new();
    let mut leases = Vec::new();
    for _ in 0..3 {
        let limiter = stage.limiter(&["tpm:100"]).await;
        leases.push((lease(&limiter, "user-1", "tpm", 1).await.unwrap(), limiter));
    }
    stage.wire.calls();
    let mut writes = Vec::new();
    for (mut held, limiter) in leases {
        // For itself this is paid back within the bucket's life; three times that is not.
        held.adjust("tpm", 400);
        held.commit().await.unwrap();
        limiter.settled().await;
        writes.push(stage.wire.operations().len());
    }
    let life = stage.life("user-1").await.unwrap();
    assert!(life >= 721, "1,203 tokens at a hundred a minute: {life}");
    assert_eq!(writes, [1, 1, 2], "one write more, by the one who sees it");
}

#[tokio::test(start_paused = true)]
async fn after_its_last_use_a_bucket_lives_at_least_seven_fill_times() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    for _ in 0..200 {
        take(&limiter, "user-1", "rpm", 1).await.unwrap();
        let life = stage.life("user-1").await.unwrap();
        assert!((7 * 60..=7 * 60 * 3 / 2).contains(&life), "{life}");
        advance(secs(30)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn buckets_of_entities_with_limits_of_their_own_do_not_expire() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    set_limits(&limiter, "user-1", &["rpm:30"]).await;
    limiter
        .repository()
        .set_default_limits("user-2", limits(&["rpm:30"]))
        .await
        .unwrap();
    for user in ["user-1", "user-2"] {
        take(&limiter, user, "rpm", 1).await.unwrap();
        assert_eq!(stage.life(user).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn limits_of_its_own_end_the_expiry_of_a_live_bucket_and_their_end_brings_it_back() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:60"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert!(stage.life("user-1").await.is_some());
    set_limits(&limiter, "user-1", &["rpm:30"]).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.life("user-1").await, None);
    let level = zae_limiter::ConfigLevel::Entity("user-1".parse().unwrap(), GPT.parse().unwrap());
    limiter.repository().delete_config(&level).await.unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.life("user-1").await, Some(630));
}

#[tokio::test(start_paused = true)]
async fn expiry_can_be_turned_off() {
    let stage = Stage::new();
    let builder = stage.builder().default_limits(limits(&["rpm:60"]));
    let limiter = builder.bucket_ttl_refill_multiplier(0).await.unwrap();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.life("user-1").await, None);
}

#[tokio::test(start_paused = true)]
async fn an_expired_item_that_is_still_there_is_live_and_full() {
    for warm in [true, false] {
        let stage = Stage::new();
        let limiter = stage.limiter(&["rpm:60"]).await;
        take(&limiter, "user-1", "rpm", 60).await.unwrap();
        advance(secs(100_000)).await;
        assert!(stage.life("user-1").await.unwrap() < 0);
        let user = if warm {
            limiter
        } else {
            stage.limiter(&["rpm:60"]).await
        };
        assert_eq!(drain(&user, "user-1", "rpm").await, 60);
        assert_eq!(stage.life("user-1").await, Some(630), "and its life is renewed");
        let bucket = stage.bucket("user-1").await.unwrap();
        assert_eq!(bucket.consumed("rpm"), 120_000, "its counts go on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_was_deleted_is_made_again_full() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpd:60/day"]).await;
    take(&limiter, "user-1", "rpd", 60).await.unwrap();
    stage.delete_bucket("user-1").await;
    advance(secs(2)).await;
    assert_eq!(drain(&limiter, "user-1", "rpd").await, 60);
}
