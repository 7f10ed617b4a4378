//! Modes: stored, removed, audited, and who was observed.

use zae_limiter::audit::AuditSubject;
use zae_limiter::usage::Observed;
use zae_limiter::{ConfigChange, ConfigLevel, Mode, OnUnavailable, Timestamp};
use zae_limiter_schema::AttributeValue;

use crate::store::support::{Stage, page, rpm};
use crate::store::usage::{day, hour};

on_every_store! {
    modes_and_limits_of_a_level_are_changed_apart,
    a_level_of_the_system_loses_its_mode_and_keeps_its_settings,
    changes_of_modes_are_audited,
    observed_refusals_are_added_up_by_entity,
}

fn gpt() -> ConfigLevel {
    ConfigLevel::Resource("gpt-4".parse().unwrap())
}

/// The format follows the mode and the limits, whichever of them is changed.
async fn modes_and_limits_of_a_level_are_changed_apart(stage: Stage) {
    let repository = stage.repository().await;
    let format = async || {
        let item = stage.item("RESOURCE#gpt-4", "#CONFIG").await.unwrap();
        let format = item.get("limits_format");
        format.map_or(1, |format| format.as_n().unwrap().parse::<u32>().unwrap())
    };
    repository
        .set_resource_defaults("gpt-4", [rpm(10)])
        .await
        .unwrap();
    assert_eq!(format().await, 1);
    for (mode, expected) in [(Mode::Observe, 3), (Mode::Enforce, 1), (Mode::Bypass, 3)] {
        let config = repository.set_mode(&gpt(), mode).await.unwrap();
        assert_eq!((config.mode, config.limits.len()), (Some(mode), 1));
        assert_eq!(format().await, expected, "{mode}");
    }
    let quota = ["spend:5 per month".parse().unwrap()];
    repository.set_resource_defaults("gpt-4", quota).await.unwrap();
    assert_eq!(
        (repository.get_mode(&gpt()).await.unwrap(), format().await),
        (Some(Mode::Bypass), 3)
    );
    assert!(repository.delete_mode(&gpt()).await.unwrap());
    assert_eq!(format().await, 2);
    let config = repository.get_config(&gpt()).await.unwrap().unwrap();
    assert_eq!((config.mode, config.limits.len()), (None, 1));
    assert!(config.unknown.is_empty(), "{:?}", config.unknown);
    repository
        .set_resource_defaults("gpt-4", [rpm(10)])
        .await
        .unwrap();
    assert_eq!(format().await, 1);
}

async fn a_level_of_the_system_loses_its_mode_and_keeps_its_settings(stage: Stage) {
    let repository = stage.repository().await;
    let change = ConfigChange::new().mode(Mode::Observe).audit_retention_days(30);
    repository.set_config(&ConfigLevel::System, change).await.unwrap();
    assert!(repository.delete_config(&ConfigLevel::System).await.unwrap());
    assert!(!repository.delete_config(&ConfigLevel::System).await.unwrap());
    let config = repository
        .get_config(&ConfigLevel::System)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (config.mode, config.system.audit_retention_days),
        (None, Some(30))
    );
    let item = stage.item("SYSTEM#", "#CONFIG").await.unwrap();
    assert_eq!((item.get("mode"), item.get("limits_format")), (None, None));
}

async fn changes_of_modes_are_audited(stage: Stage) {
    let repository = stage.repository().await.acting_as("ops").unwrap();
    let level = ConfigLevel::EntityDefault("user-1".parse().unwrap());
    let change = ConfigChange::new()
        .mode(Mode::Disabled)
        .on_unavailable(OnUnavailable::Block);
    repository.set_config(&level, change).await.unwrap();
    repository
        .set_config(&level, ConfigChange::new().without_mode())
        .await
        .unwrap();
    let subject = AuditSubject::Entity("user-1".parse().unwrap());
    let events = repository
        .list_audit_events(&subject, &page(10))
        .await
        .unwrap()
        .items;
    let modes: Vec<_> = events
        .iter()
        .map(|event| event.details.get("mode").cloned())
        .collect();
    assert_eq!(modes, [None, Some(AttributeValue::S("disabled".to_owned()))]);
    assert!(
        events
            .iter()
            .all(|event| event.principal.as_deref() == Some("ops"))
    );
}

async fn observed_refusals_are_added_up_by_entity(stage: Stage) {
    let repository = stage.repository().await;
    repository
        .set_resource_defaults("gpt-4", [rpm(10)])
        .await
        .unwrap();
    let user = |number: u32| format!("user-{number}").parse().unwrap();
    let mut items = vec![hour(&user(1), "gpt-4", 1, 10)];
    items.extend((0..4).map(|number| day(&user(1), "gpt-4", number, 10)));
    items.extend((0..2).map(|number| day(&user(2), "gpt-4", number, 10)));
    items.push(day(&user(1), "gpt-5", 1, 10));
    stage.put(items).await;
    let since = Timestamp::parse("2026-01-02T15:00:00Z").unwrap();
    let observed = async |level: &ConfigLevel| {
        let Observed {
            entities, complete, ..
        } = repository.list_observed(level, since).await.unwrap();
        assert!(complete);
        let named = entities.into_iter();
        named
            .map(|one| {
                (
                    one.entity.to_string(),
                    one.resource.to_string(),
                    one.observed,
                    one.acquires,
                )
            })
            .collect::<Vec<_>>()
    };
    let row = |user: &str, resource: &str, days: i64| (user.to_owned(), resource.to_owned(), 3 * days, days);
    let both = [row("user-1", "gpt-4", 3), row("user-2", "gpt-4", 1)];
    assert_eq!(observed(&gpt()).await, both);
    assert_eq!(observed(&ConfigLevel::System).await, both, "gpt-5 has no limits");
    let user_on = ConfigLevel::Entity(user(1), "gpt-5".parse().unwrap());
    assert_eq!(observed(&user_on).await, [row("user-1", "gpt-5", 1)]);
    assert_eq!(observed(&ConfigLevel::EntityDefault(user(1))).await.len(), 2);
}
