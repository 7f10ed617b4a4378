//! What happens when the connection or the service fails.

use std::time::Duration;

use zae_limiter::error::Unavailable;
use zae_limiter::{ConfigLevel, Error, NewEntity, Repository};

use crate::store::support::{Fault, Stage, Weather, configured_resources, events_about, rpm};

/// A table behind a connection that fails when it is told to.
pub(crate) fn stage() -> Stage {
    Stage::faulty(Weather::Fair)
}

/// A repository that soon gives up.
async fn impatient(stage: &Stage) -> Repository {
    stage
        .builder()
        .admin_time_budget(Duration::from_millis(200))
        .build_repository()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_make_a_change_happen_twice() {
    let stage = stage();
    let repository = stage.repository().await;
    let lose = || {
        stage
            .faults()
            .plan("TransactWriteItems", [Fault::LostResponse, Fault::LostResponse]);
    };
    lose();
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    lose();
    let set = repository.set_limits("user-1", "gpt-4", [rpm(1)]).await.unwrap();
    assert_eq!(set.config_version, 1);
    let level = ConfigLevel::Entity("user-1".parse().unwrap(), "gpt-4".parse().unwrap());
    assert_eq!(
        repository
            .get_config(&level)
            .await
            .unwrap()
            .unwrap()
            .config_version,
        1
    );
    assert_eq!(
        stage.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await.unwrap()["gpt-4"]
            .as_n()
            .unwrap(),
        "1"
    );
    lose();
    assert!(repository.delete_config(&level).await.unwrap());
    lose();
    assert_eq!(repository.delete_entity("user-1").await.unwrap(), 1);
    let events = events_about(&repository, "user-1").await;
    assert_eq!(events.len(), 4, "one event a change");
}

#[tokio::test(start_paused = true)]
async fn throttling_conflicts_and_failures_are_waited_out() {
    for fault in [
        Fault::Throttled,
        Fault::ServerError,
        Fault::LostRequest,
        Fault::Conflict,
    ] {
        let stage = stage();
        let repository = stage.repository().await;
        stage.faults().plan("TransactWriteItems", [fault; 4]);
        repository.create_entity(NewEntity::new("user-1")).await.unwrap();
        let sent = stage
            .faults()
            .operations()
            .iter()
            .filter(|call| *call == "TransactWriteItems")
            .count();
        assert_eq!(sent, 5, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_lasts_is_unavailability_within_the_budget() {
    let stage = stage();
    let budget = Duration::from_millis(800);
    let repository = stage
        .builder()
        .admin_time_budget(budget)
        .time_budget(budget)
        .build_repository()
        .await
        .unwrap();
    for fault in [
        Fault::Throttled,
        Fault::ServerError,
        Fault::LostRequest,
        Fault::LostResponse,
    ] {
        for operation in ["GetItem", "BatchGetItem", "TransactWriteItems"] {
            stage.faults().plan(operation, [fault; 200]);
        }
        let started = tokio::time::Instant::now();
        let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap_err();
        assert!(
            matches!(&resolved, Error::Unavailable(Unavailable::NoResponse { within, .. }) if *within == budget),
            "{fault:?}: {resolved}"
        );
        assert!(started.elapsed() <= budget, "{fault:?}");
        assert!(
            repository
                .get_entity("user-1")
                .await
                .unwrap_err()
                .is_unavailable(),
            "{fault:?}"
        );
        stage.faults().heal();
    }
    assert_eq!(repository.get_entity("user-1").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_denied_permission_is_its_own_error_and_is_not_retried() {
    let stage = stage();
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    stage.faults().plan("TransactWriteItems", [Fault::Denied]);
    stage.faults().plan("BatchGetItem", [Fault::Denied]);
    stage.faults().operations();
    let denied = repository
        .create_entity(NewEntity::new("user-1"))
        .await
        .unwrap_err();
    assert!(
        matches!(
            denied,
            Error::PermissionDenied {
                operation: "TransactWriteItems",
                ..
            }
        ),
        "{denied}"
    );
    assert!(
        denied.to_string().contains("policy"),
        "it says what to do: {denied}"
    );
    let denied = repository.resolve_limits("user-1", "gpt-4").await.unwrap_err();
    assert!(
        matches!(
            denied,
            Error::PermissionDenied {
                operation: "BatchGetItem",
                ..
            }
        ) && !denied.is_unavailable()
    );
    assert_eq!(
        stage.faults().operations(),
        ["Query", "TransactWriteItems", "BatchGetItem"]
    );
}

#[tokio::test(start_paused = true)]
async fn unprocessed_keys_are_asked_for_again_and_never_taken_for_absent() {
    let stage = stage();
    let repository = stage.repository().await;
    repository.set_limits("user-1", "gpt-4", [rpm(5)]).await.unwrap();
    repository.set_system_defaults([rpm(1)]).await.unwrap();
    for _ in 0..20 {
        repository.invalidate_config_cache();
        stage.faults().plan("BatchGetItem", [Fault::HalfProcessed; 3]);
        let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
        assert_eq!(resolved.limits.iter().next(), Some(&rpm(5)));
        stage.faults().heal();
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_stay_unprocessed_are_unavailability_and_leave_nothing_in_the_cache() {
    let stage = stage();
    let repository = stage
        .builder()
        .time_budget(Duration::from_millis(300))
        .build_repository()
        .await
        .unwrap();
    repository.set_limits("user-1", "gpt-4", [rpm(5)]).await.unwrap();
    let outage = [Fault::HalfProcessed; 2]
        .into_iter()
        .chain([Fault::NothingProcessed; 500]);
    stage.faults().plan("BatchGetItem", outage);
    assert!(
        repository
            .resolve_limits("user-1", "gpt-4")
            .await
            .unwrap_err()
            .is_unavailable()
    );
    assert_eq!(repository.cache_stats().entries, 0);
    stage.faults().heal();
    assert_eq!(
        repository
            .resolve_limits("user-1", "gpt-4")
            .await
            .unwrap()
            .limits
            .len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_and_its_event_happen_together_or_not_at_all() {
    let stage = stage();
    let repository = impatient(&stage).await;
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    stage
        .faults()
        .plan("TransactWriteItems", [Fault::LostRequest; 100]);
    assert!(
        repository
            .set_limits("user-1", "gpt-4", [rpm(1)])
            .await
            .unwrap_err()
            .is_unavailable()
    );
    assert_eq!(events_about(&repository, "user-1").await.len(), 1);
    assert!(stage.item("ENTITY#user-1", "#CONFIG#gpt-4").await.is_none());
    assert!(configured_resources(&repository).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_may_have_happened_is_looked_for_at_once() {
    let stage = stage();
    let repository = impatient(&stage).await;
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    repository.set_limits("user-1", "gpt-4", [rpm(1)]).await.unwrap();
    let applied = async || {
        let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
        let capacity = resolved.limits.iter().next().map(|limit| limit.capacity().get());
        (capacity, resolved.cascade, resolved.entity_exists)
    };
    let lose = || {
        stage
            .faults()
            .plan("TransactWriteItems", [Fault::LostResponse; 100]);
    };
    assert_eq!(applied().await, (Some(1), false, true));

    lose();
    repository
        .set_limits("user-1", "gpt-4", [rpm(2)])
        .await
        .unwrap_err();
    assert_eq!(applied().await, (Some(2), false, true));
    let change = zae_limiter::EntityChange::new().parent("acme").cascade(true);
    repository.update_entity("user-1", change).await.unwrap_err();
    assert_eq!(applied().await, (Some(2), true, true));
    let level = ConfigLevel::Entity("user-1".parse().unwrap(), "gpt-4".parse().unwrap());
    repository.delete_config(&level).await.unwrap_err();
    assert_eq!(applied().await, (None, true, true));
    repository.delete_entity("user-1").await.unwrap_err();
    assert_eq!(applied().await, (None, false, false));
    repository
        .create_entity(NewEntity::new("user-1"))
        .await
        .unwrap_err();
    assert_eq!(applied().await, (None, false, true));
}

#[tokio::test(start_paused = true)]
async fn a_table_whose_making_was_answered_by_nobody_lets_items_expire_too() {
    let stage = stage();
    stage.faults().plan("CreateTable", [Fault::LostResponse]);
    stage.repository().await;
    let calls = stage.faults().operations();
    assert!(calls.iter().any(|call| call == "UpdateTimeToLive"), "{calls:?}");
    let client = stage.client().await;
    let described = client
        .describe_time_to_live()
        .table_name(&stage.name)
        .send()
        .await
        .unwrap();
    let ttl = described.time_to_live_description.unwrap();
    assert_eq!(ttl.attribute_name.as_deref(), Some("ttl"));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_stopped_can_be_run_again() {
    let stage = stage();
    let repository = impatient(&stage).await;
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    repository.set_limits("user-1", "gpt-4", [rpm(1)]).await.unwrap();
    let id = "user-1".parse().unwrap();
    stage
        .put((0..40).map(|number| crate::store::usage::hour(&id, "gpt-4", number, 1)))
        .await;
    stage
        .faults()
        .plan("TransactWriteItems", [Fault::ServerError; 100]);
    assert!(
        repository
            .delete_entity("user-1")
            .await
            .unwrap_err()
            .is_unavailable()
    );
    assert!(repository.get_entity("user-1").await.unwrap().is_some());
    stage.faults().heal();
    stage.faults().plan("BatchWriteItem", [Fault::HalfProcessed; 2]);
    assert_eq!(repository.delete_entity("user-1").await.unwrap(), 2, "the rest");
    assert!(configured_resources(&repository).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_bad_weather_of_the_other_tests_is_bad() {
    let stage = Stage::faulty(Weather::Storm);
    let repository = stage.repository().await;
    stage.faults().operations();
    for number in 0..20 {
        repository
            .create_entity(NewEntity::new(format!("user-{number}")))
            .await
            .unwrap();
    }
    let sent = stage
        .faults()
        .operations()
        .iter()
        .filter(|call| *call == "TransactWriteItems")
        .count();
    assert!(sent > 22, "only {sent} transactions for 20 changes");
}
