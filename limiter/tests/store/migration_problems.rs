//! Migrations that meet items they cannot use, other writers, or an outage.

use zae_limiter::versions::{Migrate, MigrationReport};
use zae_limiter::{ConfigLevel, Repository};
use zae_limiter_schema::{AttributeValue, Item, LimitSet};

use crate::store::migrations::{item, old_bucket, old_limit, old_table};
use crate::store::support::{Fault, Stage, Weather, configured_resources, rpm, tpm};

on_every_store! {
    an_unusable_item_is_reported_and_the_rest_is_done,
    what_has_a_problem_is_left_whole_until_it_is_repaired,
    a_limit_that_is_there_twice_is_a_problem_unless_both_say_the_same,
    records_that_cannot_be_read_stop_only_what_they_belong_to,
    every_old_item_that_makes_no_sense_is_named_with_the_reason,
}

/// Migrates an old table with these items besides the usual ones.
async fn migrate_with(stage: &Stage, more: impl IntoIterator<Item = Item>) -> (Repository, MigrationReport) {
    old_table(stage).await;
    stage.put(more).await;
    let repository = stage.repository().await;
    let report = repository.migrate(Migrate::pending()).await.unwrap();
    (repository, report)
}

fn problems(report: &MigrationReport) -> Vec<&str> {
    let problems = report.steps.iter().flat_map(|step| &step.problems);
    problems.map(String::as_str).collect()
}

async fn an_unusable_item_is_reported_and_the_rest_is_done(stage: Stage) {
    let more = [
        old_limit("ENTITY#user-3", "#LIMIT#gpt-4#rpm", 0),
        item(
            "ENTITY#user-3",
            "#BUCKET#gpt-4#rpm",
            &[("tokens_milli", 1)],
            false,
        ),
    ];
    let (repository, report) = migrate_with(&stage, more).await;
    let problems = problems(&report);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems
            .iter()
            .all(|problem| problem.starts_with("ENTITY#user-3"))
    );
    assert!(stage.item("ENTITY#user-1", "#CONFIG#gpt-4").await.is_some());
    assert!(
        stage.item("ENTITY#user-3", "#LIMIT#gpt-4#rpm").await.is_some(),
        "it is left for somebody to look at"
    );
    assert_eq!(
        repository.get_version().await.unwrap().unwrap().schema_version,
        "0.7.0",
        "not done yet"
    );
}

async fn what_has_a_problem_is_left_whole_until_it_is_repaired(stage: Stage) {
    let more = [
        old_limit("ENTITY#user-3", "#LIMIT#gpt-4#rpm", 30),
        old_limit("ENTITY#user-3", "#LIMIT#gpt-4#tpm", 0),
        old_bucket("user-3", "gpt-4", "rpm", 1_000, 1_000_000, false),
        item(
            "ENTITY#user-3",
            "#BUCKET#gpt-4#tpm",
            &[("tokens_milli", 1)],
            false,
        ),
    ];
    let (repository, report) = migrate_with(&stage, more).await;
    assert_eq!(problems(&report).len(), 2, "{report:?}");
    for sk in [
        "#LIMIT#gpt-4#rpm",
        "#LIMIT#gpt-4#tpm",
        "#BUCKET#gpt-4#rpm",
        "#BUCKET#gpt-4#tpm",
    ] {
        assert!(stage.item("ENTITY#user-3", sk).await.is_some(), "{sk}");
    }
    stage
        .put([
            old_limit("ENTITY#user-3", "#LIMIT#gpt-4#tpm", 300),
            old_bucket("user-3", "gpt-4", "tpm", 2_000, 1_000_000, false),
        ])
        .await;
    let report = repository.migrate(Migrate::pending()).await.unwrap();
    assert_eq!(problems(&report).len(), 0, "{report:?}");
    let resolved = repository.resolve_limits("user-3", "gpt-4").await.unwrap();
    assert_eq!(resolved.limits, LimitSet::new([rpm(30), tpm(300)]).unwrap());
    let bucket = stage.item("ENTITY#user-3", "#BUCKET#gpt-4").await.unwrap();
    assert_eq!(bucket["b_tpm_tk"].as_n().unwrap(), "2000");
}

async fn a_limit_that_is_there_twice_is_a_problem_unless_both_say_the_same(stage: Stage) {
    let more = [
        old_limit("ENTITY#user-3", "#LIMIT#rpm", 30),
        old_limit("ENTITY#user-3", "#LIMIT#_default_#rpm", 31),
        old_limit("ENTITY#user-4", "#LIMIT#rpm", 40),
        old_limit("ENTITY#user-4", "#LIMIT#_default_#rpm", 40),
    ];
    let (repository, report) = migrate_with(&stage, more).await;
    let [problem] = problems(&report)[..] else {
        panic!("{report:?}")
    };
    assert!(
        problem.starts_with("ENTITY#user-3") && problem.contains("rpm is stored twice"),
        "{problem}"
    );
    assert!(stage.item("ENTITY#user-3", "#LIMIT#rpm").await.is_some());
    let level = ConfigLevel::EntityDefault("user-4".parse().unwrap());
    let stored = repository.get_config(&level).await.unwrap().unwrap();
    assert_eq!(stored.limits, LimitSet::new([rpm(40)]).unwrap());
}

async fn records_that_cannot_be_read_stop_only_what_they_belong_to(stage: Stage) {
    old_table(&stage).await;
    let broken = |sk: &str, attribute: &str| {
        let mut broken = item("ENTITY#user-3", sk, &[], false).into_inner();
        broken.insert(attribute.to_owned(), AttributeValue::Bool(true));
        Item::from(broken)
    };
    stage
        .put([
            broken("#CONFIG#gpt-4", "config_version"),
            broken("#META", "created_at"),
            old_limit("ENTITY#user-3", "#LIMIT#gpt-4#rpm", 30),
            old_bucket("user-3", "gpt-4", "rpm", 1_000, 1_000_000, false),
        ])
        .await;
    let repository = stage.repository().await;
    let report = repository.migrate(Migrate::pending()).await.unwrap();
    assert_eq!(problems(&report).len(), 2, "{report:?}");
    assert!(stage.item("ENTITY#user-1", "#CONFIG#gpt-4").await.is_some());
    assert!(stage.item("ENTITY#user-1", "#BUCKET#gpt-4").await.is_some());
    assert!(stage.item("ENTITY#user-3", "#LIMIT#gpt-4#rpm").await.is_some());
    assert!(stage.item("ENTITY#user-3", "#BUCKET#gpt-4#rpm").await.is_some());
}

/// An item with another value for one of its attributes.
fn with(item: Item, attribute: &str, value: AttributeValue) -> Item {
    let mut attributes = item.into_inner();
    attributes.insert(attribute.to_owned(), value);
    Item::from(attributes)
}

async fn every_old_item_that_makes_no_sense_is_named_with_the_reason(stage: Stage) {
    let bucket = |limit: &str| old_bucket("user-3", "gpt-4", limit, 1, 1, false);
    let number = |digits: &str| AttributeValue::N(digits.to_owned());
    let more = [
        with(bucket("a"), "tokens_milli", AttributeValue::Bool(true)),
        with(bucket("b"), "tokens_milli", number("1.5")),
        with(
            bucket("c"),
            "tokens_milli",
            number("-999999999999999999999999999999"),
        ),
        with(bucket("d"), "last_refill_ms", number("9999999999999999999")),
        with(bucket("e"), "refill_period_ms", number("0")),
        old_bucket("user-3", "gpt-4", "no limit", 1, 1, false),
        old_limit("PROJECT#x", "#LIMIT#rpm", 5),
        old_limit("ENTITY#user-3", "#LIMIT#no resource#rpm", 5),
    ];
    let (_, report) = migrate_with(&stage, more.clone()).await;
    let mut found = problems(&report);
    found.sort_unstable();
    let mut expected = [
        ("ENTITY#user-3 #BUCKET#gpt-4#a: ", "tokens_milli is not a number"),
        (
            "ENTITY#user-3 #BUCKET#gpt-4#b: ",
            "tokens_milli is not a whole number",
        ),
        ("ENTITY#user-3 #BUCKET#gpt-4#c: ", "tokens_milli is out of range"),
        (
            "ENTITY#user-3 #BUCKET#gpt-4#d: ",
            "last_refill_ms is out of range",
        ),
        ("ENTITY#user-3 #BUCKET#gpt-4#e: ", "its parameters make no sense"),
        ("ENTITY#user-3 #BUCKET#gpt-4#no limit: ", "no limit"),
        ("PROJECT#x #LIMIT#rpm: ", "belongs to no level"),
        ("ENTITY#user-3 #LIMIT#no resource#rpm: ", "no resource"),
    ];
    expected.sort_unstable();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (problem, (key, reason)) in found.iter().zip(expected) {
        let rest = problem.strip_prefix(key);
        assert!(rest.is_some_and(|rest| rest.contains(reason)), "{problem}");
    }
    // Nothing of it is lost.
    for item in more {
        let text = |name: &str| match &item[name] {
            AttributeValue::S(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        assert!(stage.item(&text("PK"), &text("SK")).await.is_some(), "{item:?}");
    }
}

#[tokio::test]
async fn limits_of_a_resource_at_system_level_become_its_defaults() {
    let stage = Stage::memory();
    let more = [old_limit("SYSTEM#", "#LIMIT#gpt-3#rpm", 7)];
    let (repository, report) = migrate_with(&stage, more).await;
    assert_eq!(problems(&report).len(), 0, "{report:?}");
    let defaults = repository.get_resource_defaults("gpt-3").await.unwrap();
    assert_eq!(defaults, LimitSet::new([rpm(7)]).unwrap());
    let system = repository.get_system_defaults().await.unwrap();
    assert_eq!(system, LimitSet::new([rpm(10), tpm(1_000)]).unwrap());
}

#[tokio::test]
async fn settings_of_the_new_form_and_the_parent_of_an_entity_are_kept() {
    let stage = Stage::memory();
    old_table(&stage).await;
    let tolerant = || stage.builder().strict_version(false).create_table(false);
    let before = tolerant().build_repository().await.unwrap();
    let change = zae_limiter::ConfigChange::new().on_unavailable(zae_limiter::OnUnavailable::Allow);
    before.set_config(&ConfigLevel::System, change).await.unwrap();
    before
        .create_entity(zae_limiter::NewEntity::new("acme"))
        .await
        .unwrap();
    let user = zae_limiter::NewEntity::new("user-1").parent("acme").cascade(true);
    before.create_entity(user).await.unwrap();

    before.migrate(Migrate::pending()).await.unwrap();
    let system = before.get_config(&ConfigLevel::System).await.unwrap().unwrap();
    assert_eq!(system.limits, LimitSet::new([rpm(10), tpm(1_000)]).unwrap());
    assert_eq!(system.on_unavailable, Some(zae_limiter::OnUnavailable::Allow));
    let bucket = stage.item("ENTITY#user-1", "#BUCKET#gpt-4").await.unwrap();
    assert_eq!(bucket["parent_id"].as_s().unwrap(), "acme");
    assert_eq!(bucket["cascade"].as_bool(), Ok(&true));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_was_used_meanwhile_is_left_for_the_next_run() {
    for nested in [false, true] {
        let stage = Stage::faulty(Weather::Fair);
        let repository = stage.repository().await;
        stage
            .put([old_bucket("user-1", "gpt-4", "rpm", 9_000, 1_000_000, nested)])
            .await;
        let (client, table) = (stage.client().await, stage.name.clone());
        stage.faults().before("TransactWriteItems", async move {
            let used =
                crate::store::support::to_sdk(old_bucket("user-1", "gpt-4", "rpm", 1_000, 1_000_500, nested));
            client
                .put_item()
                .table_name(table)
                .set_item(Some(used))
                .send()
                .await
                .unwrap();
        });
        let how = || Migrate::pending().from("0.7.0".parse().unwrap());
        let report = repository.migrate(how()).await.unwrap();
        assert_eq!(problems(&report).len(), 1, "nested: {nested}, {report:?}");
        repository.migrate(how()).await.unwrap();
        let bucket = stage.item("ENTITY#user-1", "#BUCKET#gpt-4").await.unwrap();
        assert_eq!(bucket["b_rpm_tk"].as_n().unwrap(), "1000", "nested: {nested}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_was_stopped_goes_on_where_it_was() {
    let stage = Stage::faulty(Weather::Fair);
    old_table(&stage).await;
    let repository = stage
        .builder()
        .admin_time_budget(std::time::Duration::from_millis(100))
        .build_repository()
        .await
        .unwrap();
    let before = repository.migrate(Migrate::pending().dry_run()).await.unwrap();
    // The first level is written; then the table cannot be reached for longer than the budget.
    let outage = std::iter::once(Fault::None).chain(std::iter::repeat_n(Fault::ServerError, 100));
    stage.faults().plan("TransactWriteItems", outage);
    assert!(
        repository
            .migrate(Migrate::pending())
            .await
            .unwrap_err()
            .is_unavailable()
    );
    stage.faults().heal();
    let after = repository.migrate(Migrate::pending()).await.unwrap();
    let removed = |report: &MigrationReport| report.steps.iter().map(|step| step.removed).sum::<u64>();
    assert!(
        removed(&after) < removed(&before),
        "part of it was done before: {after:?}"
    );
    assert_eq!(
        repository.get_version().await.unwrap().unwrap().schema_version,
        "0.8.0"
    );
    assert_eq!(configured_resources(&repository).await, ["_default_", "gpt-4"]);
}
