//! Limits that end by themselves.

use std::time::Duration;

use zae_limiter::error::Invalid;
use zae_limiter::{ConfigChange, ConfigLevel, Error, Limit, OnUnavailable, RateLimiter, Timestamp};
use zae_limiter_schema::{AttributeValue, ConfigRecord};

use crate::store::faults::stage;
use crate::store::support::{Fault, Stage, events_about, rpm, tpm};

on_every_store! {
    what_the_level_stored_survives_limits_that_end,
    setting_limits_ends_those_that_were_set_until_a_time,
    limits_that_end_can_be_ended_and_kept,
    an_end_that_has_passed_is_refused,
    a_client_that_does_not_know_them_has_the_limits_that_last,
}

fn level() -> ConfigLevel {
    ConfigLevel::Entity("user-1".parse().unwrap(), "gpt-4".parse().unwrap())
}

fn far() -> Timestamp {
    Timestamp::parse("2150-01-01T00:00:00Z").unwrap()
}

fn capacity(limits: &zae_limiter::LimitSet) -> u64 {
    limits.named("rpm").unwrap().capacity().get()
}

async fn what_the_level_stored_survives_limits_that_end(stage: Stage) {
    let repository = stage.repository().await;
    let change = ConfigChange::new()
        .limits([rpm(10), tpm(100)])
        .on_unavailable(OnUnavailable::Allow);
    repository.set_config(&level(), change).await.unwrap();
    let raise = repository
        .set_limits("user-1", "gpt-4", [rpm(50)])
        .until(far())
        .reason("launch");
    let stored = raise.await.unwrap();
    assert_eq!((stored.limits.len(), capacity(&stored.limits)), (2, 10));
    assert_eq!(stored.on_unavailable, Some(OnUnavailable::Allow));
    let temporary = stored.temporary.clone().unwrap();
    assert_eq!((capacity(&temporary.limits), temporary.until), (50, far()));
    assert_eq!(repository.get_config(&level()).await.unwrap(), Some(stored));
    assert_eq!(
        capacity(&repository.get_limits("user-1", "gpt-4").await.unwrap()),
        50
    );
    let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
    assert_eq!(
        (capacity(&resolved.limits), resolved.limits_until),
        (50, Some(far()))
    );

    // Another raise replaces the first; a change of something else leaves it.
    repository
        .set_limits("user-1", "gpt-4", [rpm(60)])
        .until(far())
        .await
        .unwrap();
    let change = ConfigChange::new().on_unavailable(OnUnavailable::Block);
    let stored = repository.set_config(&level(), change).await.unwrap();
    assert_eq!(capacity(&stored.temporary.unwrap().limits), 60);
    assert_eq!(capacity(&stored.limits), 10);

    let events = events_about(&repository, "user-1").await;
    let AttributeValue::M(details) = &events[2].details["temporary_limits"] else {
        panic!("{:?}", events[2].details);
    };
    assert_eq!(details["until"], AttributeValue::S(far().to_string()));
    assert_eq!(
        events[2].details["reason"],
        AttributeValue::S("launch".to_owned())
    );
}

async fn setting_limits_ends_those_that_were_set_until_a_time(stage: Stage) {
    let repository = stage.repository().await;
    repository
        .set_limits("user-1", "gpt-4", [rpm(50)])
        .until(far())
        .await
        .unwrap();
    let stored = repository.set_limits("user-1", "gpt-4", [rpm(5)]).await.unwrap();
    assert_eq!((capacity(&stored.limits), stored.temporary), (5, None));
    assert_eq!(
        capacity(&repository.get_limits("user-1", "gpt-4").await.unwrap()),
        5
    );
    assert!(repository.delete_limits("user-1", "gpt-4").await.unwrap());
    assert_eq!(repository.get_config(&level()).await.unwrap(), None);
}

async fn limits_that_end_can_be_ended_and_kept(stage: Stage) {
    let repository = stage.repository().await;
    repository.set_limits("user-1", "gpt-4", [rpm(10)]).await.unwrap();
    repository
        .set_limits("user-1", "gpt-4", [rpm(50)])
        .until(far())
        .await
        .unwrap();
    let change = ConfigChange::new().limits([rpm(20)]).keep_temporary_limits();
    let stored = repository.set_config(&level(), change).await.unwrap();
    assert_eq!(
        (
            capacity(&stored.limits),
            capacity(&stored.temporary.unwrap().limits)
        ),
        (20, 50)
    );
    let change = ConfigChange::new().without_temporary_limits();
    let stored = repository.set_config(&level(), change).await.unwrap();
    assert_eq!((capacity(&stored.limits), stored.temporary), (20, None));
}

async fn an_end_that_has_passed_is_refused(stage: Stage) {
    let repository = stage.repository().await;
    let past = Timestamp::parse("2020-01-01T00:00:00Z").unwrap();
    let refused = repository
        .set_limits("user-1", "gpt-4", [rpm(50)])
        .until(past)
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid(Invalid::Argument { field: "until", .. })),
        "{refused}"
    );
    let without_limits = ConfigChange::new()
        .on_unavailable(OnUnavailable::Allow)
        .until(far());
    let refused = repository.set_config(&level(), without_limits).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid(Invalid::Argument { field: "until", .. })),
        "{refused}"
    );
    assert_eq!(repository.get_config(&level()).await.unwrap(), None);
}

/// They are in an attribute of their own, which such a client leaves alone.
async fn a_client_that_does_not_know_them_has_the_limits_that_last(stage: Stage) {
    let repository = stage.repository().await;
    repository.set_limits("user-1", "gpt-4", [rpm(10)]).await.unwrap();
    repository
        .set_limits("user-1", "gpt-4", [rpm(50)])
        .until(far())
        .await
        .unwrap();
    let item = stage.item("ENTITY#user-1", "#CONFIG#gpt-4").await.unwrap();
    assert_eq!(item["l_rpm_cp"].as_n().unwrap(), "10");
    assert!(!item.contains_key("limits_format"), "it is not refused");
    let temporary = item["limits_until"].as_m().unwrap();
    assert_eq!(
        temporary["limits"].as_m().unwrap()["rpm"].as_s().unwrap(),
        "50/min"
    );
}

async fn take(limiter: &RateLimiter, tokens: u64) -> Result<(), Error> {
    limiter
        .acquire("user-1", "gpt-4")
        .consume("spend", tokens)
        .commit()
        .await
}

/// No process reads anything at that time: the table may be unavailable.
#[tokio::test(start_paused = true)]
async fn limits_end_on_every_process_without_a_request() {
    let stage = stage();
    let spend = |amount| Limit::quota("spend", amount, "year".parse().unwrap()).unwrap();
    let (one, two) = (stage.limiter().await, stage.limiter().await);
    let end: Timestamp = Timestamp::parse("2099-01-31T12:00:30Z").unwrap();
    one.repository()
        .set_limits("user-1", "gpt-4", [spend(10)])
        .await
        .unwrap();
    one.repository()
        .set_limits("user-1", "gpt-4", [spend(100)])
        .until(end)
        .await
        .unwrap();
    take(&one, 40).await.unwrap();
    take(&two, 40).await.unwrap();
    let limits = |limiter: &RateLimiter| {
        let repository = limiter.repository().clone();
        async move {
            let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
            (
                resolved.limits.named("spend").unwrap().capacity().get(),
                resolved.limits_until,
            )
        }
    };
    stage.clock.advance(Duration::from_millis(29_999));
    assert_eq!(limits(&two).await, (100, Some(end)));
    for operation in ["GetItem", "BatchGetItem"] {
        stage.faults().plan(operation, [Fault::LostRequest; 50]);
    }
    stage.clock.advance(Duration::from_millis(1));
    assert_eq!(limits(&one).await, (10, None));
    assert_eq!(limits(&two).await, (10, None), "caches do not outlive the end");
    stage.faults().heal();
    stage.clock.advance(Duration::from_secs(2));
    for limiter in [&one, &two] {
        assert!(matches!(take(limiter, 1).await, Err(Error::Refused(_))));
    }
}

#[tokio::test]
async fn without_limits_of_its_own_the_next_level_applies_again() {
    let stage = Stage::memory();
    let limiter = stage.limiter().await;
    let repository = limiter.repository();
    repository
        .set_resource_defaults("gpt-4", [rpm(10)])
        .await
        .unwrap();
    let end = Timestamp::parse("2099-01-31T12:10:00Z").unwrap();
    repository
        .set_limits("user-1", "gpt-4", [rpm(50)])
        .until(end)
        .await
        .unwrap();
    let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
    assert_eq!(
        (capacity(&resolved.limits), resolved.limits_from.unwrap().as_str()),
        (50, "entity")
    );
    stage.clock.advance(Duration::from_secs(600));
    let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
    assert_eq!(
        (capacity(&resolved.limits), resolved.limits_from.unwrap().as_str()),
        (10, "resource")
    );
    // What has ended leaves with the next change of limits.
    let stored: ConfigRecord = repository.set_limits("user-1", "gpt-4", [rpm(7)]).await.unwrap();
    assert_eq!(stored.temporary, None);
}
