//! Tables of other versions.

use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter::{Compatibility, ConfigChange, ConfigLevel, Error, Migrate, NewEntity, VersionRecord};

use crate::support::{Stage, rpm};

on_every_store! {
    a_new_table_has_a_record_that_the_python_peer_can_live_with,
    a_table_of_another_format_is_refused_before_anything_is_written,
    a_table_that_tolerates_mismatches_is_used,
    a_table_without_a_record_gets_one,
    an_old_table_without_a_record_is_not_passed_for_a_new_one,
    the_record_of_a_later_release_is_left_alone,
}

async fn a_new_table_has_a_record_that_the_python_peer_can_live_with(stage: Stage) {
    let limiter = stage.limiter().await;
    let record = limiter.version().await.unwrap().unwrap();
    assert_eq!(
        (record.schema_version.as_str(), record.client_min_version.as_str()),
        ("0.8.0", "0.0.0")
    );
    assert_eq!(
        record.lambda_version, None,
        "anything else makes the peer overwrite our function"
    );
    assert_eq!(
        limiter.compatibility().await.unwrap(),
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
    stage.limiter().await;
    for (schema, least) in [
        ("0.7.0", "0.0.0"),
        ("0.10.0", "0.0.0"),
        ("1.0.0", "0.0.0"),
        ("0.8.0", "9.0.0"),
        ("x", "0.0.0"),
    ] {
        stage.put([of_version(schema, least)]).await;
        let limiter = stage.limiter().await;
        for result in [
            limiter.create_entity(NewEntity::new("user-1")).await.map(drop),
            limiter.set_system_defaults([rpm(1)]).await.map(drop),
            limiter.resolve_limits("user-1", "gpt-4").await.map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, Error::IncompatibleSchema { schema: s, .. } if s == schema),
                "{schema}: {error}"
            );
            assert!(!error.is_unavailable());
        }
        assert_eq!(limiter.get_entity("user-1").await.unwrap(), None);
    }
}

async fn a_table_that_tolerates_mismatches_is_used(stage: Stage) {
    let limiter = stage.limiter().await;
    limiter
        .set_config(&ConfigLevel::System, ConfigChange::new().strict_version(false))
        .await
        .unwrap();
    stage.put([of_version("0.9.0", "0.0.0")]).await;
    let limiter = stage.limiter().await;
    limiter.set_system_defaults([rpm(1)]).await.unwrap();
    assert_eq!(
        limiter
            .resolve_limits("user-1", "gpt-4")
            .await
            .unwrap()
            .limits
            .len(),
        1
    );
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
    let limiter = stage.limiter().await;
    limiter.create_entity(NewEntity::new("user-1")).await.unwrap();
    forget_version(&stage).await;
    let limiter = stage.builder().create_table(false).await.unwrap();
    assert_eq!(limiter.version().await.unwrap(), None);
    limiter.create_entity(NewEntity::new("user-2")).await.unwrap();
    assert_eq!(limiter.version().await.unwrap().unwrap().schema_version, "0.8.0");
    forget_version(&stage).await;
    limiter.create_table().await.unwrap();
    assert!(limiter.version().await.unwrap().is_some());
}

async fn an_old_table_without_a_record_is_not_passed_for_a_new_one(stage: Stage) {
    stage.limiter().await;
    for old in [
        crate::migrations::old_limit("ENTITY#user-1", "#LIMIT#gpt-4#rpm", 30),
        crate::migrations::old_bucket("user-1", "gpt-4", "rpm", 10_000, 1_000_000, false),
    ] {
        forget_version(&stage).await;
        stage.put([old]).await;
        let limiter = stage.limiter().await;
        assert_eq!(limiter.version().await.unwrap(), None);
        let refused = limiter.create_entity(NewEntity::new("user-2")).await.unwrap_err();
        assert!(
            matches!(&refused, Error::IncompatibleSchema { reason, .. } if reason.contains("run the migrations")),
            "{refused}"
        );
        assert_eq!(limiter.version().await.unwrap(), None);
        let report = limiter.migrate(Migrate::pending()).await.unwrap();
        assert_eq!(report.steps.iter().map(|step| step.found).sum::<u64>(), 1);
        assert_eq!(limiter.version().await.unwrap().unwrap().schema_version, "0.8.0");
    }
    let limiter = stage.limiter().await;
    limiter.create_entity(NewEntity::new("user-2")).await.unwrap();
}

async fn the_record_of_a_later_release_is_left_alone(stage: Stage) {
    let limiter = stage.limiter().await;
    let stored = async || limiter.version().await.unwrap().unwrap();
    for (schema, least) in [("0.10.0", "0.0.0"), ("0.8.0", "9.0.0")] {
        stage.put([of_version(schema, least)]).await;
        let refused = limiter.write_version().await.unwrap_err();
        assert!(matches!(refused, Error::IncompatibleSchema { .. }), "{refused}");
        assert_eq!(stored().await.client_min_version, least);
        assert_eq!(stored().await.schema_version, schema);
    }
    stage.put([of_version("0.8.3", "0.0.0")]).await;
    limiter.write_version().await.unwrap();
    assert_eq!(
        stored().await.schema_version,
        "0.8.3",
        "a later mend of the same format"
    );
    for schema in ["0.7.0", "x"] {
        stage.put([of_version(schema, "0.0.0")]).await;
        limiter.write_version().await.unwrap();
        assert_eq!(stored().await.schema_version, "0.8.0");
    }
}
