//! The four levels: set, get, delete, list.

use zae_limiter::error::Invalid;
use zae_limiter::{ConfigChange, ConfigLevel, Error, Limit, OnUnavailable};
use zae_limiter_schema::{ConfigRecord, LimitSet};

use crate::store::support::{Stage, all_pages, configured_resources, page, rpm, tpm};

on_every_store! {
    each_level_keeps_what_was_set_and_forgets_what_was_deleted,
    setting_one_thing_leaves_the_others,
    new_limits_replace_the_old_ones,
    deleting_the_system_defaults_keeps_the_settings,
    many_writers_at_once_lose_nothing,
    registries_follow_what_is_configured,
    entities_with_limits_of_their_own_are_listed_in_pages,
    names_with_dots_and_hyphens_are_names,
    what_the_python_peer_wrote_is_read_and_changed,
    senseless_changes_are_refused_before_anything_is_written,
}

fn levels() -> [ConfigLevel; 4] {
    let (entity, resource) = ("user-1".parse().unwrap(), "gpt-4".parse().unwrap());
    ConfigLevel::chain(&entity, &resource)
}

async fn each_level_keeps_what_was_set_and_forgets_what_was_deleted(stage: Stage) {
    let repository = stage.repository().await;
    for (number, level) in (1..).zip(levels()) {
        assert_eq!(repository.get_config(&level).await.unwrap(), None);
        let change = ConfigChange::new()
            .limits([rpm(number), tpm(number * 100)])
            .on_unavailable(OnUnavailable::Allow);
        let set = repository.set_config(&level, change).await.unwrap();
        assert_eq!(repository.get_config(&level).await.unwrap(), Some(set.clone()));
        assert_eq!(
            set.limits,
            LimitSet::new([rpm(number), tpm(number * 100)]).unwrap()
        );
        assert_eq!(
            (set.on_unavailable, set.config_version),
            (Some(OnUnavailable::Allow), 1)
        );
    }
    for level in levels() {
        assert!(repository.delete_config(&level).await.unwrap(), "{level}");
        assert!(!repository.delete_config(&level).await.unwrap(), "{level}");
        let left = repository.get_config(&level).await.unwrap();
        assert!(
            left.is_none_or(|left| left.limits.is_empty() && left.on_unavailable.is_none()),
            "{level}"
        );
    }
}

async fn setting_one_thing_leaves_the_others(stage: Stage) {
    let repository = stage.repository().await;
    let system = ConfigLevel::System;
    let settings = ConfigChange::new()
        .audit_retention_days(30)
        .auto_update(false)
        .strict_version(true);
    repository.set_config(&system, settings).await.unwrap();
    repository.set_system_defaults([rpm(100)]).await.unwrap();
    repository
        .set_config(&system, ConfigChange::new().on_unavailable(OnUnavailable::Allow))
        .await
        .unwrap();
    let config = repository.get_config(&system).await.unwrap().unwrap();
    assert_eq!(config.limits, LimitSet::new([rpm(100)]).unwrap());
    assert_eq!(config.on_unavailable, Some(OnUnavailable::Allow));
    assert_eq!(config.system.audit_retention_days, Some(30));
    assert_eq!(
        (config.system.auto_update, config.system.strict_version),
        (Some(false), Some(true))
    );
    assert_eq!(config.config_version, 3);
    repository
        .set_config(&system, ConfigChange::new().without_on_unavailable())
        .await
        .unwrap();
    let config = repository.get_config(&system).await.unwrap().unwrap();
    assert_eq!((config.on_unavailable, config.limits.len()), (None, 1));
}

async fn new_limits_replace_the_old_ones(stage: Stage) {
    let repository = stage.repository().await;
    repository
        .set_limits("user-1", "gpt-4", [rpm(1), tpm(2)])
        .await
        .unwrap();
    repository
        .set_limits("user-1", "gpt-4", [tpm(3), Limit::per_day("rpd", 4).unwrap()])
        .await
        .unwrap();
    let item = stage.item("ENTITY#user-1", "#CONFIG#gpt-4").await.unwrap();
    let mut names: Vec<&str> = item
        .keys()
        .map(String::as_str)
        .filter(|name| name.starts_with("l_"))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "l_rpd_bx", "l_rpd_cp", "l_rpd_ra", "l_rpd_rp", "l_tpm_bx", "l_tpm_cp", "l_tpm_ra", "l_tpm_rp"
        ]
    );
    assert_eq!(item["config_version"].as_n().unwrap(), "2");
}

async fn deleting_the_system_defaults_keeps_the_settings(stage: Stage) {
    let repository = stage.repository().await;
    let change = ConfigChange::new().limits([rpm(1)]).audit_retention_days(7);
    repository.set_config(&ConfigLevel::System, change).await.unwrap();
    assert!(repository.delete_config(&ConfigLevel::System).await.unwrap());
    let left = repository
        .get_config(&ConfigLevel::System)
        .await
        .unwrap()
        .unwrap();
    assert!(left.limits.is_empty());
    assert_eq!(left.system.audit_retention_days, Some(7));
}

async fn many_writers_at_once_lose_nothing(stage: Stage) {
    const WRITERS: u64 = 5;
    let repository = stage.repository().await;
    let level = levels()[0].clone();
    repository
        .set_config(&level, ConfigChange::new().limits([rpm(1)]))
        .await
        .unwrap();
    let writers: Vec<_> = (1..=WRITERS)
        .map(|number| {
            let (repository, level) = (repository.clone(), level.clone());
            tokio::spawn(async move {
                let name = format!("limit-{number}");
                let change = ConfigChange::new().limits([Limit::per_minute(name, number).unwrap()]);
                repository.set_config(&level, change).await
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    let config = repository.get_config(&level).await.unwrap().unwrap();
    assert_eq!(config.config_version, WRITERS + 1);
    assert_eq!(config.limits.len(), 1, "one writer's limits, not a mixture");
    let registry = stage.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await.unwrap();
    assert_eq!(registry["gpt-4"].as_n().unwrap(), "1");
}

async fn registries_follow_what_is_configured(stage: Stage) {
    let repository = stage.repository().await;
    assert!(
        repository
            .list_resources_with_defaults()
            .await
            .unwrap()
            .is_empty()
    );
    for resource in ["gpt-4", "openai/gpt-3.5"] {
        repository
            .set_resource_defaults(resource, [rpm(1)])
            .await
            .unwrap();
        repository
            .set_resource_defaults(resource, [rpm(2)])
            .await
            .unwrap();
    }
    assert_eq!(
        repository.list_resources_with_defaults().await.unwrap(),
        ["gpt-4", "openai/gpt-3.5"]
    );
    repository
        .delete_config(&ConfigLevel::Resource("gpt-4".parse().unwrap()))
        .await
        .unwrap();
    assert_eq!(
        repository.list_resources_with_defaults().await.unwrap(),
        ["openai/gpt-3.5"]
    );

    repository.set_limits("user-1", "gpt-4", [rpm(1)]).await.unwrap();
    repository.set_limits("user-1", "gpt-4", [rpm(2)]).await.unwrap();
    repository.set_limits("user-2", "gpt-4", [rpm(3)]).await.unwrap();
    repository.set_default_limits("user-1", [rpm(4)]).await.unwrap();
    assert_eq!(configured_resources(&repository).await, ["_default_", "gpt-4"]);
    for user in ["user-1", "user-2"] {
        let level = ConfigLevel::Entity(user.parse().unwrap(), "gpt-4".parse().unwrap());
        repository.delete_config(&level).await.unwrap();
    }
    assert_eq!(configured_resources(&repository).await, ["_default_"]);
    let registry = stage.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await.unwrap();
    assert!(!registry.contains_key("gpt-4"), "an empty count does not stay");
}

async fn entities_with_limits_of_their_own_are_listed_in_pages(stage: Stage) {
    let repository = stage.repository().await;
    for number in 0..7 {
        repository
            .set_limits(format!("user-{number}"), "gpt-4", [rpm(1)])
            .await
            .unwrap();
    }
    repository.set_default_limits("somebody", [rpm(1)]).await.unwrap();
    let resource = "gpt-4".parse().unwrap();
    let (entities, sizes) = all_pages(3, |request| {
        let (repository, resource) = (repository.clone(), &resource);
        async move {
            repository
                .list_entities_with_custom_limits(Some(resource), &request)
                .await
        }
    })
    .await;
    assert_eq!(
        entities.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "user-0", "user-1", "user-2", "user-3", "user-4", "user-5", "user-6"
        ]
    );
    assert_eq!(sizes, [3, 3, 1]);
    let everywhere = repository
        .list_entities_with_custom_limits(None, &page(10))
        .await
        .unwrap();
    assert_eq!(everywhere.items, ["somebody".parse().unwrap()]);
}

async fn names_with_dots_and_hyphens_are_names(stage: Stage) {
    let repository = stage.repository().await;
    let limits = [
        Limit::per_minute("a-b.c_d", 1).unwrap(),
        Limit::per_minute("size", 2).unwrap(),
    ];
    let level = ConfigLevel::Entity("a:b@c.d-e_f".parse().unwrap(), "x-y.z_1/2".parse().unwrap());
    repository
        .set_config(&level, ConfigChange::new().limits(limits.clone()))
        .await
        .unwrap();
    assert_eq!(
        repository.get_config(&level).await.unwrap().unwrap().limits,
        LimitSet::new(limits).unwrap()
    );
    assert_eq!(configured_resources(&repository).await, ["x-y.z_1/2"]);
    assert!(repository.delete_config(&level).await.unwrap());
    assert!(configured_resources(&repository).await.is_empty());
}

async fn what_the_python_peer_wrote_is_read_and_changed(stage: Stage) {
    let repository = stage.repository().await;
    let mut theirs = ConfigRecord::new(ConfigLevel::System, LimitSet::new([rpm(9)]).unwrap());
    theirs.unknown.insert(
        "novelty".to_owned(),
        zae_limiter::records::AttributeValue::S("kept".to_owned()),
    );
    stage.put([theirs.to_item()]).await;
    assert_eq!(
        repository.get_config(&ConfigLevel::System).await.unwrap(),
        Some(theirs)
    );
    repository.set_system_defaults([tpm(5)]).await.unwrap();
    let now = repository
        .get_config(&ConfigLevel::System)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (now.limits, now.config_version),
        (LimitSet::new([tpm(5)]).unwrap(), 2)
    );
    assert!(
        now.unknown.contains_key("novelty"),
        "attributes of others survive"
    );
}

async fn senseless_changes_are_refused_before_anything_is_written(stage: Stage) {
    let repository = stage.repository().await;
    let resource = ConfigLevel::Resource("gpt-4".parse().unwrap());
    for (level, change, field) in [
        (&resource, ConfigChange::new(), "change"),
        (&resource, ConfigChange::new().limits([]), "limits"),
        (&resource, ConfigChange::new().limits([rpm(1), rpm(2)]), "limits"),
        (
            &resource,
            ConfigChange::new().audit_retention_days(1),
            "audit_retention_days",
        ),
        (&resource, ConfigChange::new().auto_update(true), "auto_update"),
        (
            &ConfigLevel::System,
            ConfigChange::new().audit_retention_days(0),
            "audit_retention_days",
        ),
    ] {
        let refused = repository.set_config(level, change).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Invalid(Invalid::Argument { field: at_fault, .. }) if *at_fault == field),
            "{refused}"
        );
    }
    for resource in ["_default_", "PK", "", "a#b"] {
        assert!(
            matches!(
                repository.set_resource_defaults(resource, [rpm(1)]).await,
                Err(Error::Invalid(Invalid::Name(_)))
            ),
            "{resource}"
        );
    }
    assert!(
        repository
            .list_resources_with_defaults()
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn deleting_the_limits_of_a_level_deletes_no_other() {
    let stage = Stage::memory();
    let repository = stage.repository().await;
    repository.set_system_defaults([rpm(1)]).await.unwrap();
    repository.set_resource_defaults("gpt-4", [rpm(2)]).await.unwrap();
    repository.set_default_limits("user-1", [rpm(3)]).await.unwrap();
    repository.set_limits("user-1", "gpt-4", [rpm(4)]).await.unwrap();
    let left = async || {
        let default = ConfigLevel::EntityDefault("user-1".parse().unwrap());
        let default = repository.get_config(&default).await.unwrap();
        let found = [
            repository.get_system_defaults().await.unwrap(),
            repository.get_resource_defaults("gpt-4").await.unwrap(),
            default.map(|config| config.limits).unwrap_or_default(),
            repository.get_limits("user-1", "gpt-4").await.unwrap(),
        ];
        found.map(|limits| limits.iter().next().map_or(0, |limit| limit.capacity().get()))
    };
    assert_eq!(left().await, [1, 2, 3, 4]);
    for existed in [true, false] {
        assert_eq!(
            repository.delete_limits("user-1", "gpt-4").await.unwrap(),
            existed
        );
    }
    assert_eq!(left().await, [1, 2, 3, 0]);
    for existed in [true, false] {
        assert_eq!(
            repository.delete_resource_defaults("gpt-4").await.unwrap(),
            existed
        );
    }
    assert_eq!(left().await, [1, 0, 3, 0]);
    for existed in [true, false] {
        assert_eq!(repository.delete_system_defaults().await.unwrap(), existed);
    }
    assert_eq!(left().await, [0, 0, 3, 0]);
}
