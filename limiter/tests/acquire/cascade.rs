//! Calls that count on the parents too.

use zae_limiter::error::NotFound;
use zae_limiter::{Error, NewEntity, RateLimiter};

use crate::acquire::support::*;

/// A limiter and the chain org → team → user, every hop cascading.
async fn chain(stage: &Stage) -> RateLimiter {
    let limiter = stage.limiter(&[]).await;
    set_resource_limits(&limiter, &["rpm:10"]).await;
    create(&limiter, NewEntity::new("org")).await;
    create(&limiter, child("team", "org")).await;
    for user in ["user-1", "user-2"] {
        create(&limiter, child(user, "team")).await;
    }
    set_limits(&limiter, "team", &["rpm:15"]).await;
    set_limits(&limiter, "org", &["rpm:100"]).await;
    limiter
}

async fn levels(limiter: &RateLimiter) -> [i64; 3] {
    [
        available(limiter, "user-1", "rpm").await,
        available(limiter, "team", "rpm").await,
        available(limiter, "org", "rpm").await,
    ]
}

#[tokio::test(start_paused = true)]
async fn the_whole_chain_is_charged() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    let lease = lease(&limiter, "user-1", "rpm", 3).await.unwrap();
    assert_eq!(
        lease.consumed().values().copied().collect::<Vec<_>>(),
        [3],
        "the entity's own, not the sum"
    );
    let statuses: Vec<_> = lease
        .statuses()
        .iter()
        .map(|status| (status.entity.to_string(), status.available))
        .collect();
    let expected = [("user-1", 7), ("team", 12), ("org", 97)];
    assert_eq!(
        statuses,
        expected.map(|(entity, available)| (entity.to_owned(), available))
    );
    lease.commit().await.unwrap();
    assert_eq!(levels(&limiter).await, [7, 12, 97]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_goes_back_at_every_level() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    drop(lease(&limiter, "user-1", "rpm", 3).await.unwrap());
    limiter.settled().await;
    assert_eq!(levels(&limiter).await, [10, 15, 100]);
}

#[tokio::test(start_paused = true)]
async fn an_adjustment_is_booked_at_every_level() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    let mut lease = lease(&limiter, "user-1", "rpm", 3).await.unwrap();
    lease.adjust("rpm", 12);
    lease.commit().await.unwrap();
    assert_eq!(levels(&limiter).await, [-5, 0, 85]);
}

#[tokio::test(start_paused = true)]
async fn all_levels_are_written_in_one_round_trip() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    stage.wire.calls();
    stage.wire.latency(millis(10));
    let before = tokio::time::Instant::now();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.wire.most_in_flight(), 3, "at the same time");
    assert!(
        before.elapsed() < millis(20),
        "one round trip: {:?}",
        before.elapsed()
    );
    assert_eq!(stage.wire.operations(), ["UpdateItem"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_level_gives_the_others_back_and_the_error_lists_all() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    take(&limiter, "user-2", "rpm", 10).await.unwrap();
    let refused = exceeded(take(&limiter, "user-1", "rpm", 6).await.unwrap_err());
    let statuses: Vec<_> = refused
        .statuses()
        .iter()
        .map(|one| (one.entity.as_str(), one.available, one.refused))
        .collect();
    assert_eq!(
        statuses,
        [("user-1", 10, false), ("team", 5, true), ("org", 90, false)]
    );
    limiter.settled().await;
    assert_eq!(levels(&limiter).await, [10, 5, 90]);
    take(&limiter, "user-1", "rpm", 5).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_empty_does_not_touch_its_parents() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    take(&limiter, "user-1", "rpm", 10).await.unwrap();
    stage.wire.calls();
    for _ in 0..20 {
        exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    }
    assert_eq!(stage.wire.operations(), Vec::<String>::new());
    advance(secs(2)).await;
    exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    assert_eq!(
        stage.wire.operations(),
        ["GetItem"],
        "only the level that looks refused is written"
    );
}

#[tokio::test(start_paused = true)]
async fn a_parent_emptied_by_another_process_refuses_and_the_child_gets_its_tokens_back() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let other = stage.limiter(&[]).await;
    take(&other, "team", "rpm", 14).await.unwrap();
    let refused = exceeded(take(&limiter, "user-1", "rpm", 1).await.unwrap_err());
    let violated: Vec<_> = refused.refused_limits().map(|one| one.entity.as_str()).collect();
    assert_eq!(violated, ["team"]);
    limiter.settled().await;
    // The other one used the team's bucket directly; a team has a parent of its own.
    assert_eq!(levels(&limiter).await, [9, 0, 85]);
}

#[tokio::test(start_paused = true)]
async fn two_calls_that_each_hold_what_the_other_needs_cannot_both_lose() {
    for seed in 0..30 {
        let stage = Stage::new();
        let set_up = stage.limiter(&[]).await;
        set_resource_limits(&set_up, &["calls:1/sec"]).await;
        create(&set_up, NewEntity::new("org")).await;
        create(&set_up, child("team", "org")).await;
        let mut calls = Vec::new();
        // The one reaches the team first, the other the organization.
        for (number, (user, first, second)) in [("user-1", "team", "org"), ("user-2", "org", "team")]
            .into_iter()
            .enumerate()
        {
            create(&set_up, child(user, "team")).await;
            let wire = stage.another_wire();
            let builder = stage.builder_on(&wire).seed(seed * 2 + number as u64);
            let limiter = builder.await.unwrap();
            // Both know the configuration already.
            limiter.acquire(user, GPT).peek().await.unwrap();
            wire.calls();
            wire.latency_of(user, millis(2));
            wire.latency_of(first, millis(2 + seed % 3));
            wire.latency_of(second, millis(20 + seed % 7));
            calls.push((
                wire,
                tokio::spawn(async move { take(&limiter, user, "calls", 1).await }),
            ));
        }
        let mut admitted = 0;
        for (wire, call) in calls {
            admitted += u32::from(call.await.unwrap().is_ok());
            let lost = wire.calls().iter().filter(|call| call.status == 400).count();
            assert!(lost > 0, "seed {seed}: each loses a level at first");
        }
        assert_eq!(admitted, 1, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_counts_the_limits_that_it_has() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    create(&limiter, NewEntity::new("org")).await;
    create(&limiter, child("user-1", "org")).await;
    set_limits(&limiter, "user-1", &["rpm:10", "tpm:1000"]).await;
    set_limits(&limiter, "org", &["tpm:5000"]).await;
    let call = || {
        limiter
            .acquire("user-1", GPT)
            .consume("rpm", 1)
            .consume("tpm", 100)
    };
    call().await.unwrap().commit().await.unwrap();
    assert_eq!(available(&limiter, "org", "tpm").await, 4900);
    // Nothing is asked of the parent: it is not written at all.
    stage.wire.calls();
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    let written: Vec<_> = stage
        .wire
        .calls()
        .into_iter()
        .map(|call| call.partition)
        .collect();
    assert_eq!(written, ["ENTITY#user-1"]);
    // How it stands is told all the same.
    take(&limiter, "org", "tpm", 4_900).await.unwrap();
    let lease = lease(&limiter, "user-1", "rpm", 1).await.unwrap();
    let statuses: Vec<_> = lease
        .statuses()
        .iter()
        .map(|one| (one.entity.to_string(), one.available, one.requested))
        .collect();
    let expected = [("user-1", 7, 1), ("user-1", 900, 0), ("org", 0, 0)];
    assert_eq!(
        statuses,
        expected.map(|(entity, available, requested)| (entity.to_owned(), available, requested))
    );
}

#[tokio::test(start_paused = true)]
async fn a_level_whose_answers_are_lost_for_good_leaves_nothing_behind_in_the_end() {
    for lost in ["user-1", "team", "org"] {
        for fault in [Fault::SilentResponse, Fault::LostResponse, Fault::Silence] {
            let stage = Stage::new();
            let limiter = chain(&stage).await;
            take(&limiter, "user-1", "rpm", 1).await.unwrap();
            stage.wire.always_on(lost, fault);
            let error = take(&limiter, "user-1", "rpm", 2).await.unwrap_err();
            assert!(error.is_unavailable(), "{lost}, {fault:?}: {error}");
            // The other levels are given back while this one is still unconfirmed.
            tokio::time::sleep(secs(2)).await;
            for (level, entity) in ["user-1", "team", "org"].into_iter().enumerate() {
                if entity != lost {
                    let consumed = stage.bucket(entity).await.unwrap().consumed("rpm");
                    assert_eq!(consumed, 1_000, "level {level} without {lost}, {fault:?}");
                }
            }
            stage.wire.heal();
            let report = limiter.shutdown().await;
            assert_eq!(report.unwritten_total, 0, "{lost}, {fault:?}");
            let consumed = stage.bucket(lost).await.unwrap().consumed("rpm");
            assert_eq!(consumed, 1_000, "{lost}, {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hop_without_cascade_ends_the_chain() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    let loner = NewEntity::new("loner").parent("team");
    limiter.repository().create_entity(loner).await.unwrap();
    take(&limiter, "loner", "rpm", 3).await.unwrap();
    assert_eq!(levels(&limiter).await, [10, 15, 100]);
}

#[tokio::test(start_paused = true)]
async fn a_parent_without_limits_is_named() {
    let stage = Stage::new();
    let limiter = stage.limiter(&[]).await;
    create(&limiter, NewEntity::new("org")).await;
    create(&limiter, child("user-1", "org")).await;
    set_limits(&limiter, "user-1", &["rpm:10"]).await;
    let error = take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
    assert!(
        matches!(&error, Error::NotFound(NotFound::Limits { entity, .. }) if entity.as_str() == "org"),
        "{error}"
    );
    assert!(stage.bucket("user-1").await.is_none(), "nothing half done");
}

#[tokio::test(start_paused = true)]
async fn a_level_that_cannot_be_reached_gives_the_others_back() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    // One of the three writes is refused permanently.
    stage.wire.plan("UpdateItem", [Fault::Denied]);
    let error = take(&limiter, "user-1", "rpm", 1).await.unwrap_err();
    assert!(matches!(error, Error::PermissionDenied { .. }), "{error}");
    limiter.settled().await;
    assert_eq!(levels(&limiter).await, [9, 14, 99]);
}

#[tokio::test(start_paused = true)]
async fn more_of_a_lease_is_taken_at_every_level_or_none() {
    let stage = Stage::new();
    let limiter = chain(&stage).await;
    take(&limiter, "user-2", "rpm", 8).await.unwrap();
    let mut lease = lease(&limiter, "user-1", "rpm", 3).await.unwrap();
    lease.consume("rpm", 2).await.unwrap();
    let refused = exceeded(lease.consume("rpm", 3).await.unwrap_err());
    let violated: Vec<_> = refused.refused_limits().map(|one| one.entity.as_str()).collect();
    assert_eq!(violated, ["team"]);
    assert_eq!(lease.consumed().values().copied().collect::<Vec<_>>(), [5]);
    lease.commit().await.unwrap();
    limiter.settled().await;
    assert_eq!(levels(&limiter).await, [5, 2, 87]);
}
