//! Another parent while leases are held.

use zae_limiter::NewEntity;
use zae_limiter::audit::{AuditAction, AuditSubject};
use zae_limiter::{EntityChange, Error, PageRequest};

use crate::acquire::support::*;

const LIMITS: [&str; 3] = ["rpm:100", "spend:1000 per year", "parallel:3 at once for 60s"];

async fn held(stage: &Stage, entity: &str) -> Option<i64> {
    stage.bucket(entity).await?.number("c_parallel_n")
}

async fn used(stage: &Stage, entity: &str) -> Option<i64> {
    stage.bucket(entity).await?.number("q_spend_us")
}

#[tokio::test(start_paused = true)]
async fn leases_end_at_the_parents_where_they_took_and_new_calls_follow_the_new_parent() {
    let stage = Stage::new();
    let limiter = stage.limiter(&LIMITS).await;
    for entity in [
        NewEntity::new("team-1"),
        NewEntity::new("team-2"),
        child("user-1", "team-1"),
    ] {
        create(&limiter, entity).await;
    }
    let call = || {
        let call = limiter.acquire("user-1", GPT).consume("rpm", 1);
        call.consume("spend", 100).consume("parallel", 1)
    };
    let (mut one, two, three) = (
        call().await.unwrap(),
        call().await.unwrap(),
        call().await.unwrap(),
    );
    assert_eq!(
        (held(&stage, "team-1").await, used(&stage, "team-1").await),
        (Some(3_000), Some(300_000))
    );

    let moved = EntityChange::new().parent("team-2").reason("reorganization");
    limiter.repository().update_entity("user-1", moved).await.unwrap();
    one.adjust("spend", -60);
    one.commit().await.unwrap();
    two.rollback().await.unwrap();
    drop(three);
    limiter.settled().await;
    assert_eq!(
        (held(&stage, "team-1").await, used(&stage, "team-1").await),
        (Some(0), Some(40_000))
    );
    assert!(stage.bucket("team-2").await.is_none(), "nothing was taken there");

    let mut four = call().await.unwrap();
    assert_eq!(
        (held(&stage, "team-2").await, used(&stage, "team-2").await),
        (Some(1_000), Some(100_000))
    );
    // What a lease takes later is taken where calls are charged then, and comes back from there.
    limiter
        .repository()
        .set_parent("user-1", Some("team-1"))
        .await
        .unwrap();
    four.consume("spend", 5).await.unwrap();
    assert_eq!(used(&stage, "team-1").await, Some(45_000));
    four.rollback().await.unwrap();
    assert_eq!(
        (held(&stage, "team-2").await, used(&stage, "team-2").await),
        (Some(0), Some(0))
    );
    assert_eq!(used(&stage, "team-1").await, Some(40_000));

    let subject = AuditSubject::Entity("user-1".parse().unwrap());
    let events = limiter
        .repository()
        .list_audit_events(&subject, &PageRequest::new(10))
        .await
        .unwrap()
        .items;
    assert_eq!(
        (events.len(), &events[1].action),
        (3, &AuditAction::EntityUpdated)
    );
    assert_eq!(
        zae_limiter::records::to_json(&events[1].details["parent_id"]),
        "team-2"
    );
    assert_eq!(
        zae_limiter::records::to_json(&events[1].details["reason"]),
        "reorganization"
    );
}

#[tokio::test(start_paused = true)]
async fn another_process_follows_the_new_parent_within_a_minute() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:100"]).await;
    for entity in [
        NewEntity::new("team-1"),
        NewEntity::new("team-2"),
        child("user-1", "team-1"),
    ] {
        create(&limiter, entity).await;
    }
    let other = stage.builder_on(&stage.another_wire());
    let other = other.default_limits(limits(&["rpm:100"])).await.unwrap();
    take(&other, "user-1", "rpm", 1).await.unwrap();
    let lease = lease(&other, "user-1", "rpm", 10).await.unwrap();
    limiter
        .repository()
        .set_parent("user-1", Some("team-2"))
        .await
        .unwrap();
    advance(secs(60)).await;
    take(&other, "user-1", "rpm", 5).await.unwrap();
    assert_eq!(stage.bucket("team-2").await.unwrap().consumed("rpm"), 5_000);
    lease.rollback().await.unwrap();
    assert_eq!(stage.bucket("team-1").await.unwrap().consumed("rpm"), 1_000);
    assert_eq!(stage.bucket("team-2").await.unwrap().consumed("rpm"), 5_000);
}

#[tokio::test(start_paused = true)]
async fn without_a_parent_leases_still_end_at_the_old_one() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["rpm:100"]).await;
    for entity in [NewEntity::new("team-1"), child("user-1", "team-1")] {
        create(&limiter, entity).await;
    }
    let lease = lease(&limiter, "user-1", "rpm", 10).await.unwrap();
    limiter.repository().set_parent("user-1", None).await.unwrap();
    lease.rollback().await.unwrap();
    assert_eq!(stage.bucket("team-1").await.unwrap().consumed("rpm"), 0);
    take(&limiter, "user-1", "rpm", 1).await.unwrap();
    assert_eq!(stage.bucket("team-1").await.unwrap().consumed("rpm"), 0);
    let circle = limiter
        .repository()
        .set_parent("team-1", Some("team-1"))
        .await
        .unwrap_err();
    assert!(
        matches!(
            circle,
            Error::Conflict(zae_limiter::error::Conflict::ParentCycle { .. })
        ),
        "{circle}"
    );
}
