//! Every change leaves an event.

use std::time::Duration;

use zae_limiter::audit::{AuditAction, AuditSubject};
use zae_limiter::{ConfigChange, ConfigLevel, NewEntity, OnUnavailable};
use zae_limiter_schema::AttributeValue;

use crate::store::support::{Stage, all_pages, events_about, page, rpm};

on_every_store! {
    every_change_leaves_one_event_with_the_peers_details,
    events_come_newest_first_in_full_pages,
    events_are_kept_as_long_as_the_system_says,
    the_principal_is_whoever_acts,
}

async fn every_change_leaves_one_event_with_the_peers_details(stage: Stage) {
    let repository = stage.repository().await;
    let change = ConfigChange::new()
        .limits([rpm(100)])
        .on_unavailable(OnUnavailable::Allow);
    repository.set_config(&ConfigLevel::System, change).await.unwrap();
    repository.delete_config(&ConfigLevel::System).await.unwrap();
    repository
        .set_resource_defaults("gpt-4", [rpm(10)])
        .await
        .unwrap();
    repository
        .delete_config(&ConfigLevel::Resource("gpt-4".parse().unwrap()))
        .await
        .unwrap();
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    repository.set_limits("user-1", "gpt-4", [rpm(1)]).await.unwrap();
    repository.set_default_limits("user-1", [rpm(2)]).await.unwrap();
    repository.delete_entity("user-1").await.unwrap();

    let told = async |subject: AuditSubject| {
        let events = repository
            .list_audit_events(&subject, &page(10))
            .await
            .unwrap()
            .items;
        events
            .iter()
            .map(|event| (event.action.to_string(), event.resource.clone()))
            .collect::<Vec<_>>()
    };
    let told_as = |action: &str, resource: Option<&str>| (action.to_owned(), resource.map(str::to_owned));
    assert_eq!(
        told(AuditSubject::System).await,
        [told_as("limits_deleted", None), told_as("limits_set", None)]
    );
    assert_eq!(
        told("$RESOURCE:gpt-4".parse().unwrap()).await,
        [
            told_as("limits_deleted", Some("gpt-4")),
            told_as("limits_set", Some("gpt-4")),
        ]
    );
    assert_eq!(
        told(AuditSubject::Entity("user-1".parse().unwrap())).await,
        [
            told_as("entity_deleted", None),
            told_as("limits_set", Some("_default_")),
            told_as("limits_set", Some("gpt-4")),
            told_as("entity_created", None),
        ]
    );

    let system = repository
        .list_audit_events(&AuditSubject::System, &page(10))
        .await
        .unwrap()
        .items;
    assert_eq!(
        system[0].details["limits"],
        AttributeValue::L(vec![AttributeValue::S("rpm".to_owned())])
    );
    assert_eq!(
        system[1].details["on_unavailable"],
        AttributeValue::S("allow".to_owned())
    );
    let AttributeValue::L(limits) = &system[1].details["limits"] else {
        panic!("limits are a list")
    };
    let AttributeValue::M(limit) = &limits[0] else {
        panic!("a limit is a map")
    };
    let mut names: Vec<&String> = limit.keys().collect();
    names.sort();
    assert_eq!(
        names,
        [
            "burst",
            "capacity",
            "name",
            "refill_amount",
            "refill_period_seconds"
        ]
    );
}

async fn events_come_newest_first_in_full_pages(stage: Stage) {
    let repository = stage.repository().await;
    for number in 1..=12 {
        repository
            .set_resource_defaults("gpt-4", [rpm(number)])
            .await
            .unwrap();
        // Several changes share a millisecond; they still come in order.
        stage.clock.advance(Duration::from_millis(number % 2));
    }
    let subject: AuditSubject = "$RESOURCE:gpt-4".parse().unwrap();
    let (events, sizes) = all_pages(5, |request| {
        let (repository, subject) = (repository.clone(), &subject);
        async move { repository.list_audit_events(subject, &request).await }
    })
    .await;
    assert_eq!(sizes, [5, 5, 2]);
    let capacities: Vec<String> = events
        .iter()
        .map(|event| format!("{:?}", event.details["limits"]))
        .collect();
    let expected: Vec<u64> = (1..=12).rev().collect();
    for (number, told) in expected.iter().zip(&capacities) {
        assert!(told.contains(&format!("N(\"{number}\")")), "{number}: {told}");
    }
    assert!(events.iter().all(|event| event.action == AuditAction::LimitsSet));
}

async fn events_are_kept_as_long_as_the_system_says(stage: Stage) {
    let repository = stage.repository().await;
    let days_kept = async |subject: &AuditSubject| {
        let event = repository
            .list_audit_events(subject, &page(1))
            .await
            .unwrap()
            .items
            .remove(0);
        (event.ttl.unwrap() - event.timestamp.seconds()) / 86_400
    };
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    assert_eq!(
        days_kept(&AuditSubject::Entity("user-1".parse().unwrap())).await,
        90
    );
    repository
        .set_config(&ConfigLevel::System, ConfigChange::new().audit_retention_days(7))
        .await
        .unwrap();
    repository.create_entity(NewEntity::new("user-2")).await.unwrap();
    assert_eq!(
        days_kept(&AuditSubject::Entity("user-2".parse().unwrap())).await,
        7
    );
}

async fn the_principal_is_whoever_acts(stage: Stage) {
    let repository = stage.repository().await;
    let principal = async |id: &str| events_about(&repository, id).await.remove(0).principal;
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    assert_eq!(principal("user-1").await.as_deref(), Some("tester"));
    let arn = "arn:aws:iam::123456789012:user/ops";
    repository
        .acting_as(arn)
        .unwrap()
        .create_entity(NewEntity::new("user-2"))
        .await
        .unwrap();
    assert_eq!(principal("user-2").await.as_deref(), Some(arn));
    assert!(repository.acting_as("no such name").is_err());
}

#[tokio::test]
async fn the_principal_is_the_callers_arn_if_none_is_given() {
    let stage = Stage::ministack();
    let repository = stage.anonymous().build_repository().await.unwrap();
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    let event = events_about(&repository, "user-1").await.remove(0);
    assert!(
        event.principal.as_deref().unwrap().starts_with("arn:aws:"),
        "{event:?}"
    );
}

#[tokio::test]
async fn a_caller_who_cannot_be_found_out_does_not_stop_a_change() {
    // This server knows DynamoDB only.
    let stage = Stage::http();
    let repository = stage.anonymous().build_repository().await.unwrap();
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    assert_eq!(events_about(&repository, "user-1").await[0].principal, None);
}
