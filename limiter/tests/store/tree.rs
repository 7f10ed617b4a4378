//! Parents: they exist, they end, and there are not too many.

use zae_limiter::error::{Conflict, NotFound};
use zae_limiter::{EntityChange, Error, MAX_PARENTS, NewEntity, Repository};

use crate::store::support::Stage;

on_every_store! {
    a_parent_must_exist,
    a_chain_of_parents_is_limited,
    a_move_that_would_make_the_tree_too_deep_is_refused,
    nobody_is_above_themselves,
    two_moves_at_once_cannot_close_a_circle,
}

async fn a_parent_must_exist(stage: Stage) {
    let repository = stage.repository().await;
    let orphan = repository
        .create_entity(NewEntity::new("key-1").parent("nobody"))
        .await;
    assert!(
        matches!(orphan, Err(Error::NotFound(NotFound::Parent { parent, .. })) if parent.as_str() == "nobody")
    );
    assert_eq!(repository.get_entity("key-1").await.unwrap(), None);
    repository.create_entity(NewEntity::new("key-1")).await.unwrap();
    let moved = repository
        .update_entity("key-1", EntityChange::new().parent("nobody"))
        .await;
    assert!(matches!(moved, Err(Error::NotFound(NotFound::Parent { .. }))));
}

/// Creates `prefix-0` and a chain of `below` descendants, each the child of the previous one.
async fn chain(repository: &Repository, prefix: &str, below: usize) {
    repository
        .create_entity(NewEntity::new(format!("{prefix}-0")))
        .await
        .unwrap();
    for level in 1..=below {
        let parent = format!("{prefix}-{}", level - 1);
        repository
            .create_entity(NewEntity::new(format!("{prefix}-{level}")).parent(parent))
            .await
            .unwrap();
    }
}

async fn a_chain_of_parents_is_limited(stage: Stage) {
    let repository = stage.repository().await;
    chain(&repository, "level", MAX_PARENTS).await;
    let too_deep = repository
        .create_entity(NewEntity::new("last").parent(format!("level-{MAX_PARENTS}")))
        .await;
    assert!(
        matches!(
            too_deep,
            Err(Error::Conflict(Conflict::TooManyParents {
                limit: MAX_PARENTS,
                ..
            }))
        ),
        "{too_deep:?}"
    );
}

async fn a_move_that_would_make_the_tree_too_deep_is_refused(stage: Stage) {
    let repository = stage.repository().await;
    chain(&repository, "a", 2).await;
    chain(&repository, "b", 2).await;
    let refused = repository
        .update_entity("b-0", EntityChange::new().parent("a-2"))
        .await;
    assert!(
        matches!(refused, Err(Error::Conflict(Conflict::TooManyParents { .. }))),
        "{refused:?}"
    );
    repository
        .update_entity("b-0", EntityChange::new().parent("a-1"))
        .await
        .unwrap();
    repository.create_entity(NewEntity::new("top")).await.unwrap();
    chain(&repository, "c", MAX_PARENTS).await;
    let refused = repository
        .update_entity("c-0", EntityChange::new().parent("top"))
        .await;
    assert!(
        matches!(refused, Err(Error::Conflict(Conflict::TooManyParents { .. }))),
        "{refused:?}"
    );
    repository
        .update_entity("c-1", EntityChange::new().parent("top"))
        .await
        .unwrap();
}

#[tokio::test]
async fn of_many_children_the_one_with_too_many_below_is_found() {
    let repository = Stage::memory().repository().await;
    for id in ["top", "wide"] {
        repository.create_entity(NewEntity::new(id)).await.unwrap();
    }
    for number in 0..50 {
        let child = NewEntity::new(format!("child-{number}")).parent("wide");
        repository.create_entity(child).await.unwrap();
    }
    let under_top = || EntityChange::new().parent("top");
    repository.update_entity("wide", under_top()).await.unwrap();
    repository
        .update_entity("wide", EntityChange::new().without_parent())
        .await
        .unwrap();
    let mut parent = "child-37".to_owned();
    for level in 2..=MAX_PARENTS {
        let id = format!("level-{level}");
        repository
            .create_entity(NewEntity::new(&id).parent(&parent))
            .await
            .unwrap();
        parent = id;
    }
    let refused = repository.update_entity("wide", under_top()).await;
    assert!(
        matches!(refused, Err(Error::Conflict(Conflict::TooManyParents { .. }))),
        "{refused:?}"
    );
}

async fn nobody_is_above_themselves(stage: Stage) {
    let repository = stage.repository().await;
    let own = repository
        .create_entity(NewEntity::new("a-0").parent("a-0"))
        .await;
    assert!(matches!(own, Err(Error::Conflict(Conflict::ParentCycle { .. }))));
    chain(&repository, "a", 2).await;
    for parent in ["a-0", "a-1", "a-2"] {
        let circle = repository
            .update_entity("a-0", EntityChange::new().parent(parent))
            .await;
        assert!(
            matches!(circle, Err(Error::Conflict(Conflict::ParentCycle { .. }))),
            "{parent}: {circle:?}"
        );
    }
}

async fn two_moves_at_once_cannot_close_a_circle(stage: Stage) {
    let repository = stage.repository().await;
    for id in ["a", "b"] {
        repository.create_entity(NewEntity::new(id)).await.unwrap();
    }
    let (one, other) = (repository.clone(), repository.clone());
    let (one, other) = tokio::join!(
        tokio::spawn(async move { one.update_entity("a", EntityChange::new().parent("b")).await }),
        tokio::spawn(async move { other.update_entity("b", EntityChange::new().parent("a")).await }),
    );
    let results = [one.unwrap(), other.unwrap()];
    assert_eq!(
        results.iter().filter(|result| result.is_ok()).count(),
        1,
        "{results:?}"
    );
    assert!(
        results
            .iter()
            .filter_map(|result| result.as_ref().err())
            .all(|e| matches!(e, Error::Conflict(Conflict::ParentCycle { .. })))
    );
}

/// Gives an entity a parent, as somebody else would who does not check it.
async fn put_below(stage: &Stage, repository: &Repository, id: &str, parent: &str) {
    let mut record = repository.get_entity(id).await.unwrap().unwrap();
    record.parent = Some(parent.parse().unwrap());
    stage.put([record.to_item()]).await;
}

#[tokio::test]
async fn a_circle_that_others_have_stored_is_not_followed_forever() {
    let stage = Stage::memory();
    let repository = stage.repository().await;
    for id in ["a", "b", "c"] {
        repository.create_entity(NewEntity::new(id)).await.unwrap();
    }
    put_below(&stage, &repository, "a", "b").await;
    put_below(&stage, &repository, "b", "a").await;
    let created = repository
        .create_entity(NewEntity::new("key-1").parent("a"))
        .await;
    let moved = repository
        .update_entity("c", EntityChange::new().parent("b"))
        .await;
    for refused in [created, moved] {
        assert!(
            matches!(refused, Err(Error::Conflict(Conflict::ParentCycle { .. }))),
            "{refused:?}"
        );
    }
    assert_eq!(repository.get_entity("key-1").await.unwrap(), None);
    assert_eq!(repository.get_entity("c").await.unwrap().unwrap().parent, None);
}

#[tokio::test]
async fn a_parent_whose_own_parent_is_gone_is_still_one() {
    let stage = Stage::memory();
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("team")).await.unwrap();
    put_below(&stage, &repository, "team", "nobody").await;
    let child = NewEntity::new("key-1").parent("team");
    assert!(repository.create_entity(child).await.unwrap().parent.is_some());
}
