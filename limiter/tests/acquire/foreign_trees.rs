//! Trees that only other programs can store: too deep, or circular.

use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::error::Conflict;
use zae_limiter::{EntityChange, Error, MAX_PARENTS, NewEntity, OnUnavailable, PageRequest, RateLimiter};

use crate::acquire::support::*;

/// An entity as the Python package stores it, which checks nothing.
async fn put_entity(stage: &Stage, id: &str, parent: Option<&str>, cascade: bool) {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let client = stage.client();
    let mut put = client
        .put_item()
        .table_name(TABLE)
        .item("PK", text(&format!("ENTITY#{id}")))
        .item("SK", text("#META"))
        .item("entity_id", text(id))
        .item("name", text(id))
        .item("cascade", AttributeValue::Bool(cascade))
        .item("metadata", AttributeValue::M([].into()))
        .item("created_at", text("2026-01-31T12:34:56Z"))
        .item("parent_id", parent.map_or(AttributeValue::Null(true), text));
    if let Some(parent) = parent {
        put = put
            .item("GSI1PK", text(&format!("PARENT#{parent}")))
            .item("GSI1SK", text(&format!("CHILD#{id}")));
    }
    put.send().await.unwrap();
}

/// A chain of cascading entities: `level-0` at the bottom, with the given number of parents.
async fn chain(stage: &Stage, parents: usize) -> RateLimiter {
    let limiter = limiter(stage).await;
    for level in 0..=parents {
        let parent = (level < parents).then(|| format!("level-{}", level + 1));
        put_entity(stage, &format!("level-{level}"), parent.as_deref(), true).await;
    }
    limiter
}

/// A limiter that lets calls pass where the table decides nothing.
async fn limiter(stage: &Stage) -> RateLimiter {
    let builder = stage.builder().default_limits(limits(&["rpm:10"]));
    builder.on_unavailable(OnUnavailable::Allow).await.unwrap()
}

/// What every way to ask for tokens says.
async fn refusals(limiter: &RateLimiter, entity: &str) -> Vec<Error> {
    let ask = || limiter.acquire(entity, GPT).consume("rpm", 1);
    vec![
        ask().await.unwrap_err(),
        ask()
            .wait_up_to(std::time::Duration::from_secs(1))
            .await
            .unwrap_err(),
        ask().peek().await.unwrap_err(),
    ]
}

async fn assert_nothing_charged(stage: &Stage, entities: &[&str]) {
    for entity in entities {
        assert!(stage.bucket(entity).await.is_none(), "{entity}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_most_parents_that_are_allowed_are_all_charged() {
    let stage = Stage::new();
    let limiter = chain(&stage, MAX_PARENTS).await;
    take(&limiter, "level-0", "rpm", 3).await.unwrap();
    for level in 0..=MAX_PARENTS {
        assert_eq!(available(&limiter, &format!("level-{level}"), "rpm").await, 7);
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_with_one_parent_too_many_is_refused_before_anything_is_charged() {
    let stage = Stage::new();
    let limiter = chain(&stage, MAX_PARENTS + 1).await;
    for refused in refusals(&limiter, "level-0").await {
        assert_eq!(
            refused.to_string(),
            "entity level-0 cannot have level-5 above it: at most 4 levels of parents are allowed"
        );
        assert!(!refused.is_unavailable());
    }
    assert_nothing_charged(&stage, &["level-0", "level-1", "level-5"]).await;
    // One level up there are four parents.
    take(&limiter, "level-1", "rpm", 1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_levels_that_cascade_count() {
    let stage = Stage::new();
    let limiter = chain(&stage, 9).await;
    put_entity(&stage, "level-2", Some("level-3"), false).await;
    take(&limiter, "level-0", "rpm", 3).await.unwrap();
    assert!(stage.bucket("level-2").await.is_some());
    assert_nothing_charged(&stage, &["level-3"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cycle_is_refused_before_anything_is_charged_and_can_be_repaired() {
    let stage = Stage::new();
    let limiter = limiter(&stage).await;
    put_entity(&stage, "user", Some("a"), true).await;
    put_entity(&stage, "a", Some("b"), true).await;
    put_entity(&stage, "b", Some("a"), true).await;
    put_entity(&stage, "self", Some("self"), true).await;
    for (entity, message) in [
        ("user", "entity a cannot have b above it: a is itself above b"),
        ("b", "entity b cannot have a above it: b is itself above a"),
        (
            "self",
            "entity self cannot have self above it: self is itself above self",
        ),
    ] {
        for refused in refusals(&limiter, entity).await {
            assert_eq!(refused.to_string(), message);
        }
    }
    assert_nothing_charged(&stage, &["user", "a", "b", "self"]).await;

    let repository = limiter.repository();
    let listed = repository.list_entities(&PageRequest::default()).await.unwrap();
    assert_eq!(listed.items.len(), 4);
    let children = repository
        .list_children("a", &PageRequest::default())
        .await
        .unwrap();
    let children: Vec<_> = children.items.iter().map(|child| child.id.as_str()).collect();
    assert_eq!(children, ["b", "user"]);
    let below = repository
        .create_entity(NewEntity::new("new").parent("user"))
        .await;
    assert!(
        matches!(below, Err(Error::Conflict(Conflict::ParentCycle { .. }))),
        "{below:?}"
    );
    let moved = repository
        .update_entity("self", EntityChange::new().parent("a"))
        .await;
    assert!(moved.is_err(), "{moved:?}");

    for broken in ["b", "self"] {
        let change = EntityChange::new().without_parent();
        repository.update_entity(broken, change).await.unwrap();
        take(&limiter, broken, "rpm", 1).await.unwrap();
    }
    take(&limiter, "user", "rpm", 1).await.unwrap();
    assert_eq!(available(&limiter, "b", "rpm").await, 8);
}
