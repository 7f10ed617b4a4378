//! Several writers change one entity at the same time: nothing is lost, and the audit events tell what happened.

use std::sync::Arc;
use std::time::Duration;

use zae_limiter::audit::{AuditAction, AuditEvent};
use zae_limiter::error::Conflict;
use zae_limiter::records::EntityRecord;
use zae_limiter::{EntityChange, Error, ManualClock, NewEntity, Repository, Timestamp};
use zae_limiter_schema::{AttributeValue, Item, keys};

use crate::store::support::{Stage, Weather, events_about};

on_every_store! {
    six_updates_at_once_all_stay_and_the_events_tell_them_in_order,
    an_entity_without_a_version_is_changed_like_any_other,
}

async fn events(repository: &Repository, entity: &str) -> Vec<AuditEvent> {
    let mut events = events_about(repository, entity).await;
    events.reverse();
    events
}

/// The metadata after each event, oldest first.
fn told(events: &[AuditEvent]) -> Vec<&AttributeValue> {
    events
        .iter()
        .filter(|event| event.action == AuditAction::EntityUpdated)
        .map(|event| &event.details["metadata"])
        .collect()
}

fn sizes(told: &[&AttributeValue]) -> Vec<usize> {
    let size = |metadata: &&AttributeValue| match metadata {
        AttributeValue::M(entries) => entries.len(),
        other => panic!("metadata is a map: {other:?}"),
    };
    told.iter().map(size).collect()
}

fn stored(record: &EntityRecord) -> AttributeValue {
    AttributeValue::M(record.metadata.clone().into_iter().collect())
}

async fn six_updates_at_once_all_stay_and_the_events_tell_them_in_order(stage: Stage) {
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..6 {
        let repository = repository.clone();
        writers.spawn(async move {
            let change = EntityChange::new().metadata([(format!("key-{number}"), number)]);
            repository.update_entity("user-1", change).await
        });
    }
    while let Some(written) = writers.join_next().await {
        written.unwrap().unwrap();
    }
    let user = repository.get_entity("user-1").await.unwrap().unwrap();
    assert_eq!(user.metadata.len(), 6, "{:?}", user.metadata);
    assert_eq!(user.version, 7);

    let events = events(&repository, "user-1").await;
    let told = told(&events);
    assert_eq!(
        sizes(&told),
        [1, 2, 3, 4, 5, 6],
        "each event adds one entry to the one before"
    );
    assert_eq!(told.last(), Some(&&stored(&user)));
}

/// The record as the Python package writes it.
fn theirs(id: &str) -> Item {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let key = keys::entity_meta(&id.parse().unwrap());
    let attributes = [
        ("PK", text(&key.pk)),
        ("SK", text(&key.sk)),
        ("entity_id", text(id)),
        ("name", text("Theirs")),
        ("parent_id", AttributeValue::Null(true)),
        ("cascade", AttributeValue::Bool(false)),
        (
            "metadata",
            AttributeValue::M([("tier".to_owned(), text("gold"))].into()),
        ),
        ("created_at", text("2026-01-31T12:34:56Z")),
    ];
    attributes
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect::<std::collections::HashMap<_, _>>()
        .into()
}

async fn an_entity_without_a_version_is_changed_like_any_other(stage: Stage) {
    let repository = stage.repository().await;
    stage.put([theirs("user-1")]).await;
    assert_eq!(repository.get_entity("user-1").await.unwrap().unwrap().version, 0);
    let change = EntityChange::new().metadata([("seats", 3)]);
    let changed = repository.update_entity("user-1", change).await.unwrap();
    assert_eq!((changed.version, changed.name.as_str()), (1, "Theirs"));
    assert_eq!(changed.metadata.len(), 2);
    assert_eq!(repository.get_entity("user-1").await.unwrap().unwrap(), changed);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_another_field_meanwhile_is_merged() {
    let stage = Stage::faulty(Weather::Fair);
    let (repository, other) = (stage.repository().await, stage.beside().await);
    for id in ["acme", "user-1"] {
        repository.create_entity(NewEntity::new(id)).await.unwrap();
    }
    stage.faults().before("TransactWriteItems", async move {
        let change = EntityChange::new()
            .name("Theirs")
            .parent("acme")
            .metadata([("theirs", 1)]);
        other.update_entity("user-1", change).await.unwrap();
    });
    let change = EntityChange::new().cascade(true).metadata([("ours", 2)]);
    let merged = repository.update_entity("user-1", change).await.unwrap();
    assert_eq!(
        (merged.name.as_str(), merged.cascade, merged.version),
        ("Theirs", true, 3)
    );
    assert_eq!(merged.parent.as_ref().unwrap().as_str(), "acme");
    assert_eq!(merged.metadata.keys().collect::<Vec<_>>(), ["ours", "theirs"]);
    assert_eq!(repository.get_entity("user-1").await.unwrap().unwrap(), merged);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_same_field_meanwhile_is_contended_and_stays() {
    let stage = Stage::faulty(Weather::Fair);
    let (repository, other) = (stage.repository().await, stage.beside().await);
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    stage.faults().before("TransactWriteItems", async move {
        let change = EntityChange::new().metadata([("tier", "gold")]);
        other.update_entity("user-1", change).await.unwrap();
    });
    let change = EntityChange::new().metadata([("tier", "silver")]).name("Ours");
    let refused = repository.update_entity("user-1", change).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Conflict(Conflict::Concurrent { what }) if what == "the metadata entry \"tier\" of entity user-1"),
        "{refused}"
    );
    let user = repository.get_entity("user-1").await.unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.version), ("user-1", 2));
    assert_eq!(user.metadata["tier"], AttributeValue::S("gold".to_owned()));
    assert_eq!(
        events(&repository, "user-1").await.len(),
        2,
        "a refused change leaves no event"
    );
}

#[tokio::test(start_paused = true)]
async fn an_entity_that_was_deleted_and_created_anew_meanwhile_is_not_mixed_with_the_old_one() {
    let stage = Stage::faulty(Weather::Fair);
    let (repository, other) = (stage.repository().await, stage.beside().await);
    let old = NewEntity::new("user-1").metadata([("tier", "gold")]);
    repository.create_entity(old).await.unwrap();
    stage.faults().before("TransactWriteItems", async move {
        other.delete_entity("user-1").await.unwrap();
        // The same second, and the same version.
        let new = NewEntity::new("user-1").metadata([("plan", "new")]);
        other.create_entity(new).await.unwrap();
    });
    let change = EntityChange::new().metadata([("seats", 3)]);
    let changed = repository.update_entity("user-1", change).await.unwrap();
    assert_eq!(changed.metadata.keys().collect::<Vec<_>>(), ["plan", "seats"]);
}

#[tokio::test]
async fn events_sort_in_the_order_of_the_writes_whatever_the_clocks_say() {
    let stage = Stage::memory();
    let slow = Arc::new(ManualClock::at(Timestamp::parse("2099-01-31T11:55:00Z").unwrap()));
    let (fast, slow) = (
        stage.repository().await,
        stage.builder().clock(slow).build_repository().await.unwrap(),
    );
    fast.create_entity(NewEntity::new("user-1")).await.unwrap();
    for number in 0..6 {
        let repository = if number % 2 == 0 { &slow } else { &fast };
        let change = EntityChange::new().metadata([(format!("key-{number}"), number)]);
        repository.update_entity("user-1", change).await.unwrap();
        stage.clock.advance(Duration::from_millis(1));
    }
    let events = events(&fast, "user-1").await;
    let told = told(&events);
    assert_eq!(sizes(&told), [1, 2, 3, 4, 5, 6]);
    let user = fast.get_entity("user-1").await.unwrap().unwrap();
    assert_eq!(told.last(), Some(&&stored(&user)));
}
