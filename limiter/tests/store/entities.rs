//! Entities: created, found, changed, listed, deleted.

use std::collections::BTreeSet;

use zae_limiter::audit::{AuditAction, AuditSubject};
use zae_limiter::{EntityChange, Error, NewEntity};
use zae_limiter_schema::{AttributeValue, EntityId, Item};

use crate::support::{Stage, all_pages, page, rpm};

on_every_store! {
    a_created_entity_is_found_with_all_that_was_said_about_it,
    an_entity_is_created_once,
    of_many_who_create_the_same_entity_one_succeeds,
    an_update_changes_what_it_mentions_and_nothing_else,
    an_entity_that_is_not_there_is_not_found,
    children_come_in_full_pages_in_order,
    every_entity_is_listed_once,
    deleting_removes_every_record_and_keeps_counts_and_audit,
    a_parent_is_not_deleted_before_its_children,
    bad_names_are_refused_before_anything_is_written,
}

mod at_a_moment {
    use super::an_entity_tells_when_it_was_created;

    on_stores_without_a_clock! { an_entity_tells_when_it_was_created }
}

async fn an_entity_tells_when_it_was_created(stage: Stage) {
    let repository = stage.repository().await;
    let created = repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    assert_eq!(created.created_at.to_string(), "2099-01-31T12:00:00Z");
}

async fn a_created_entity_is_found_with_all_that_was_said_about_it(stage: Stage) {
    stage.clock.advance(std::time::Duration::from_millis(123));
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    let created = repository
        .create_entity(
            NewEntity::new("key-1")
                .parent("acme")
                .cascade(true)
                .name("Build server")
                .metadata([
                    ("tier", serde_json::json!("gold")),
                    ("seats", serde_json::json!(12)),
                    ("regions", serde_json::json!(["eu", { "code": null }])),
                ]),
        )
        .await
        .unwrap();
    let found = repository.get_entity("key-1").await.unwrap().unwrap();
    assert_eq!(found, created);
    assert_eq!((found.name.as_str(), found.cascade), ("Build server", true));
    assert_eq!(found.parent.unwrap().as_str(), "acme");
    assert_eq!(found.metadata["seats"], AttributeValue::N("12".to_owned()));
}

async fn an_entity_is_created_once(stage: Stage) {
    let repository = stage.repository().await;
    repository
        .create_entity(NewEntity::new("user-1").name("first"))
        .await
        .unwrap();
    let again = repository
        .create_entity(NewEntity::new("user-1").name("second"))
        .await;
    assert!(matches!(again, Err(Error::EntityExists { entity }) if entity.as_str() == "user-1"));
    assert_eq!(
        repository.get_entity("user-1").await.unwrap().unwrap().name,
        "first"
    );
    let events = repository
        .audit_events(&AuditSubject::Entity("user-1".parse().unwrap()), &page(10))
        .await
        .unwrap();
    assert_eq!(events.items.len(), 1, "a refused change leaves no event");
}

async fn of_many_who_create_the_same_entity_one_succeeds(stage: Stage) {
    let repository = stage.repository().await;
    let creators: Vec<_> = (0..8)
        .map(|number| {
            let repository = repository.clone();
            tokio::spawn(async move {
                repository
                    .create_entity(NewEntity::new("user-1").name(format!("creator {number}")))
                    .await
            })
        })
        .collect();
    let mut winners = vec![];
    for creator in creators {
        match creator.await.unwrap() {
            Ok(record) => winners.push(record),
            Err(error) => assert!(matches!(error, Error::EntityExists { .. }), "{error}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(
        repository.get_entity("user-1").await.unwrap().as_ref(),
        winners.first()
    );
}

async fn an_update_changes_what_it_mentions_and_nothing_else(stage: Stage) {
    let repository = stage.repository().await;
    for id in ["acme", "globex"] {
        repository.create_entity(NewEntity::new(id)).await.unwrap();
    }
    let key = NewEntity::new("key-1")
        .parent("acme")
        .cascade(true)
        .metadata([("tier", "gold")]);
    let created = repository.create_entity(key).await.unwrap();

    let renamed = repository
        .update_entity("key-1", EntityChange::new().name("New name"))
        .await
        .unwrap();
    assert_eq!(renamed.name, "New name");
    assert_eq!(
        (&renamed.parent, renamed.cascade, &renamed.metadata),
        (&created.parent, true, &created.metadata)
    );

    let moved = repository
        .update_entity("key-1", EntityChange::new().parent("globex").cascade(false))
        .await
        .unwrap();
    assert_eq!(repository.get_entity("key-1").await.unwrap().unwrap(), moved);
    assert!(
        repository
            .children("acme", &page(10))
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(
        repository.children("globex", &page(10)).await.unwrap().items,
        [moved]
    );

    let change = EntityChange::new()
        .without_parent()
        .metadata([("tier", "silver")]);
    let freed = repository.update_entity("key-1", change).await.unwrap();
    assert_eq!(freed.parent, None);
    assert_eq!(repository.get_entity("key-1").await.unwrap().unwrap(), freed);
    assert!(
        repository
            .children("globex", &page(10))
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(freed.metadata["tier"], AttributeValue::S("silver".to_owned()));

    let events = repository
        .audit_events(&AuditSubject::Entity(freed.id), &page(10))
        .await
        .unwrap()
        .items;
    let told: Vec<Vec<&str>> = events
        .iter()
        .map(|e| e.details.keys().map(String::as_str).collect())
        .collect();
    assert_eq!(
        told,
        [
            vec!["metadata", "parent_id"],
            vec!["cascade", "parent_id"],
            vec!["name"],
            vec!["cascade", "metadata", "name", "parent_id"],
        ]
    );
}

async fn an_entity_that_is_not_there_is_not_found(stage: Stage) {
    let repository = stage.repository().await;
    assert_eq!(repository.get_entity("nobody").await.unwrap(), None);
    let update = repository
        .update_entity("nobody", EntityChange::new().name("x"))
        .await;
    assert!(matches!(update, Err(Error::EntityNotFound { .. })));
    assert!(matches!(
        repository.delete_entity("nobody").await,
        Err(Error::EntityNotFound { .. })
    ));
    assert!(
        repository
            .children("nobody", &page(10))
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

async fn children_come_in_full_pages_in_order(stage: Stage) {
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    for number in (0..25).rev() {
        repository
            .create_entity(NewEntity::new(format!("key-{number:02}")).parent("acme"))
            .await
            .unwrap();
    }
    let (children, sizes) = all_pages(10, |request| {
        let repository = repository.clone();
        async move { repository.children("acme", &request).await }
    })
    .await;
    let expected: Vec<String> = (0..25).map(|number| format!("key-{number:02}")).collect();
    assert_eq!(
        children
            .iter()
            .map(|child| child.id.to_string())
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!(sizes, [10, 10, 5]);
}

async fn every_entity_is_listed_once(stage: Stage) {
    let repository = stage.repository().await;
    let ids: BTreeSet<String> = (0..12).map(|number| format!("user-{number}")).collect();
    for id in &ids {
        repository.create_entity(NewEntity::new(id)).await.unwrap();
        repository.set_limits(id, "gpt-4", [rpm(10)]).await.unwrap();
    }
    let (entities, sizes) = all_pages(5, |request| {
        let repository = repository.clone();
        async move { repository.list_entities(&request).await }
    })
    .await;
    assert_eq!(sizes, [5, 5, 2]);
    assert_eq!(
        entities
            .iter()
            .map(|entity| entity.id.to_string())
            .collect::<BTreeSet<_>>(),
        ids
    );
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
        .put((0..60).map(|number| crate::usage::hour(&id, "gpt-4", number, 1)))
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
    assert_eq!(
        repository.list_resources_with_entity_configs().await.unwrap(),
        ["gpt-4"]
    );
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
            .usage_snapshots(&query, &page(10))
            .await
            .unwrap()
            .items
            .is_empty()
    );

    let events = repository
        .audit_events(&AuditSubject::Entity(id), &page(10))
        .await
        .unwrap()
        .items;
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
    assert!(matches!(refused, Err(Error::HasChildren { child, .. }) if child.as_str() == "key-1"));
    repository.delete_entity("key-1").await.unwrap();
    repository.delete_entity("acme").await.unwrap();
}

async fn bad_names_are_refused_before_anything_is_written(stage: Stage) {
    let repository = stage.repository().await;
    for id in ["", "user#1", "-user", "user 1", "user-1\n"] {
        assert!(
            matches!(
                repository.create_entity(NewEntity::new(id)).await,
                Err(Error::Name(_))
            ),
            "{id:?}"
        );
        assert!(
            matches!(
                repository.set_limits(id, "gpt-4", [rpm(1)]).await,
                Err(Error::Name(_))
            ),
            "{id:?}"
        );
        assert!(
            matches!(repository.delete_entity(id).await, Err(Error::Name(_))),
            "{id:?}"
        );
    }
    assert!(matches!(
        repository.create_entity(NewEntity::new("user-1").name(" ")).await,
        Err(Error::Invalid { .. })
    ));
    assert!(matches!(
        repository
            .create_entity(NewEntity::new("user-1").parent("a#b"))
            .await,
        Err(Error::Name(_))
    ));
    let notes = |value: serde_json::Value| NewEntity::new("user-1").metadata([("note", value)]);
    for value in [1e300.into(), "x".repeat(400_000).into()] {
        let refused = repository.create_entity(notes(value)).await;
        assert!(
            matches!(
                refused,
                Err(Error::Invalid {
                    field: "metadata",
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    assert!(
        repository
            .list_entities(&page(10))
            .await
            .unwrap()
            .items
            .is_empty()
    );
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
    assert!(
        repository
            .list_resources_with_entity_configs()
            .await
            .unwrap()
            .is_empty()
    );
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
    assert!(matches!(take(1).await, Err(Error::RateLimitExceeded(_))));
    assert_eq!(limiter.repository().delete_entity("user-1").await.unwrap(), 2);
    assert_eq!(stage.item("ENTITY#user-1", "#BUCKET#gpt-4").await, None);

    // Another process, which has never seen the bucket.
    let other = stage.builder().default_limits([rpm(10)]).await.unwrap();
    let lease = other.acquire("user-1", "gpt-4").consume("rpm", 10).await.unwrap();
    lease.commit().await.unwrap();
}
