use zae_limiter_stack::{Change, Error, Kind, Stack, StackOptions};
use zae_limiter_template::model::{Export, LogicalId, Output};

use super::{has_item, put_item, stack, template};
use crate::support::{bare, code_of, ministack, name};

async fn memory(function: &str) -> Option<i32> {
    let found = ministack::clients()
        .lambda
        .get_function_configuration()
        .function_name(function)
        .send()
        .await;
    found.unwrap().memory_size
}

#[tokio::test]
async fn options_that_change_reach_the_resources() {
    let options = StackOptions::default();
    stack("update", &options).ensure().await.unwrap();
    put_item("update").await;
    assert_eq!(memory("update-aggregator").await, Some(256));

    let changed = options
        .to_builder()
        .lambda_memory(512)
        .log_retention_days(7)
        .usage_retention_days(30);
    let changed = changed
        .alarm_iterator_age_seconds(60)
        .audit_archive_glacier_days(10)
        .build()
        .unwrap();
    let outcome = stack("update", &changed).ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Updated);
    assert_eq!(memory("update-aggregator").await, Some(512));
    let deployed = template("update").await;
    let property = |pointer: &str| {
        deployed
            .pointer(&format!("/Resources/{pointer}"))
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(property("AggregatorLogGroup/Properties/RetentionInDays"), 7);
    assert_eq!(property("StreamIteratorAgeAlarm/Properties/Threshold"), 60000);
    assert!(
        property("AuditArchiveBucket/Properties/LifecycleConfiguration")
            .to_string()
            .contains("10")
    );
    assert_eq!(
        stack("update", &changed).ensure().await.unwrap().change,
        Change::None
    );
    assert!(has_item("update").await);
}

#[tokio::test]
async fn alarms_and_the_aggregator_can_be_removed() {
    let options = StackOptions::builder()
        .enable_audit_archival(false)
        .build()
        .unwrap();
    stack("smaller", &options).ensure().await.unwrap();
    let changed = options.to_builder().enable_alarms(false).build().unwrap();
    let plan = stack("smaller", &changed).plan().await.unwrap();
    assert!(
        plan.changes.iter().all(|change| change.kind == Kind::Remove),
        "{plan}"
    );
    assert_eq!(
        stack("smaller", &changed).ensure().await.unwrap().change,
        Change::Updated
    );

    let changed = changed.to_builder().enable_aggregator(false).build().unwrap();
    let outcome = stack("smaller", &changed).ensure().await.unwrap();
    assert_eq!(outcome.change, Change::Updated);
    assert!(!outcome.outputs.contains_key("AggregatorFunctionArn"));
    let gone = ministack::clients()
        .lambda
        .get_function()
        .function_name("smaller-aggregator")
        .send()
        .await;
    assert!(gone.is_err());
}

#[tokio::test]
async fn switching_the_archive_off_needs_the_buckets_name() {
    let options = StackOptions::builder().enable_alarms(false).build().unwrap();
    let bucket = stack("archive", &options).ensure().await.unwrap().outputs["AuditArchiveBucketName"].clone();
    let changed = options.to_builder().enable_audit_archival(false).build().unwrap();
    let error = stack("archive", &changed).ensure().await.unwrap_err();
    let Error::Guarded { refusals } = &error else {
        panic!("{error}")
    };
    assert_eq!(
        refusals
            .iter()
            .map(|refusal| refusal.what.as_str())
            .collect::<Vec<_>>(),
        ["AuditArchiveBucket"]
    );

    let allowed = stack("archive", &changed).allow_loss(["AuditArchiveBucket"]);
    assert_eq!(allowed.ensure().await.unwrap().change, Change::Updated);
    // It left the stack and is still there.
    ministack::clients()
        .s3
        .head_bucket()
        .bucket(bucket)
        .send()
        .await
        .unwrap();
}

#[tokio::test]
async fn h14_another_projection_is_refused_before_cloudformation_is_asked() {
    stack("projection", &bare()).ensure().await.unwrap();
    let changed = bare().to_builder().gsi2_projection("all").build().unwrap();
    let plan = stack("projection", &changed).plan().await.unwrap();
    assert!(
        plan.is_refused() && plan.basis == zae_limiter_stack::Basis::Templates,
        "{plan}"
    );
    let error = stack("projection", &changed)
        .allow_loss(["RateLimitsTable/GSI2"])
        .ensure()
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Guarded { refusals } if refusals[0].what == "RateLimitsTable/GSI2"),
        "{error}"
    );
    let sets = ministack::clients()
        .cloudformation
        .list_change_sets()
        .stack_name("projection")
        .send()
        .await
        .unwrap();
    assert!(sets.summaries().is_empty());
}

#[tokio::test]
async fn new_code_is_a_change_of_the_stack() {
    let options = StackOptions::default();
    stack("new-code", &options).ensure().await.unwrap();
    let code = "/Resources/ArchiverFunction/Properties/Code/S3Key";
    let before = template("new-code").await.pointer(code).cloned();
    let newer = stack("new-code", &options).code(code_of("#!/bin/sh\nsleep 2\n"));
    assert_eq!(newer.ensure().await.unwrap().change, Change::Updated);
    assert_ne!(template("new-code").await.pointer(code).cloned(), before);
}

#[tokio::test]
async fn m3_a_change_of_outputs_alone_is_made_although_change_sets_do_not_see_it() {
    stack("outputs", &bare()).ensure().await.unwrap();
    let with_output = |value: &'static str| {
        Stack::with_clients(name("outputs"), bare(), ministack::clients()).customize(move |model| {
            let output = Output {
                description: "The team".to_owned(),
                value: value.into(),
                export: Some(Export {
                    name: "outputs-Team".into(),
                }),
            };
            model.add_output(LogicalId::parse("Team")?, output)
        })
    };
    let outcome = with_output("blue").ensure().await.unwrap();
    assert_eq!(
        (outcome.change, outcome.outputs["Team"].as_str()),
        (Change::Updated, "blue")
    );
    assert_eq!(with_output("blue").ensure().await.unwrap().change, Change::None);
    let outcome = with_output("red").ensure().await.unwrap();
    assert_eq!(outcome.outputs["Team"], "red");
}

#[tokio::test]
async fn the_retention_of_audit_events_is_a_change_although_no_resource_has_it() {
    let days = |days| bare().to_builder().audit_retention_days(days).build().unwrap();
    let outcome = stack("retention", &days(90)).ensure().await.unwrap();
    assert_eq!(outcome.audit_retention_days, 90);
    let plan = stack("retention", &days(7)).plan().await.unwrap();
    assert!(plan.to_string().contains("AuditRetentionDays"), "{plan}");
    // The plan's retention counts, whatever the options of the one who applies it.
    let outcome = stack("retention", &bare()).apply(&plan).await.unwrap();
    assert_eq!(
        (outcome.change, outcome.audit_retention_days),
        (Change::Updated, 7)
    );
    let again = stack("retention", &days(7));
    assert_eq!(again.ensure().await.unwrap().change, Change::None);
    assert_eq!(again.deployed_options().await.unwrap(), days(7));
}

#[tokio::test]
async fn h7_a_stack_of_a_later_release_is_never_set_back() {
    stack("later", &bare()).ensure().await.unwrap();
    let mut newer = template("later").await;
    newer["Metadata"]["zae-limiter"]["version"] = "99.0.0".into();
    newer["Resources"]["RateLimitsTable"]["Properties"]["DeletionProtectionEnabled"] = true.into();
    let call = ministack::clients()
        .cloudformation
        .update_stack()
        .stack_name("later")
        .template_body(newer.to_string());
    call.send().await.unwrap();

    let outcome = stack("later", &bare()).ensure().await.unwrap();
    assert_eq!(outcome.version, "99.0.0");
    assert!(outcome.warnings[0].contains("99.0.0"), "{:?}", outcome.warnings);
    assert_eq!(template("later").await, newer);
    let plan = stack("later", &bare()).plan().await.unwrap();
    assert!(plan.is_empty() && plan.warnings.len() == 1, "{plan}");

    let allowed = stack("later", &bare()).allow_downgrade(true);
    assert_eq!(allowed.ensure().await.unwrap().change, Change::Updated);
}
