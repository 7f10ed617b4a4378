//! Tables of other versions.

use zae_limiter::{Compatibility, ConfigChange, ConfigLevel, Error, NewEntity, VersionRecord};

use crate::support::{Stage, rpm};

on_every_store! {
    a_new_table_has_a_record_that_the_python_peer_can_live_with,
    a_table_of_another_format_is_refused_before_anything_is_written,
    a_table_that_tolerates_mismatches_is_used,
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
