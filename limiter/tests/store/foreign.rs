//! Items that are none of ours, or broken: what cannot be read can be repaired, and hides nothing else.

use std::collections::HashMap;

use zae_limiter::error::Internal;
use zae_limiter::usage::CapacityScope;
use zae_limiter::{ConfigChange, ConfigLevel, Error, NewEntity, OnUnavailable, Repository};
use zae_limiter_schema::{AttributeValue, ConfigRecord, Item, LimitSet, keys};

use crate::store::capacity::{NOON, bucket};
use crate::store::support::{Stage, configured_resources, events_about, page, rpm, tpm};

on_every_store! {
    a_configuration_that_cannot_be_read_is_repaired_by_new_limits,
    a_configuration_that_cannot_be_read_can_be_deleted,
    a_retention_that_cannot_be_read_stops_no_change,
    a_version_that_cannot_count_up_starts_again,
    ids_that_are_none_of_ours_hide_nobody,
    buckets_that_cannot_be_read_do_not_stop_the_sum,
}

fn levels() -> [ConfigLevel; 4] {
    ConfigLevel::chain(&"user-1".parse().unwrap(), &"gpt-4".parse().unwrap())
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

/// A level whose limit has no burst, and whose policy is none.
async fn break_level(stage: &Stage, level: &ConfigLevel) {
    let mut item = ConfigRecord::new(level.clone(), LimitSet::new([rpm(5)]).unwrap())
        .to_item()
        .into_inner();
    item.remove("l_rpm_bx");
    item.insert("on_unavailable".to_owned(), text("perhaps"));
    item.insert("novelty".to_owned(), text("of others"));
    stage.put([Item::from(item)]).await;
}

/// A repository that has not seen the level, which was set and then broken.
async fn beside_broken(stage: &Stage, level: &ConfigLevel) -> Repository {
    let change = ConfigChange::new().limits([rpm(1)]);
    stage.repository().await.set_config(level, change).await.unwrap();
    break_level(stage, level).await;
    stage.repository().await
}

async fn a_configuration_that_cannot_be_read_is_repaired_by_new_limits(stage: Stage) {
    for level in levels() {
        let repository = beside_broken(&stage, &level).await;
        let unread = repository.get_config(&level).await.unwrap_err();
        assert!(
            matches!(unread, Error::Internal(Internal::Malformed(_))),
            "{level}: {unread}"
        );
        let policy = ConfigChange::new().on_unavailable(OnUnavailable::Allow);
        let refused = repository.set_config(&level, policy).await.unwrap_err();
        assert!(
            matches!(refused, Error::Internal(Internal::Malformed(_))),
            "{level}: {refused}"
        );

        let change = ConfigChange::new().limits([tpm(7)]);
        let set = repository.set_config(&level, change).await.unwrap();
        let read = repository.get_config(&level).await.unwrap().unwrap();
        assert_eq!(read, set, "{level}");
        assert_eq!(read.limits, LimitSet::new([tpm(7)]).unwrap());
        assert_eq!((read.on_unavailable, read.config_version), (None, 2));
        assert!(
            read.unknown.contains_key("novelty"),
            "attributes of others survive"
        );
        repository.delete_config(&level).await.unwrap();
    }
}

async fn a_configuration_that_cannot_be_read_can_be_deleted(stage: Stage) {
    for level in levels() {
        let repository = beside_broken(&stage, &level).await;
        assert!(repository.delete_config(&level).await.unwrap(), "{level}");
        let left = repository.get_config(&level).await.unwrap();
        assert!(
            left.is_none_or(|left| left.limits.is_empty() && left.on_unavailable.is_none()),
            "{level}"
        );
        assert!(!repository.delete_config(&level).await.unwrap(), "{level}");
    }
    let registered = configured_resources(&stage.repository().await).await;
    assert!(registered.is_empty(), "{registered:?}");
}

async fn a_retention_that_cannot_be_read_stops_no_change(stage: Stage) {
    stage.repository().await;
    let mut item = ConfigRecord::new(ConfigLevel::System, LimitSet::default())
        .to_item()
        .into_inner();
    item.insert("audit_retention_days".to_owned(), text("long"));
    stage.put([Item::from(item)]).await;
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    let events = events_about(&repository, "user-1").await;
    let kept = events[0].ttl.unwrap() - events[0].timestamp.seconds();
    assert_eq!(kept, 90 * 86_400, "as where nothing is stored");
}

async fn a_version_that_cannot_count_up_starts_again(stage: Stage) {
    let repository = stage.repository().await;
    for version in [text("many"), AttributeValue::N(u64::MAX.to_string())] {
        let mut item = ConfigRecord::new(ConfigLevel::System, LimitSet::default())
            .to_item()
            .into_inner();
        item.insert("config_version".to_owned(), version);
        stage.put([Item::from(item)]).await;
        let set = repository.set_system_defaults([rpm(1)]).await.unwrap();
        let read = repository
            .get_config(&ConfigLevel::System)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(read, set);
    }
}

async fn ids_that_are_none_of_ours_hide_nobody(stage: Stage) {
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    for id in ["user-1", "user-2"] {
        repository.set_limits(id, "gpt-4", [rpm(1)]).await.unwrap();
        repository
            .create_entity(NewEntity::new(id).parent("acme"))
            .await
            .unwrap();
    }
    // As the Python peer lets one call an entity.
    let config = [
        ("PK", "ENTITY#user 1"),
        ("SK", "#CONFIG#gpt-4"),
        ("entity_id", "user 1"),
        ("GSI3PK", &keys::gsi3_partition("gpt-4")),
        ("GSI3SK", "user 1"),
    ];
    let meta = [
        ("PK", "ENTITY#user 1"),
        ("SK", "#META"),
        ("entity_id", "user 1"),
        ("created_at", "2026-01-31T12:00:00Z"),
        ("GSI1PK", &keys::gsi1_parent_partition(&"acme".parse().unwrap())),
        ("GSI1SK", "CHILD#user 1"),
    ];
    let item = |attributes: &[(&str, &str)]| {
        let attributes = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), text(value)));
        Item::from(attributes.collect::<HashMap<_, _>>())
    };
    stage.put([item(&config), item(&meta)]).await;

    let resource = "gpt-4".parse().unwrap();
    let listed = repository
        .list_entities_with_custom_limits(Some(&resource), &page(10))
        .await
        .unwrap();
    assert_eq!(
        listed.items,
        ["user-1".parse().unwrap(), "user-2".parse().unwrap()]
    );
    let children = repository.list_children("acme", &page(10)).await.unwrap();
    assert_eq!(children.items.len(), 2);
    assert_eq!(repository.list_entities(&page(10)).await.unwrap().items.len(), 3);
}

async fn buckets_that_cannot_be_read_do_not_stop_the_sum(stage: Stage) {
    let repository = stage.repository().await;
    let broken = |id: &str, attribute: &str, value: AttributeValue| {
        let mut item = bucket(&id.parse().unwrap(), "gpt-4", 10_000, NOON).into_inner();
        item.insert(attribute.to_owned(), value);
        Item::from(item)
    };
    let mut meta = HashMap::from([("PK".to_owned(), text("ENTITY#user-3"))]);
    meta.insert("SK".to_owned(), text("#META"));
    stage
        .put([
            bucket(&"user-1".parse().unwrap(), "gpt-4", 20_000, NOON),
            broken("user-2", "b_rpm_tk", text("plenty")),
            broken("user-3", "novelty", text("whose entity cannot be read")),
            Item::from(meta),
        ])
        .await;
    for (scope, entities) in [(CapacityScope::Everyone, 2), (CapacityScope::RootsOnly, 1)] {
        let capacity = repository
            .get_resource_capacity("gpt-4", "rpm", scope)
            .await
            .unwrap();
        assert_eq!(capacity.entities.len(), entities, "{scope:?}");
    }
}
