//! What is left, and when there will be enough.

use std::time::Duration;

use zae_limiter::{Error, NewEntity};

use crate::capacity::{NOON, bucket};
use crate::support::Weather;
use crate::support::{Stage, rpm, tpm};

on_every_store! {
    an_unused_bucket_is_full,
    the_parent_counts_where_the_entity_cascades,
    a_new_configuration_is_seen_before_the_bucket_has_it,
    unknown_limits_and_missing_limits_are_errors,
}

mod at_a_moment {
    use super::what_came_back_since_the_last_refill_counts;

    on_stores_without_a_clock! { what_came_back_since_the_last_refill_counts }
}

async fn an_unused_bucket_is_full(stage: Stage) {
    let limiter = stage.limiter().await;
    let burst = rpm(60).with_burst(100).unwrap();
    limiter.set_system_defaults([burst, tpm(5)]).await.unwrap();
    let left = limiter.available("user-1", "gpt-4").await.unwrap();
    assert_eq!(left.into_values().collect::<Vec<_>>(), [100, 5]);
    let wait = limiter
        .time_until_available("user-1", "gpt-4", [("rpm", 100)])
        .await
        .unwrap();
    assert_eq!(wait, Some(Duration::ZERO));
    assert_eq!(
        limiter
            .time_until_available("user-1", "gpt-4", [("rpm", 101)])
            .await
            .unwrap(),
        None
    );
}

async fn what_came_back_since_the_last_refill_counts(stage: Stage) {
    let limiter = stage.limiter().await;
    limiter.set_system_defaults([rpm(60)]).await.unwrap();
    stage
        .put([bucket(&"user-1".parse().unwrap(), "gpt-4", -5_500, NOON - 2_000)])
        .await;
    let now = limiter.availability("user-1", "gpt-4").await.unwrap();
    assert_eq!(now.tokens()["rpm"], -4, "three and a half in debt");
    assert_eq!(
        now.time_until([("rpm", 1)]).unwrap(),
        Some(Duration::from_millis(4_500))
    );
    stage.clock.advance(Duration::from_millis(4_500));
    let wait = limiter
        .time_until_available("user-1", "gpt-4", [("rpm", 1)])
        .await
        .unwrap();
    assert_eq!(wait, Some(Duration::ZERO));
}

async fn the_parent_counts_where_the_entity_cascades(stage: Stage) {
    let limiter = stage.limiter().await;
    limiter.create_entity(NewEntity::new("acme")).await.unwrap();
    limiter
        .create_entity(NewEntity::new("key-1").parent("acme").cascade(true))
        .await
        .unwrap();
    limiter
        .create_entity(NewEntity::new("key-2").parent("acme"))
        .await
        .unwrap();
    limiter.set_system_defaults([rpm(60)]).await.unwrap();
    stage
        .put([bucket(&"acme".parse().unwrap(), "gpt-4", 10_000, NOON)])
        .await;
    let key = limiter.availability("key-1", "gpt-4").await.unwrap();
    assert_eq!(
        key.entities().map(ToString::to_string).collect::<Vec<_>>(),
        ["key-1", "acme"]
    );
    assert_eq!(key.tokens()["rpm"], 10);
    assert_eq!(
        key.time_until([("rpm", 12)]).unwrap(),
        Some(Duration::from_secs(2))
    );
    assert_eq!(limiter.available("key-2", "gpt-4").await.unwrap()["rpm"], 60);
}

async fn a_new_configuration_is_seen_before_the_bucket_has_it(stage: Stage) {
    let limiter = stage.limiter().await;
    stage
        .put([bucket(&"user-1".parse().unwrap(), "gpt-4", 50_000, NOON)])
        .await;
    limiter.set_system_defaults([rpm(20), tpm(7)]).await.unwrap();
    let left = limiter.available("user-1", "gpt-4").await.unwrap();
    assert_eq!(
        left.into_values().collect::<Vec<_>>(),
        [20, 7],
        "cut to the new burst; a new limit starts full"
    );
}

async fn unknown_limits_and_missing_limits_are_errors(stage: Stage) {
    let limiter = stage.limiter().await;
    assert!(matches!(
        limiter.available("user-1", "gpt-4").await,
        Err(Error::NoLimits { .. })
    ));
    limiter.set_system_defaults([rpm(60)]).await.unwrap();
    let unknown = limiter
        .time_until_available("user-1", "gpt-4", [("rpn", 1)])
        .await;
    assert!(
        matches!(
            unknown,
            Err(Error::Invalid {
                field: "limit name",
                ..
            })
        ),
        "{unknown:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_lets_nothing_come_back_early() {
    let stage = Stage::faulty(Weather::Fair);
    // An hour behind the clock of this machine.
    stage.faults().date("Sat, 31 Jan 2099 11:00:00 GMT");
    let limiter = stage.limiter().await;
    limiter.set_system_defaults([rpm(60)]).await.unwrap();
    let take = async |entity: &str| {
        let lease = limiter.acquire(entity, "gpt-4").consume("rpm", 60).await;
        lease.unwrap().commit().await.unwrap();
    };
    take("whose-answer-tells-the-time").await;
    take("user-1").await;
    assert_eq!(limiter.available("user-1", "gpt-4").await.unwrap()["rpm"], 0);
    let scope = zae_limiter::CapacityScope::Everyone;
    let capacity = limiter.resource_capacity("gpt-4", "rpm", scope).await.unwrap();
    let of_user = capacity
        .entities
        .iter()
        .find(|one| one.entity.as_str() == "user-1");
    assert_eq!(of_user.unwrap().available, 0);
}
