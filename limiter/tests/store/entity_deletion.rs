//! Entities that are deleted, with everything that belongs to them.

use zae_limiter::audit::AuditAction;
use zae_limiter::error::Conflict;
use zae_limiter::{Error, NewEntity};
use zae_limiter_schema::{AttributeValue, EntityId, Item};

use crate::store::support::{Stage, configured_resources, events_about, page, rpm};

on_every_store! {
    deleting_removes_every_record_and_keeps_counts_and_audit,
    a_parent_is_not_deleted_before_its_children,
}

/// A bucket as the Python peer writes it.
fn bucket(entity: &str, resource: &str) -> Item {
    let text = |text: String| AttributeValue::S(text);
    let mut attributes = std::collections::HashMap::from([
        ("PK".to_owned(), text(format!("ENTITY#{entity}"))),
        ("SK".to_owned(), text(format!("#BUCKET#{resource}"))),
        ("GSI2PK".to_owned(), text(format!("RESOURCE#{resource}"))),
        ("GSI2SK".to_owned(), text(format!("BUCKET#{entity}"))),
        ("entity_id".to_owned(), text(entity.to_owned())),
        ("resource".to_owned(), text(resource.to_owned())),
        ("cascade".to_owned(), AttributeValue::Bool(false)),
    ]);
    for (name, number) in [
        ("rf", "4073544000000"),
        ("b_rpm_tk", "4000"),
        ("b_rpm_cp", "10000"),
        ("b_rpm_bx", "10000"),
        ("b_rpm_ra", "10000"),
        ("b_rpm_rp", "60000"),
        ("b_rpm_tc", "6000"),
    ] {
        attributes.insert(name.to_owned(), AttributeValue::N(number.to_owned()));
    }
    Item::from(attributes)
}

async fn deleting_removes_every_record_and_keeps_counts_and_audit(stage: Stage) {
    let repository = stage.repository().await;
    for id in ["user-1", "user-2"] {
        repository.create_entity(NewEntity::new(id)).await.unwrap();
        repository.set_limits(id, "gpt-4", [rpm(10)]).await.unwrap();
    }
    repository.set_limits("user-1", "gpt-3", [rpm(20)]).await.unwrap();
    repository.set_default_limits("user-1", [rpm(30)]).await.unwrap();
    let id: EntityId = "user-1".parse().unwrap();
    stage
        .put((0..60).map(|number| crate::store::usage::hour(&id, "gpt-4", number, 1)))
        .await;
    stage
        .put([
            bucket("user-1", "gpt-4"),
            bucket("user-1", "gpt-3"),
            bucket("user-2", "gpt-4"),
        ])
        .await;

    assert_eq!(repository.delete_entity("user-1").await.unwrap(), 66);
    assert_eq!(repository.get_entity("user-1").await.unwrap(), None);
    for (entity, resource, left) in [
        ("user-1", "gpt-4", false),
        ("user-1", "gpt-3", false),
        ("user-2", "gpt-4", true),
    ] {
        let found = stage
            .item(&format!("ENTITY#{entity}"), &format!("#BUCKET#{resource}"))
            .await;
        assert_eq!(found.is_some(), left, "the bucket of {entity} on {resource}");
    }
    assert_eq!(configured_resources(&repository).await, ["gpt-4"]);
    let registry = stage.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await.unwrap();
    assert_eq!(registry["gpt-4"].as_n().unwrap(), "1");
    let left = repository
        .list_entities_with_custom_limits(Some(&"gpt-4".parse().unwrap()), &page(10))
        .await
        .unwrap();
    assert_eq!(left.items, ["user-2".parse().unwrap()]);
    let query = zae_limiter::usage::UsageQuery::of_entity("user-1").unwrap();
    assert!(
        repository
            .list_usage_snapshots(&query, &page(10))
            .await
            .unwrap()
            .items
            .is_empty()
    );

    let events = events_about(&repository, "user-1").await;
    assert_eq!(events[0].action, AuditAction::EntityDeleted);
    assert_eq!(
        events[0].details["records_deleted"],
        AttributeValue::N("66".to_owned())
    );
    assert_eq!(events.len(), 5, "the events about what was deleted stay");
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
}

async fn a_parent_is_not_deleted_before_its_children(stage: Stage) {
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    repository
        .create_entity(NewEntity::new("key-1").parent("acme"))
        .await
        .unwrap();
    let refused = repository.delete_entity("acme").await;
    assert!(
        matches!(refused, Err(Error::Conflict(Conflict::HasChildren { child, .. })) if child.as_str() == "key-1")
    );
    repository.delete_entity("key-1").await.unwrap();
    repository.delete_entity("acme").await.unwrap();
}

#[tokio::test]
async fn an_entity_with_more_configurations_than_a_transaction_holds_is_deleted_whole() {
    let stage = Stage::memory();
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    for number in 0..200 {
        repository
            .set_limits("user-1", format!("model-{number}"), [rpm(1)])
            .await
            .unwrap();
    }
    assert_eq!(repository.delete_entity("user-1").await.unwrap(), 201);
    assert!(configured_resources(&repository).await.is_empty());
    let registry = stage.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await.unwrap();
    assert_eq!(registry.len(), 2, "nothing but its key is left");
}

#[tokio::test]
async fn an_entity_that_was_deleted_starts_with_a_full_bucket() {
    let stage = Stage::memory();
    let limiter = stage.builder().default_limits([rpm(10)]).await.unwrap();
    limiter
        .repository()
        .create_entity(NewEntity::new("user-1"))
        .await
        .unwrap();
    let take = |tokens| limiter.acquire("user-1", "gpt-4").consume("rpm", tokens);
    take(10).await.unwrap().commit().await.unwrap();
    assert!(matches!(take(1).await, Err(Error::Refused(_))));
    assert_eq!(limiter.repository().delete_entity("user-1").await.unwrap(), 2);
    assert_eq!(stage.item("ENTITY#user-1", "#BUCKET#gpt-4").await, None);

    // Another process, which has never seen the bucket.
    let other = stage.builder().default_limits([rpm(10)]).await.unwrap();
    let lease = other.acquire("user-1", "gpt-4").consume("rpm", 10).await.unwrap();
    lease.commit().await.unwrap();
}
