//! Prices: set, get, delete.

use zae_limiter::audit::AuditSubject;
use zae_limiter::money::{MicroDollars, Prices};
use zae_limiter::{ConfigChange, ConfigLevel, OnUnavailable};
use zae_limiter_schema::AttributeValue;

use crate::store::support::{Stage, page, rpm};

on_every_store! {
    prices_and_limits_of_a_resource_are_changed_apart,
    a_resource_with_nothing_but_prices_is_gone_with_them,
    deleting_the_configuration_of_a_level_takes_its_prices,
    changes_of_prices_are_audited,
    prices_that_break_a_rule_are_refused_before_anything_is_written,
}

fn prices() -> Prices {
    let money = |text: &str| text.parse::<MicroDollars>().unwrap();
    Prices {
        per_call: Some(money("$0.01")),
        max_output: Some(4_096),
        token_limits: ["tpd", "tpm"].map(|name| name.parse().unwrap()).into(),
        ..Prices::new(money("$2.50"), money("$10"))
    }
}

fn gpt() -> ConfigLevel {
    ConfigLevel::Resource("gpt-4".parse().unwrap())
}

async fn prices_and_limits_of_a_resource_are_changed_apart(stage: Stage) {
    let repository = stage.repository().await;
    repository
        .set_resource_defaults("gpt-4", [rpm(10)])
        .await
        .unwrap();
    repository.set_prices("gpt-4", prices()).await.unwrap();
    repository
        .set_resource_defaults("gpt-4", [rpm(20)])
        .await
        .unwrap();
    assert_eq!(repository.get_prices("gpt-4").await.unwrap(), Some(prices()));

    let fewer = Prices {
        per_call: None,
        token_limits: [].into(),
        ..prices()
    };
    repository.set_prices("gpt-4", fewer.clone()).await.unwrap();
    let config = repository.get_config(&gpt()).await.unwrap().unwrap();
    assert_eq!((config.prices, config.limits.len()), (Some(fewer), 1));

    assert!(repository.delete_prices("gpt-4").await.unwrap());
    assert!(!repository.delete_prices("gpt-4").await.unwrap());
    let config = repository.get_config(&gpt()).await.unwrap().unwrap();
    assert_eq!((config.prices, config.limits.len()), (None, 1));
    assert!(config.unknown.is_empty(), "{:?}", config.unknown);
}

async fn a_resource_with_nothing_but_prices_is_gone_with_them(stage: Stage) {
    let repository = stage.repository().await;
    assert!(!repository.delete_prices("gpt-4").await.unwrap());
    repository.set_prices("gpt-4", prices()).await.unwrap();
    assert_eq!(
        repository.list_resources_with_defaults().await.unwrap(),
        ["gpt-4"]
    );
    assert!(repository.delete_prices("gpt-4").await.unwrap());
    assert_eq!(repository.get_config(&gpt()).await.unwrap(), None);
    assert!(
        repository
            .list_resources_with_defaults()
            .await
            .unwrap()
            .is_empty()
    );

    let change = ConfigChange::new()
        .prices(prices())
        .on_unavailable(OnUnavailable::Allow);
    repository.set_config(&gpt(), change).await.unwrap();
    assert!(repository.delete_prices("gpt-4").await.unwrap());
    let config = repository.get_config(&gpt()).await.unwrap().unwrap();
    assert_eq!(config.on_unavailable, Some(OnUnavailable::Allow));
}

async fn deleting_the_configuration_of_a_level_takes_its_prices(stage: Stage) {
    let repository = stage.repository().await;
    for level in [ConfigLevel::System, gpt()] {
        let change = ConfigChange::new().prices(prices());
        repository.set_config(&level, change).await.unwrap();
        assert!(repository.delete_config(&level).await.unwrap(), "{level}");
        let left = repository.get_config(&level).await.unwrap();
        assert!(left.is_none_or(|left| left.prices.is_none()), "{level}");
        assert!(!repository.delete_config(&level).await.unwrap(), "{level}");
    }
}

async fn changes_of_prices_are_audited(stage: Stage) {
    let repository = stage.repository().await;
    repository
        .set_resource_defaults("gpt-4", [rpm(10)])
        .await
        .unwrap();
    repository.set_prices("gpt-4", prices()).await.unwrap();
    repository.delete_prices("gpt-4").await.unwrap();
    let subject: AuditSubject = "$RESOURCE:gpt-4".parse().unwrap();
    let events = repository.list_audit_events(&subject, &page(10)).await.unwrap();
    let told: Vec<_> = events
        .items
        .iter()
        .map(|event| event.details.get("prices"))
        .collect();
    let AttributeValue::M(set) = told[1].unwrap() else {
        panic!("{told:?}")
    };
    assert_eq!(set["input"], AttributeValue::S("$2.50".to_owned()));
    assert_eq!(set["max_output"], AttributeValue::N("4096".to_owned()));
    assert_eq!((told[0], told[2]), (None, None));
}

async fn prices_that_break_a_rule_are_refused_before_anything_is_written(stage: Stage) {
    let repository = stage.repository().await;
    let nothing = repository
        .set_prices("gpt-4", Prices::default())
        .await
        .unwrap_err();
    assert!(nothing.to_string().contains("at least one price"), "{nothing}");
    let level = ConfigLevel::EntityDefault("user-1".parse().unwrap());
    let misplaced = repository
        .set_config(&level, ConfigChange::new().prices(prices()))
        .await
        .unwrap_err();
    assert!(
        misplaced.to_string().contains("not to entity user-1"),
        "{misplaced}"
    );
    assert_eq!(repository.get_config(&gpt()).await.unwrap(), None);
    assert_eq!(repository.get_config(&level).await.unwrap(), None);
}
