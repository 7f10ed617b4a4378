//! Somebody else changes or deletes an entity while it is being deleted, or while it gets a child.

use zae_limiter::error::{Conflict, NotFound};
use zae_limiter::{ConfigLevel, Error, NewEntity, Repository};

use crate::store::support::{Stage, Weather, configured_resources, rpm};

/// A stage, a repository whose calls are overtaken, and one past the faults.
async fn overtaken() -> (Stage, Repository, Repository) {
    let stage = Stage::faulty(Weather::Fair);
    let (repository, other) = (stage.repository().await, stage.beside().await);
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    (stage, repository, other)
}

fn level(resource: &str) -> ConfigLevel {
    ConfigLevel::Entity("user-1".parse().unwrap(), resource.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_another_one_finished_counts_its_own_part() {
    let (stage, repository, other) = overtaken().await;
    repository.set_limits("user-1", "gpt-4", [rpm(1)]).await.unwrap();
    let id = "user-1".parse().unwrap();
    stage
        .put((0..3).map(|number| crate::store::usage::hour(&id, "gpt-4", number, 1)))
        .await;
    stage.faults().before("TransactWriteItems", async move {
        // The usage is deleted by now; configuration and entity are left.
        assert_eq!(other.delete_entity("user-1").await.unwrap(), 2);
    });
    assert_eq!(repository.delete_entity("user-1").await.unwrap(), 3);
    assert!(configured_resources(&repository).await.is_empty());
    assert!(matches!(
        repository.delete_entity("user-1").await,
        Err(Error::NotFound(NotFound::Entity { .. }))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_another_deleted_is_counted_once_in_the_registry() {
    let (stage, repository, other) = overtaken().await;
    // Five more than the last transaction holds.
    for number in 0..95 {
        let resource = format!("model-{number}");
        repository.set_limits("user-1", resource, [rpm(1)]).await.unwrap();
    }
    stage.faults().before("TransactWriteItems", async move {
        assert!(other.delete_config(&level("model-0")).await.unwrap());
    });
    assert_eq!(repository.delete_entity("user-1").await.unwrap(), 95);
    let registry = stage.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await.unwrap();
    assert_eq!(registry.len(), 2, "nothing but its key is left: {registry:?}");
}

#[tokio::test(start_paused = true)]
async fn an_entity_that_keeps_changing_is_not_deleted() {
    let (stage, repository, other) = overtaken().await;
    repository
        .set_limits("user-1", "model-0", [rpm(1)])
        .await
        .unwrap();
    for number in 0..20 {
        let other = other.clone();
        stage.faults().before("TransactWriteItems", async move {
            let next = format!("model-{}", number + 1);
            other.set_limits("user-1", next, [rpm(1)]).await.unwrap();
            let gone = level(&format!("model-{number}"));
            assert!(other.delete_config(&gone).await.unwrap());
        });
    }
    let lost = repository.delete_entity("user-1").await.unwrap_err();
    assert!(
        matches!(&lost, Error::Conflict(Conflict::Concurrent { what, .. }) if what == "entity user-1"),
        "{lost}"
    );
    assert!(other.get_entity("user-1").await.unwrap().is_some());
    assert_eq!(configured_resources(&other).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_entity_whose_parent_is_deleted_meanwhile_is_not_created() {
    let (stage, repository, other) = overtaken().await;
    stage.faults().before("TransactWriteItems", async move {
        other.delete_entity("user-1").await.unwrap();
    });
    let refused = repository
        .create_entity(NewEntity::new("key-1").parent("user-1"))
        .await;
    assert!(
        matches!(&refused, Err(Error::NotFound(NotFound::Parent { parent, .. })) if parent.as_str() == "user-1"),
        "{refused:?}"
    );
    assert_eq!(repository.get_entity("key-1").await.unwrap(), None);
}
