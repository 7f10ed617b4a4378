//! Several writers at the same time.

use std::time::Duration;

use zae_limiter::error::Conflict;
use zae_limiter::{ConfigChange, ConfigLevel, EntityChange, Error, Limit, NewEntity};
use zae_limiter_schema::LimitSet;

use crate::store::support::Weather;
use crate::store::support::{Stage, page, rpm};

on_every_store! {
    registries_are_right_after_setting_and_deleting_at_once,
    an_entity_deleted_while_it_is_configured_leaves_registries_right,
    of_several_changes_of_what_was_seen_one_is_made,
}

fn level(entity: &str) -> ConfigLevel {
    ConfigLevel::Entity(entity.parse().unwrap(), "gpt-4".parse().unwrap())
}

fn limit(capacity: u64, refill: u64) -> Limit {
    Limit::custom("rpm", capacity, capacity, refill, 60).unwrap()
}

/// What the registries say is what is stored.
async fn assert_registries_are_right(stage: &Stage) {
    let repository = stage.repository().await;
    let resource = "gpt-4".parse().unwrap();
    let listed = repository
        .list_entities_with_custom_limits(Some(&resource), &page(100))
        .await
        .unwrap();
    let mut stored = 0;
    for entity in &listed.items {
        let level = ConfigLevel::Entity(entity.clone(), resource.clone());
        stored += u64::from(repository.get_config(&level).await.unwrap().is_some());
    }
    assert_eq!(stored, listed.items.len() as u64);
    let registry = stage.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await;
    let counted = registry.and_then(|item| item.get("gpt-4").cloned());
    let counted: u64 = counted.map_or(0, |count| count.as_n().unwrap().parse().unwrap());
    assert_eq!(counted, stored);
    let defaults = repository
        .get_config(&ConfigLevel::Resource(resource))
        .await
        .unwrap();
    let with_defaults = repository.list_resources_with_defaults().await.unwrap();
    assert_eq!(with_defaults.len(), usize::from(defaults.is_some()));
}

async fn of_several_changes_of_what_was_seen_one_is_made(stage: Stage) {
    let repository = stage.repository().await;
    let level = level("user-1");
    let change = |capacity| ConfigChange::new().limits([rpm(capacity)]);
    let seen = repository.set_config(&level, change(1)).await.unwrap();
    let set = async |capacity| {
        let set = repository.set_config_if_unchanged(&level, Some(&seen), change(capacity));
        set.await
            .map(|record| record.limits.iter().next().unwrap().capacity().get())
    };
    let delete = async || repository.delete_config_if_unchanged(&seen).await.map(|_| 0);
    let outcomes: [Result<u64, Error>; 4] = tokio::join!(set(2), set(3), delete(), set(4)).into();
    let made: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| outcome.as_ref().ok())
        .collect();
    assert_eq!(made.len(), 1, "{outcomes:?}");
    let refused = |outcome: &&Result<u64, Error>| {
        matches!(outcome, Err(Error::Conflict(Conflict::ConfigChanged { .. })))
    };
    assert_eq!(outcomes.iter().filter(refused).count(), 3, "{outcomes:?}");
    let stored = repository.get_config(&level).await.unwrap();
    let stored = stored.map_or(0, |record| record.limits.iter().next().unwrap().capacity().get());
    assert_eq!(stored, *made[0]);
    assert_registries_are_right(&stage).await;

    // Nothing was seen, and something is there.
    let other = self::level("user-2");
    repository
        .set_config_if_unchanged(&other, None, change(5))
        .await
        .unwrap();
    let refused = repository.set_config_if_unchanged(&other, None, change(6)).await;
    assert!(
        matches!(refused, Err(Error::Conflict(Conflict::ConfigChanged { .. }))),
        "{refused:?}"
    );
}

async fn registries_are_right_after_setting_and_deleting_at_once(stage: Stage) {
    let repository = stage.repository().await;
    let resource = ConfigLevel::Resource("gpt-4".parse().unwrap());
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..6_u64 {
        let (repository, resource) = (repository.clone(), resource.clone());
        writers.spawn(async move {
            for round in 0..2 {
                // Two writers share each entity's level, and all of them the resource's.
                for level in [level(&format!("user-{}", number / 2)), resource.clone()] {
                    let done = if (number + round) % 2 == 0 {
                        let change = ConfigChange::new().limits([rpm(number + 1)]);
                        repository.set_config(&level, change).await.map(drop)
                    } else {
                        repository.delete_config(&level).await.map(drop)
                    };
                    // Losing to other writers too often is a valid outcome too, as long as nothing is half done.
                    assert!(
                        matches!(done, Ok(()) | Err(Error::Conflict(Conflict::Concurrent { .. }))),
                        "{level}: {done:?}"
                    );
                }
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    assert_registries_are_right(&stage).await;
}

async fn an_entity_deleted_while_it_is_configured_leaves_registries_right(stage: Stage) {
    let repository = stage.repository().await;
    for _ in 0..3 {
        repository.create_entity(NewEntity::new("user-1")).await.unwrap();
        repository.set_limits("user-1", "gpt-4", [rpm(1)]).await.unwrap();
        let (one, other) = (repository.clone(), repository.clone());
        let deleting = tokio::spawn(async move { one.delete_entity("user-1").await });
        let setting = tokio::spawn(async move { other.set_limits("user-1", "gpt-4", [rpm(2)]).await });
        deleting.await.unwrap().unwrap();
        setting.await.unwrap().unwrap();
        assert_registries_are_right(&stage).await;
        repository.delete_config(&level("user-1")).await.unwrap();
        assert_registries_are_right(&stage).await;
        if repository.get_entity("user-1").await.unwrap().is_some() {
            repository.delete_entity("user-1").await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_level_that_was_deleted_and_set_anew_meanwhile_is_not_mixed_with_ours() {
    let stage = Stage::faulty(Weather::Fair);
    let (repository, other) = (stage.repository().await, stage.repository().await);
    let level = level("user-1");
    repository
        .set_limits("user-1", "gpt-4", [limit(10, 10)])
        .await
        .unwrap();
    let theirs = level.clone();
    stage.faults().before("TransactWriteItems", async move {
        other.delete_config(&theirs).await.unwrap();
        let again = other
            .set_limits("user-1", "gpt-4", [limit(500, 500)])
            .await
            .unwrap();
        assert_eq!(again.config_version, 1, "as before");
    });
    // Only the refill differs from what was there when the change began.
    let set = repository
        .set_limits("user-1", "gpt-4", [limit(10, 7)])
        .await
        .unwrap();
    assert_eq!(set.config_version, 2, "on top of theirs");
    let stored = repository.get_config(&level).await.unwrap().unwrap();
    assert_eq!(stored, set);
    assert_eq!(stored.limits, LimitSet::new([limit(10, 7)]).unwrap());
}

/// Somebody who changes the level again each time before a change of ours arrives.
fn overtake_forever(stage: &Stage, deeds: usize, other: &zae_limiter::Repository) {
    for number in 1..=deeds as u64 {
        let other = other.clone();
        stage.faults().before("TransactWriteItems", async move {
            other.set_limits("user-1", "gpt-4", [rpm(number)]).await.unwrap();
            let change = EntityChange::new().parent(format!("acme-{}", number % 2));
            other.update_entity("user-1", change).await.unwrap();
        });
    }
}

#[tokio::test(start_paused = true)]
async fn being_overtaken_each_time_is_an_error_that_says_so() {
    let stage = Stage::faulty(Weather::Fair);
    let repository = stage.repository().await;
    // Past the faults, so that what they do is not itself overtaken.
    let other = stage.beside().await;
    for id in ["acme-0", "acme-1", "user-1"] {
        repository.create_entity(NewEntity::new(id)).await.unwrap();
    }
    repository.set_limits("user-1", "gpt-4", [rpm(99)]).await.unwrap();
    overtake_forever(&stage, 20, &other);
    let lost = repository
        .set_limits("user-1", "gpt-4", [rpm(100)])
        .await
        .unwrap_err();
    assert!(
        matches!(&lost, Error::Conflict(Conflict::Concurrent { what, .. }) if what == "entity user-1 on gpt-4"),
        "{lost}"
    );
    assert!(
        lost.is_unavailable() && !lost.to_string().contains("no response"),
        "{lost}"
    );
    let lost = repository
        .update_entity("user-1", EntityChange::new().without_parent())
        .await
        .unwrap_err();
    assert!(
        matches!(&lost, Error::Conflict(Conflict::Concurrent { what, .. }) if what == "the parent of entity user-1"),
        "{lost}"
    );
}

#[tokio::test(start_paused = true)]
async fn all_attempts_of_a_change_share_one_time_budget() {
    const BUDGET: Duration = Duration::from_secs(2);
    let stage = Stage::faulty(Weather::Fair);
    let repository = stage
        .builder()
        .admin_time_budget(BUDGET)
        .build_repository()
        .await
        .unwrap();
    let other = stage.beside().await;
    repository.set_limits("user-1", "gpt-4", [rpm(99)]).await.unwrap();
    for number in 1..=20_u64 {
        let other = other.clone();
        stage.faults().before("TransactWriteItems", async move {
            other.set_limits("user-1", "gpt-4", [rpm(number)]).await.unwrap();
            // Slow, but each attempt by itself is within the budget.
            tokio::time::sleep(BUDGET / 4).await;
        });
    }
    let started = tokio::time::Instant::now();
    let lost = repository
        .set_limits("user-1", "gpt-4", [rpm(100)])
        .await
        .unwrap_err();
    assert!(lost.is_unavailable(), "{lost}");
    assert!(started.elapsed() <= BUDGET, "{:?}", started.elapsed());
}
