//! Entities: created, found, changed, listed.

use std::collections::BTreeSet;

use zae_limiter::error::{Conflict, Invalid, NotFound};
use zae_limiter::{EntityChange, EntitySearch, Error, NewEntity};
use zae_limiter_schema::AttributeValue;

use crate::store::support::{Stage, all_pages, events_about, page, rpm};

on_every_store! {
    a_created_entity_is_found_with_all_that_was_said_about_it,
    an_entity_is_created_once,
    of_many_who_create_the_same_entity_one_succeeds,
    an_update_changes_what_it_mentions_and_nothing_else,
    an_entity_that_is_not_there_is_not_found,
    children_come_in_full_pages_in_order,
    every_entity_is_listed_once,
    bad_names_are_refused_before_anything_is_written,
}

mod at_a_fixed_time {
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
    assert!(
        matches!(again, Err(Error::Conflict(Conflict::EntityExists { entity })) if entity.as_str() == "user-1")
    );
    assert_eq!(
        repository.get_entity("user-1").await.unwrap().unwrap().name,
        "first"
    );
    let events = events_about(&repository, "user-1").await;
    assert_eq!(events.len(), 1, "a refused change leaves no event");
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
            Err(error) => assert!(
                matches!(error, Error::Conflict(Conflict::EntityExists { .. })),
                "{error}"
            ),
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
            .list_children("acme", &page(10))
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(
        repository.list_children("globex", &page(10)).await.unwrap().items,
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
            .list_children("globex", &page(10))
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(freed.metadata["tier"], AttributeValue::S("silver".to_owned()));

    let events = events_about(&repository, freed.id.as_str()).await;
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
    assert!(matches!(update, Err(Error::NotFound(NotFound::Entity { .. }))));
    assert!(matches!(
        repository.delete_entity("nobody").await,
        Err(Error::NotFound(NotFound::Entity { .. }))
    ));
    assert!(
        repository
            .list_children("nobody", &page(10))
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
        async move { repository.list_children("acme", &request).await }
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

async fn bad_names_are_refused_before_anything_is_written(stage: Stage) {
    let repository = stage.repository().await;
    for id in ["", "user#1", "-user", "user 1", "user-1\n"] {
        assert!(
            matches!(
                repository.create_entity(NewEntity::new(id)).await,
                Err(Error::Invalid(Invalid::Name(_)))
            ),
            "{id:?}"
        );
        assert!(
            matches!(
                repository.set_limits(id, "gpt-4", [rpm(1)]).await,
                Err(Error::Invalid(Invalid::Name(_)))
            ),
            "{id:?}"
        );
        assert!(
            matches!(
                repository.delete_entity(id).await,
                Err(Error::Invalid(Invalid::Name(_)))
            ),
            "{id:?}"
        );
    }
    assert!(matches!(
        repository.create_entity(NewEntity::new("user-1").name(" ")).await,
        Err(Error::Invalid(Invalid::Argument { .. }))
    ));
    assert!(matches!(
        repository
            .create_entity(NewEntity::new("user-1").parent("a#b"))
            .await,
        Err(Error::Invalid(Invalid::Name(_)))
    ));
    let notes = |value: serde_json::Value| NewEntity::new("user-1").metadata([("note", value)]);
    for value in [1e300.into(), "x".repeat(400_000).into()] {
        let refused = repository.create_entity(notes(value)).await;
        assert!(
            matches!(
                refused,
                Err(Error::Invalid(Invalid::Argument {
                    field: "metadata",
                    ..
                }))
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
async fn a_change_of_nothing_is_refused_and_one_to_the_same_writes_nothing() {
    let stage = Stage::memory();
    let repository = stage.repository().await;
    let created = repository
        .create_entity(NewEntity::new("user-1").name("Ada"))
        .await
        .unwrap();
    let refused = repository.update_entity("user-1", EntityChange::new()).await;
    assert!(
        matches!(
            refused,
            Err(Error::Invalid(Invalid::Argument { field: "change", .. }))
        ),
        "{refused:?}"
    );
    let same = repository
        .update_entity("user-1", EntityChange::new().name("Ada"))
        .await
        .unwrap();
    assert_eq!(same, created);
    assert_eq!(events_about(&repository, "user-1").await.len(), 1);
    let long = "x".repeat(257);
    let refused = repository
        .create_entity(NewEntity::new("user-2").name(long))
        .await;
    assert!(
        matches!(
            refused,
            Err(Error::Invalid(Invalid::Argument { field: "name", .. }))
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_search_is_bounded_and_its_prefix_checked() {
    let stage = Stage::memory();
    let limiter = stage.builder().default_limits([rpm(10)]).await.unwrap();
    for id in ["team-a:1", "team-a:2", "team-b:1"] {
        let lease = limiter.acquire(id, "gpt-4").consume("rpm", 1).await;
        lease.unwrap().commit().await.unwrap();
    }
    let repository = limiter.repository();
    let on = |count: usize| {
        let resources = (4..4 + count).map(|number| format!("gpt-{number}").parse().unwrap());
        EntitySearch::on(resources)
    };
    let found = async |search: EntitySearch| {
        let ids = repository.search_entities(&search, 10).await?;
        Ok::<Vec<String>, Error>(ids.iter().map(ToString::to_string).collect())
    };
    let many = EntitySearch::MAX_RESOURCES;
    assert_eq!(
        found(on(many).prefix("team-a:")).await.unwrap(),
        ["team-a:1", "team-a:2"]
    );
    let after = "team-c".parse().unwrap();
    let none = found(on(1).prefix("team-a:").after(after)).await.unwrap();
    assert!(none.is_empty(), "{none:?}");
    let refused = found(on(many + 1)).await;
    assert!(
        matches!(refused, Err(Error::Invalid(Invalid::Argument { .. }))),
        "{refused:?}"
    );
    let refused = found(on(1).prefix("a#b")).await;
    assert!(
        matches!(refused, Err(Error::Invalid(Invalid::Name(_)))),
        "{refused:?}"
    );
}
