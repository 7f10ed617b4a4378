//! Tables of other versions.

use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::error::Internal;
use zae_limiter::versions::{Compatibility, Migrate, VersionRecord};
use zae_limiter::{ConfigChange, ConfigLevel, Error, NewEntity};

use crate::store::support::{Fault, Stage, Weather, rpm, to_sdk};

on_every_store! {
    a_new_table_has_a_record_that_the_python_peer_can_live_with,
    a_table_of_another_format_is_refused_before_anything_is_written,
    a_table_that_tolerates_mismatches_is_used,
    the_builder_decides_about_mismatches_where_nothing_is_stored,
    a_table_without_a_record_gets_one,
    an_old_table_without_a_record_is_not_passed_for_a_new_one,
    the_record_of_a_later_release_is_left_alone,
}

async fn a_new_table_has_a_record_that_the_python_peer_can_live_with(stage: Stage) {
    let repository = stage.repository().await;
    let record = repository.get_version().await.unwrap().unwrap();
    assert_eq!(
        (record.schema_version.as_str(), record.client_min_version.as_str()),
        ("0.8.0", "0.0.0")
    );
    assert_eq!(
        record.lambda_version, None,
        "anything else makes the peer overwrite our function"
    );
    assert_eq!(
        repository.get_compatibility().await.unwrap(),
        Some(Compatibility::Compatible)
    );
    let item = stage.item("SYSTEM#", "#VERSION").await.unwrap();
    assert!(item["lambda_version"].is_null());
}

fn of_version(schema: &str, least: &str) -> zae_limiter_schema::Item {
    let mut record = VersionRecord::current(zae_limiter::Timestamp::MIN, "somebody");
    schema.clone_into(&mut record.schema_version);
    least.clone_into(&mut record.client_min_version);
    record.to_item()
}

async fn a_table_of_another_format_is_refused_before_anything_is_written(stage: Stage) {
    stage.repository().await;
    for (schema, least) in [
        ("0.7.0", "0.0.0"),
        ("0.10.0", "0.0.0"),
        ("1.0.0", "0.0.0"),
        ("0.8.0", "9.0.0"),
        ("x", "0.0.0"),
    ] {
        stage.put([of_version(schema, least)]).await;
        let repository = stage.repository().await;
        for result in [
            repository.create_entity(NewEntity::new("user-1")).await.map(drop),
            repository.set_system_defaults([rpm(1)]).await.map(drop),
            repository.resolve_limits("user-1", "gpt-4").await.map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, Error::Internal(Internal::IncompatibleSchema { schema: s, .. }) if s == schema),
                "{schema}: {error}"
            );
            assert!(!error.is_unavailable());
        }
        assert_eq!(repository.get_entity("user-1").await.unwrap(), None);
    }
}

async fn a_table_that_tolerates_mismatches_is_used(stage: Stage) {
    let repository = stage.repository().await;
    repository
        .set_config(&ConfigLevel::System, ConfigChange::new().strict_version(false))
        .await
        .unwrap();
    stage.put([of_version("0.9.0", "0.0.0")]).await;
    let repository = stage.repository().await;
    repository.set_system_defaults([rpm(1)]).await.unwrap();
    assert_eq!(
        repository
            .resolve_limits("user-1", "gpt-4")
            .await
            .unwrap()
            .limits
            .len(),
        1
    );
}

async fn the_builder_decides_about_mismatches_where_nothing_is_stored(stage: Stage) {
    stage.repository().await;
    stage.put([of_version("0.9.0", "0.0.0")]).await;
    let tolerant = || stage.builder().strict_version(false).create_table(false);
    let limiter = tolerant().await.unwrap();
    let repository = limiter.repository();
    repository.set_system_defaults([rpm(1)]).await.unwrap();
    let taken = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await;
    taken.unwrap().commit().await.unwrap();

    let change = ConfigChange::new().strict_version(true);
    repository.set_config(&ConfigLevel::System, change).await.unwrap();
    let limiter = tolerant().await.unwrap();
    for refused in [
        limiter.repository().set_system_defaults([rpm(2)]).await.map(drop),
        limiter
            .acquire("user-1", "gpt-4")
            .consume("rpm", 1)
            .await
            .map(drop),
    ] {
        assert!(
            matches!(refused, Err(Error::Internal(Internal::IncompatibleSchema { .. }))),
            "{refused:?}"
        );
    }
}

async fn forget_version(stage: &Stage) {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let client = stage.client().await;
    client
        .delete_item()
        .table_name(&stage.name)
        .key("PK", text("SYSTEM#"))
        .key("SK", text("#VERSION"))
        .send()
        .await
        .unwrap();
}

async fn a_table_without_a_record_gets_one(stage: Stage) {
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    forget_version(&stage).await;
    let repository = stage.repository_without_setup().await;
    assert_eq!(repository.get_version().await.unwrap(), None);
    repository.create_entity(NewEntity::new("user-2")).await.unwrap();
    assert_eq!(
        repository.get_version().await.unwrap().unwrap().schema_version,
        "0.8.0"
    );
    forget_version(&stage).await;
    repository.create_table().await.unwrap();
    assert!(repository.get_version().await.unwrap().is_some());
}

async fn an_old_table_without_a_record_is_not_passed_for_a_new_one(stage: Stage) {
    stage.repository().await;
    for old in [
        crate::store::migrations::old_limit("ENTITY#user-1", "#LIMIT#gpt-4#rpm", 30),
        crate::store::migrations::old_bucket("user-1", "gpt-4", "rpm", 10_000, 1_000_000, false),
    ] {
        forget_version(&stage).await;
        stage.put([old]).await;
        let repository = stage.repository().await;
        assert_eq!(repository.get_version().await.unwrap(), None);
        let refused = repository
            .create_entity(NewEntity::new("user-2"))
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, Error::Internal(Internal::IncompatibleSchema { reason, .. }) if reason.contains("run the migrations")),
            "{refused}"
        );
        assert_eq!(repository.get_version().await.unwrap(), None);
        let report = repository.migrate(Migrate::pending()).await.unwrap();
        assert_eq!(report.steps.iter().map(|step| step.found).sum::<u64>(), 1);
        assert_eq!(
            repository.get_version().await.unwrap().unwrap().schema_version,
            "0.8.0"
        );
    }
    let repository = stage.repository().await;
    repository.create_entity(NewEntity::new("user-2")).await.unwrap();
}

async fn the_record_of_a_later_release_is_left_alone(stage: Stage) {
    let repository = stage.repository().await;
    let stored = async || repository.get_version().await.unwrap().unwrap();
    for (schema, least) in [("0.10.0", "0.0.0"), ("0.8.0", "9.0.0")] {
        stage.put([of_version(schema, least)]).await;
        let refused = repository.write_version().await.unwrap_err();
        assert!(
            matches!(refused, Error::Internal(Internal::IncompatibleSchema { .. })),
            "{refused}"
        );
        assert_eq!(stored().await.client_min_version, least);
        assert_eq!(stored().await.schema_version, schema);
    }
    stage.put([of_version("0.8.3", "0.0.0")]).await;
    repository.write_version().await.unwrap();
    assert_eq!(
        stored().await.schema_version,
        "0.8.3",
        "a later mend of the same format"
    );
    for schema in ["0.7.0", "x"] {
        stage.put([of_version(schema, "0.0.0")]).await;
        repository.write_version().await.unwrap();
        assert_eq!(stored().await.schema_version, "0.8.0");
    }
}

#[tokio::test(start_paused = true)]
async fn the_record_of_a_later_release_is_left_alone_if_it_was_written_meanwhile() {
    let stage = Stage::faulty(Weather::Fair);
    let repository = stage.repository().await;
    stage.put([of_version("0.7.0", "0.0.0")]).await;
    let (client, table) = (stage.client().await, stage.name.clone());
    stage.faults().before("UpdateItem", async move {
        let put = client.put_item().table_name(table);
        let later = to_sdk(of_version("0.10.0", "0.0.0"));
        put.set_item(Some(later)).send().await.unwrap();
    });
    let refused = repository.write_version().await.unwrap_err();
    assert!(
        matches!(refused, Error::Internal(Internal::IncompatibleSchema { .. })),
        "{refused}"
    );
    let stored = repository.get_version().await.unwrap().unwrap();
    assert_eq!(stored.schema_version, "0.10.0");
}

#[tokio::test(start_paused = true)]
async fn a_table_that_may_not_be_scanned_gets_no_record_and_is_used() {
    let stage = Stage::faulty(Weather::Fair);
    stage.repository().await;
    forget_version(&stage).await;
    let repository = stage.repository_without_setup().await;
    stage.faults().always_for("Scan", Fault::Denied);
    repository.create_entity(NewEntity::new("user-1")).await.unwrap();
    assert_eq!(
        repository.get_version().await.unwrap(),
        None,
        "it may hold old items"
    );
}
