//! Which limits apply, and where they come from.

use std::time::Duration;

use zae_limiter::{ConfigChange, ConfigLevel, ConfigOrigin, EntityChange, NewEntity, OnUnavailable};
use zae_limiter_schema::{EntityId, LimitSet, Resource};

use crate::store::support::{Stage, rpm, tpm};

on_every_store! {
    the_most_specific_level_decides,
    each_level_decides_about_unavailability_by_itself,
    own_changes_are_seen_at_once_at_every_level,
    changes_of_others_are_seen_when_the_cache_expires,
    parent_and_cascade_come_with_the_limits,
}

async fn the_most_specific_level_decides(stage: Stage) {
    let repository = stage
        .builder()
        .default_limits([rpm(1)])
        .build_repository()
        .await
        .unwrap();
    let expect = async |capacity: u64, source: ConfigOrigin| {
        let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
        assert_eq!(resolved.limits, LimitSet::new([rpm(capacity)]).unwrap());
        assert_eq!(resolved.limits_from, Some(source));
    };
    expect(1, ConfigOrigin::Builder).await;
    repository.set_system_defaults([rpm(2)]).await.unwrap();
    expect(2, ConfigOrigin::System).await;
    repository.set_resource_defaults("gpt-4", [rpm(3)]).await.unwrap();
    expect(3, ConfigOrigin::Resource).await;
    repository.set_default_limits("user-1", [rpm(4)]).await.unwrap();
    expect(4, ConfigOrigin::EntityDefault).await;
    repository.set_limits("user-1", "gpt-4", [rpm(5)]).await.unwrap();
    expect(5, ConfigOrigin::Entity).await;

    let (user, gpt): (EntityId, Resource) = ("user-1".parse().unwrap(), "gpt-4".parse().unwrap());
    for (level, capacity, source) in [
        (
            ConfigLevel::Entity(user.clone(), gpt.clone()),
            4,
            ConfigOrigin::EntityDefault,
        ),
        (ConfigLevel::EntityDefault(user), 3, ConfigOrigin::Resource),
        (ConfigLevel::Resource(gpt), 2, ConfigOrigin::System),
        (ConfigLevel::System, 1, ConfigOrigin::Builder),
    ] {
        repository.delete_config(&level).await.unwrap();
        expect(capacity, source).await;
    }
}

async fn each_level_decides_about_unavailability_by_itself(stage: Stage) {
    let repository = stage.repository().await;
    let policy = async || {
        let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
        (resolved.on_unavailable, resolved.on_unavailable_from)
    };
    repository.set_limits("user-1", "gpt-4", [rpm(1)]).await.unwrap();
    assert_eq!(policy().await, (OnUnavailable::Block, ConfigOrigin::Builder));
    let allow = || ConfigChange::new().on_unavailable(OnUnavailable::Allow);
    let block = || ConfigChange::new().on_unavailable(OnUnavailable::Block);
    let (user, gpt): (EntityId, Resource) = ("user-1".parse().unwrap(), "gpt-4".parse().unwrap());
    repository
        .set_config(&ConfigLevel::System, allow())
        .await
        .unwrap();
    assert_eq!(policy().await, (OnUnavailable::Allow, ConfigOrigin::System));
    repository
        .set_config(&ConfigLevel::Resource(gpt.clone()), block())
        .await
        .unwrap();
    assert_eq!(policy().await, (OnUnavailable::Block, ConfigOrigin::Resource));
    repository
        .set_config(&ConfigLevel::EntityDefault(user.clone()), allow())
        .await
        .unwrap();
    assert_eq!(
        policy().await,
        (OnUnavailable::Allow, ConfigOrigin::EntityDefault)
    );
    repository
        .set_config(&ConfigLevel::Entity(user, gpt), block())
        .await
        .unwrap();
    assert_eq!(policy().await, (OnUnavailable::Block, ConfigOrigin::Entity));
    let limits = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
    assert_eq!(
        limits.limits_from,
        Some(ConfigOrigin::Entity),
        "a level that stores only a policy does not set limits"
    );
}

async fn own_changes_are_seen_at_once_at_every_level(stage: Stage) {
    let repository = stage.repository().await;
    let (user, gpt): (EntityId, Resource) = ("user-1".parse().unwrap(), "gpt-4".parse().unwrap());
    for (number, level) in (1..).zip(ConfigLevel::chain(&user, &gpt).into_iter().rev()) {
        repository.resolve_limits("user-1", "gpt-4").await.unwrap();
        repository
            .set_config(&level, ConfigChange::new().limits([tpm(number)]))
            .await
            .unwrap();
        let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
        assert_eq!(resolved.limits, LimitSet::new([tpm(number)]).unwrap(), "{level}");
    }
}

async fn changes_of_others_are_seen_when_the_cache_expires(stage: Stage) {
    let (ours, theirs) = (stage.repository().await, stage.repository().await);
    ours.set_resource_defaults("gpt-4", [rpm(1)]).await.unwrap();
    ours.resolve_limits("user-1", "gpt-4").await.unwrap();
    theirs.set_resource_defaults("gpt-4", [rpm(2)]).await.unwrap();
    stage.clock.advance(Duration::from_millis(59_999));
    assert_eq!(
        ours.resolve_limits("user-1", "gpt-4").await.unwrap().limits,
        LimitSet::new([rpm(1)]).unwrap()
    );
    stage.clock.advance(Duration::from_millis(1));
    let mut resolved = ours.resolve_limits("user-1", "gpt-4").await.unwrap();
    // In bad weather a reload fails: expired limits stay in use until the next one, five seconds later.
    let mut stale_hits = 0;
    while ours.cache_stats().stale_hits > stale_hits && stale_hits < 5 {
        stale_hits = ours.cache_stats().stale_hits;
        stage.clock.advance(Duration::from_secs(5));
        resolved = ours.resolve_limits("user-1", "gpt-4").await.unwrap();
    }
    assert_eq!(resolved.limits, LimitSet::new([rpm(2)]).unwrap());
    theirs.set_resource_defaults("gpt-4", [rpm(3)]).await.unwrap();
    ours.invalidate_config("user-1", "gpt-4").unwrap();
    assert_eq!(
        ours.resolve_limits("user-1", "gpt-4").await.unwrap().limits,
        LimitSet::new([rpm(3)]).unwrap()
    );
}

async fn parent_and_cascade_come_with_the_limits(stage: Stage) {
    let repository = stage.repository().await;
    let resolved = repository.resolve_limits("key-1", "gpt-4").await.unwrap();
    assert_eq!((resolved.limits_from, resolved.entity_exists), (None, false));
    repository.create_entity(NewEntity::new("acme")).await.unwrap();
    repository
        .create_entity(NewEntity::new("key-1").parent("acme").cascade(true))
        .await
        .unwrap();
    let resolved = repository.resolve_limits("key-1", "gpt-4").await.unwrap();
    assert_eq!(
        (resolved.parent.as_ref().unwrap().as_str(), resolved.cascade),
        ("acme", true)
    );
    repository
        .update_entity("key-1", EntityChange::new().cascade(false).without_parent())
        .await
        .unwrap();
    let resolved = repository.resolve_limits("key-1", "gpt-4").await.unwrap();
    assert_eq!(
        (resolved.parent.clone(), resolved.cascade, resolved.entity_exists),
        (None, false, true)
    );
}
