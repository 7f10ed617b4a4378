//! Tables of older formats are brought up to date.

use std::collections::HashMap;

use zae_limiter::versions::{Migrate, VersionRecord};
use zae_limiter::{ConfigLevel, ConfigOrigin, NewEntity};
use zae_limiter_schema::{AttributeValue, Item, LimitSet};

use crate::store::support::{Stage, configured_resources, rpm, tpm};

on_every_store! {
    a_dry_run_counts_and_changes_nothing,
    old_limits_become_one_configuration_per_level,
    old_buckets_become_one_bucket_with_all_limits,
    what_is_there_in_the_new_form_wins,
    a_table_that_is_up_to_date_is_left_alone,
    a_dry_run_counts_what_the_run_does,
}

pub(crate) fn item(pk: &str, sk: &str, numbers: &[(&str, i64)], nested: bool) -> Item {
    let numbers = numbers
        .iter()
        .map(|(name, number)| ((*name).to_owned(), AttributeValue::N(number.to_string())));
    let keys =
        [("PK", pk), ("SK", sk)].map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned())));
    if nested {
        let data = AttributeValue::M(numbers.collect::<HashMap<_, _>>());
        return Item::from(
            keys.into_iter()
                .chain([("data".to_owned(), data)])
                .collect::<HashMap<_, _>>(),
        );
    }
    Item::from(keys.into_iter().chain(numbers).collect::<HashMap<_, _>>())
}

pub(crate) fn old_limit(pk: &str, sk: &str, capacity: i64) -> Item {
    let numbers = [
        ("capacity", capacity),
        ("burst", capacity),
        ("refill_amount", capacity),
        ("refill_period_seconds", 60),
    ];
    item(pk, sk, &numbers, false)
}

pub(crate) fn old_bucket(
    entity: &str,
    resource: &str,
    limit: &str,
    tokens: i64,
    refilled_at: i64,
    nested: bool,
) -> Item {
    let numbers = [
        ("tokens_milli", tokens),
        ("last_refill_ms", refilled_at),
        ("capacity_milli", 60_000),
        ("burst_milli", 60_000),
        ("refill_amount_milli", 60_000),
        ("refill_period_ms", 60_000),
        ("total_consumed_milli", 5_000),
    ];
    item(
        &format!("ENTITY#{entity}"),
        &format!("#BUCKET#{resource}#{limit}"),
        &numbers,
        nested,
    )
}

pub(crate) async fn old_table(stage: &Stage) {
    stage.repository().await;
    let mut record = VersionRecord::current(zae_limiter::Timestamp::MIN, "somebody");
    "0.7.0".clone_into(&mut record.schema_version);
    stage.put([record.to_item()]).await;
    stage
        .put([
            old_limit("SYSTEM#", "#LIMIT#rpm", 10),
            old_limit("SYSTEM#", "#LIMIT#tpm", 1_000),
            old_limit("RESOURCE#gpt-4", "#LIMIT#rpm", 20),
            old_limit("ENTITY#user-1", "#LIMIT#gpt-4#rpm", 30),
            old_limit("ENTITY#user-1", "#LIMIT#gpt-4#tpm", 3_000),
            old_limit("ENTITY#user-1", "#LIMIT#_default_#rpm", 40),
            old_bucket("user-1", "gpt-4", "rpm", 10_000, 1_000_000, false),
            old_bucket("user-1", "gpt-4", "tpm", -2_000, 1_004_000, false),
            old_bucket("user-2", "gpt-4", "rpm", 7_000, 1_000_000, true),
        ])
        .await;
}

async fn a_dry_run_counts_and_changes_nothing(stage: Stage) {
    old_table(&stage).await;
    let repository = stage.repository().await;
    let report = repository.migrate(Migrate::pending().dry_run()).await.unwrap();
    let counts: Vec<_> = report
        .steps
        .iter()
        .map(|s| (s.name, s.found, s.written, s.removed, s.problems.len()))
        .collect();
    assert_eq!(
        counts,
        [
            ("composite-configs", 6, 4, 6, 0),
            ("composite-buckets", 3, 2, 3, 0)
        ]
    );
    assert!(report.dry_run);
    assert!(stage.item("ENTITY#user-1", "#LIMIT#gpt-4#rpm").await.is_some());
    assert!(stage.item("ENTITY#user-1", "#CONFIG#gpt-4").await.is_none());
    assert_eq!(
        repository.get_version().await.unwrap().unwrap().schema_version,
        "0.7.0"
    );
}

async fn old_limits_become_one_configuration_per_level(stage: Stage) {
    old_table(&stage).await;
    let repository = stage.repository().await;
    assert!(
        repository.set_system_defaults([rpm(1)]).await.is_err(),
        "an old table is not written to"
    );
    repository.migrate(Migrate::pending()).await.unwrap();
    assert_eq!(
        repository.get_version().await.unwrap().unwrap().schema_version,
        "0.8.0"
    );
    let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
    assert_eq!(resolved.limits, LimitSet::new([rpm(30), tpm(3_000)]).unwrap());
    assert_eq!(resolved.limits_from, Some(ConfigOrigin::Entity));
    let default = ConfigLevel::EntityDefault("user-1".parse().unwrap());
    assert_eq!(
        repository.get_config(&default).await.unwrap().unwrap().limits,
        LimitSet::new([rpm(40)]).unwrap()
    );
    let system = repository
        .get_config(&ConfigLevel::System)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(system.limits, LimitSet::new([rpm(10), tpm(1_000)]).unwrap());
    assert_eq!(
        repository.list_resources_with_defaults().await.unwrap(),
        ["gpt-4"]
    );
    assert_eq!(configured_resources(&repository).await, ["_default_", "gpt-4"]);
    assert!(stage.item("ENTITY#user-1", "#LIMIT#gpt-4#rpm").await.is_none());
    let again = repository
        .migrate(Migrate::pending().from("0.7.0".parse().unwrap()))
        .await
        .unwrap();
    assert!(again.steps.iter().all(|step| step.found == 0), "{again:?}");
}

async fn old_buckets_become_one_bucket_with_all_limits(stage: Stage) {
    old_table(&stage).await;
    let repository = stage.repository().await;
    repository.migrate(Migrate::pending()).await.unwrap();
    let bucket = stage.item("ENTITY#user-1", "#BUCKET#gpt-4").await.unwrap();
    let number = |name: &str| bucket[name].as_n().unwrap().parse::<i64>().unwrap();
    assert_eq!(number("rf"), 1_004_000, "the latest of both");
    assert_eq!(
        (number("b_rpm_tk"), number("b_tpm_tk")),
        (14_000, -2_000),
        "four seconds came back to the older one"
    );
    assert_eq!(
        (number("b_rpm_tc"), number("b_rpm_cp"), number("b_rpm_rp")),
        (5_000, 60_000, 60_000)
    );
    assert_eq!(bucket["GSI2SK"].as_s().unwrap(), "BUCKET#user-1");
    assert_eq!(bucket["entity_id"].as_s().unwrap(), "user-1");
    let nested = stage.item("ENTITY#user-2", "#BUCKET#gpt-4").await.unwrap();
    assert_eq!(nested["b_rpm_tk"].as_n().unwrap(), "7000");
    assert!(stage.item("ENTITY#user-1", "#BUCKET#gpt-4#rpm").await.is_none());
}

async fn what_is_there_in_the_new_form_wins(stage: Stage) {
    let repository = stage.repository().await;
    repository.set_limits("user-1", "gpt-4", [rpm(99)]).await.unwrap();
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    stage
        .put([
            old_limit("ENTITY#user-1", "#LIMIT#gpt-4#rpm", 30),
            old_bucket("user-1", "gpt-4", "rpm", 1_000, 1_000_000, false),
            crate::store::capacity::bucket(
                &"user-1".parse().unwrap(),
                "gpt-4",
                42_000,
                crate::store::capacity::NOON,
            ),
        ])
        .await;
    let report = repository
        .migrate(Migrate::pending().from("0.7.0".parse().unwrap()))
        .await
        .unwrap();
    assert!(
        report
            .steps
            .iter()
            .all(|step| (step.found, step.written, step.removed) == (1, 0, 1)),
        "{report:?}"
    );
    let resolved = repository.resolve_limits("user-1", "gpt-4").await.unwrap();
    assert_eq!(resolved.limits, LimitSet::new([rpm(99)]).unwrap());
    assert_eq!(
        stage.item("ENTITY#user-1", "#BUCKET#gpt-4").await.unwrap()["b_rpm_tk"]
            .as_n()
            .unwrap(),
        "42000"
    );
    assert_eq!(configured_resources(&repository).await, ["gpt-4"]);
    let registry = stage.item("SYSTEM#", "#ENTITY_CONFIG_RESOURCES").await.unwrap();
    assert_eq!(registry["gpt-4"].as_n().unwrap(), "1");
}

async fn a_table_that_is_up_to_date_is_left_alone(stage: Stage) {
    let repository = stage.repository().await;
    assert!(
        repository
            .migrate(Migrate::pending())
            .await
            .unwrap()
            .steps
            .is_empty()
    );
}

async fn a_dry_run_counts_what_the_run_does(stage: Stage) {
    let repository = stage.repository().await;
    repository.set_limits("user-1", "gpt-4", [rpm(99)]).await.unwrap();
    stage
        .put([
            old_limit("ENTITY#user-1", "#LIMIT#gpt-4#rpm", 30),
            old_limit("ENTITY#user-2", "#LIMIT#gpt-4#rpm", 30),
            old_bucket("user-1", "gpt-4", "rpm", 1_000, 1_000_000, false),
            old_bucket("user-2", "gpt-4", "rpm", 1_000, 1_000_000, false),
            crate::store::capacity::bucket(
                &"user-1".parse().unwrap(),
                "gpt-4",
                42_000,
                crate::store::capacity::NOON,
            ),
        ])
        .await;
    let how = || Migrate::pending().from("0.7.0".parse().unwrap());
    let told = repository.migrate(how().dry_run()).await.unwrap();
    let done = repository.migrate(how()).await.unwrap();
    assert_eq!(told.steps, done.steps);
    assert!(
        done.steps
            .iter()
            .all(|step| (step.found, step.written, step.removed) == (2, 1, 2)),
        "{done:?}"
    );
}
