//! Each rule finds what it is there for, and our own stacks keep them all.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zae_limiter_template::check::{Finding, Rule};
use zae_limiter_template::model::{Keep, LogicalId, Model, Resource};
use zae_limiter_template::{Error, StackName, StackOptions};

use crate::variants;

fn id(text: &str) -> LogicalId {
    LogicalId::parse(text).unwrap()
}

fn model() -> Model {
    let options = variants::enterprise().build().unwrap().to_builder();
    // Roles of the stack's own, so that there is something to break.
    let options = serde_json::to_value(options).unwrap();
    let mut options = options.as_object().unwrap().clone();
    options.insert("aggregator_role_arn".into(), Value::Null);
    options.insert("archiver_role_arn".into(), Value::Null);
    let options: StackOptions = serde_json::from_value(options.into()).unwrap();
    Model::of_stack(&StackName::parse("limiter").unwrap(), &options, &variants::code()).unwrap()
}

fn findings(model: &Model) -> Vec<Finding> {
    match model.render() {
        Ok(_) => vec![],
        Err(Error::Rules { findings }) => findings,
        Err(error) => panic!("{error}"),
    }
}

fn found(model: &Model) -> BTreeSet<(Rule, String)> {
    findings(model)
        .into_iter()
        .map(|finding| (finding.rule, finding.id))
        .collect()
}

/// What is found when one property of one resource has another value.
fn after_patch(resource: &str, pointer: &str, value: Value) -> BTreeSet<(Rule, String)> {
    let mut model = model();
    model.patch(&id(resource), pointer, value).unwrap();
    found(&model)
}

fn after_removal(resource: &str, pointer: &str) -> BTreeSet<(Rule, String)> {
    let mut model = model();
    model.remove_property(&id(resource), pointer).unwrap();
    found(&model)
}

fn only(rule: Rule, resource: &str) -> BTreeSet<(Rule, String)> {
    BTreeSet::from([(rule, resource.to_owned())])
}

#[test]
fn our_own_stacks_keep_every_rule() {
    // Rendering fails on a finding: that every variant renders is the proof.
    assert_eq!(variants::all().len(), 11);
    assert!(found(&model()).is_empty());
}

#[test]
fn our_own_exceptions_are_these() {
    let options = variants::everything().build().unwrap();
    let model = Model::of_stack(&StackName::parse("limiter").unwrap(), &options, &variants::code()).unwrap();
    let exceptions: BTreeSet<_> = model
        .exceptions()
        .iter()
        .map(|exception| {
            (
                exception.rule,
                exception.id.as_str(),
                exception.about.as_deref().unwrap_or("everything"),
            )
        })
        .collect();
    let mut expected = BTreeSet::new();
    for role in ["AggregatorRole", "ArchiverRole"] {
        for action in [
            "dynamodb:ListStreams",
            "xray:PutTelemetryRecords",
            "xray:PutTraceSegments",
        ] {
            expected.insert((Rule::WildcardResource, role, action));
        }
    }
    for action in ["cloudwatch:GetMetricStatistics", "lambda:ListEventSourceMappings"] {
        expected.insert((Rule::WildcardResource, "ReadOnlyPolicy", action));
    }
    assert_eq!(exceptions, expected);
}

#[test]
fn a_table_without_backups_is_found() {
    let pointer = "/PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled";
    assert_eq!(
        after_patch("RateLimitsTable", pointer, json!(false)),
        only(Rule::TableBackups, "RateLimitsTable")
    );
}

#[test]
fn a_table_without_expiry_or_with_another_attribute_is_found() {
    let expected = only(Rule::TableExpiry, "RateLimitsTable");
    assert_eq!(
        after_removal("RateLimitsTable", "/TimeToLiveSpecification"),
        expected
    );
    assert_eq!(
        after_patch(
            "RateLimitsTable",
            "/TimeToLiveSpecification/AttributeName",
            json!("expires")
        ),
        expected
    );
}

#[test]
fn a_table_without_both_images_in_its_stream_is_found() {
    let found = after_patch(
        "RateLimitsTable",
        "/StreamSpecification/StreamViewType",
        json!("NEW_IMAGE"),
    );
    assert_eq!(found, only(Rule::TableStream, "RateLimitsTable"));
}

#[test]
fn data_that_would_be_deleted_is_found() {
    let mut model = model();
    let table = json!({ "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": true } });
    model
        .add_resource(id("Other"), Resource::new("AWS::DynamoDB::Table", table.clone()))
        .unwrap();
    assert_eq!(found(&model), only(Rule::DataKept, "Other"));
    let kept = Resource::new("AWS::DynamoDB::Table", table).keep(Keep::Retain);
    let mut other = self::model();
    other.add_resource(id("Other"), kept).unwrap();
    assert!(found(&other).is_empty());
}

#[test]
fn a_queue_without_encryption_tls_or_retention_is_found() {
    assert_eq!(
        after_removal("AggregatorDLQ", "/SqsManagedSseEnabled"),
        only(Rule::QueueEncrypted, "AggregatorDLQ")
    );
    let found = after_patch("ArchiverDLQ", "/MessageRetentionPeriod", json!(345_600));
    assert_eq!(found, only(Rule::QueueRetention, "ArchiverDLQ"));
    let statement = "/PolicyDocument/Statement/0";
    let expected = only(Rule::QueueTls, "ArchiverDLQ");
    assert_eq!(after_removal("ArchiverDLQPolicy", statement), expected);
    assert_eq!(
        after_removal("ArchiverDLQPolicy", &format!("{statement}/Condition/Bool")),
        expected
    );
    assert_eq!(
        after_patch(
            "ArchiverDLQPolicy",
            &format!("{statement}/Effect"),
            json!("Allow")
        ),
        expected
    );
    let found = after_patch(
        "ArchiverDLQPolicy",
        "/Queues",
        json!([{ "Ref": "AggregatorDLQ" }]),
    );
    assert_eq!(found, expected);
}

#[test]
fn a_function_of_another_runtime_or_of_no_known_processor_is_found() {
    let expected = only(Rule::FunctionRuntime, "AggregatorFunction");
    assert_eq!(
        after_patch("AggregatorFunction", "/Runtime", json!("python3.12")),
        expected
    );
    assert_eq!(after_removal("AggregatorFunction", "/Architectures"), expected);
}

#[test]
fn a_function_whose_log_group_is_left_to_lambda_is_found() {
    assert_eq!(
        after_removal("ArchiverFunction", "/LoggingConfig"),
        only(Rule::FunctionLogs, "ArchiverFunction")
    );
}

#[test]
fn a_secret_in_the_environment_is_found_and_a_reference_to_one_is_not() {
    let set = |name: &str, value: Value| {
        after_patch(
            "ArchiverFunction",
            &format!("/Environment/Variables/{name}"),
            value,
        )
    };
    let expected = only(Rule::FunctionSecrets, "ArchiverFunction");
    assert_eq!(set("DB_PASSWORD", json!("hunter2")), expected);
    assert_eq!(set("SOMETHING", json!("AKIAIOSFODNN7EXAMPLE")), expected);
    assert!(set("API_TOKEN", json!({ "Ref": "AggregatorDLQ" })).is_empty());
    assert!(set("LOG_LEVEL", json!("debug")).is_empty());
}

#[test]
fn a_mapping_that_drops_failures_is_found() {
    let found = after_removal("ArchiverEventSourceMapping", "/DestinationConfig");
    assert_eq!(found, only(Rule::MappingFailures, "ArchiverEventSourceMapping"));
}

#[test]
fn a_bucket_that_is_open_bare_or_forgetful_is_found() {
    let bucket = "AuditArchiveBucket";
    let block = "/PublicAccessBlockConfiguration";
    for switch in [
        "BlockPublicAcls",
        "BlockPublicPolicy",
        "IgnorePublicAcls",
        "RestrictPublicBuckets",
    ] {
        let found = after_patch(bucket, &format!("{block}/{switch}"), json!(false));
        assert_eq!(found, only(Rule::BucketPrivate, bucket), "{switch}");
    }
    assert_eq!(
        after_removal(bucket, "/BucketEncryption"),
        only(Rule::BucketEncrypted, bucket)
    );
    let found = after_patch(bucket, "/VersioningConfiguration/Status", json!("Suspended"));
    assert_eq!(found, only(Rule::BucketVersioned, bucket));
    assert_eq!(
        after_removal(bucket, "/LifecycleConfiguration/Rules/0"),
        only(Rule::BucketLifecycle, bucket)
    );
    assert_eq!(
        after_removal(bucket, "/LifecycleConfiguration/Rules/1"),
        only(Rule::BucketLifecycle, bucket)
    );
    let found = after_patch(
        "AuditArchiveBucketPolicy",
        "/PolicyDocument/Statement/0/Action",
        json!(["s3:GetObject"]),
    );
    assert_eq!(found, only(Rule::BucketTls, bucket));
}

#[test]
fn a_log_group_that_never_forgets_is_found() {
    let found = after_removal("AggregatorLogGroup", "/RetentionInDays");
    assert_eq!(found, only(Rule::LogRetention, "AggregatorLogGroup"));
}

#[test]
fn actions_with_wildcards_are_found() {
    for action in ["dynamodb:*", "*", "dynamodb:Get*", "dynamodb:?etItem"] {
        let found = after_patch(
            "FullAccessPolicy",
            "/PolicyDocument/Statement/0/Action/-",
            json!(action),
        );
        assert_eq!(found, only(Rule::NamedActions, "FullAccessPolicy"), "{action}");
    }
    let found = after_patch(
        "FullAccessPolicy",
        "/PolicyDocument/Statement/0/NotAction",
        json!(["dynamodb:Scan"]),
    );
    assert_eq!(found, only(Rule::NamedActions, "FullAccessPolicy"));
}

#[test]
fn a_resource_of_everything_is_found_even_where_another_one_is_allowed() {
    let found = after_patch(
        "ReadOnlyPolicy",
        "/PolicyDocument/Statement/0/Resource",
        json!("*"),
    );
    assert_eq!(found, only(Rule::WildcardResource, "ReadOnlyPolicy"));
    let found = after_patch(
        "AggregatorRole",
        "/Policies/0/PolicyDocument/Statement/0/Resource/-",
        json!("*"),
    );
    assert_eq!(found, only(Rule::WildcardResource, "AggregatorRole"));
}

#[test]
fn a_policy_of_awss_making_is_found() {
    for policy in [
        json!("arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"),
        json!({ "Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/PowerUserAccess" }),
    ] {
        let found = after_patch("AppRole", "/ManagedPolicyArns/-", policy);
        assert_eq!(found, only(Rule::ManagedByAws, "AppRole"));
    }
}

#[test]
fn a_role_without_the_boundary_is_found() {
    assert_eq!(
        after_removal("AdminRole", "/PermissionsBoundary"),
        only(Rule::RoleBoundary, "AdminRole")
    );
    let found = after_patch(
        "AggregatorRole",
        "/PermissionsBoundary",
        json!("arn:aws:iam::aws:policy/Other"),
    );
    assert_eq!(found, only(Rule::RoleBoundary, "AggregatorRole"));
}

#[test]
fn an_alarm_that_tells_nobody_is_found() {
    let found = after_removal("AggregatorDLQAlarm", "/AlarmActions");
    assert_eq!(found, only(Rule::AlarmAction, "AggregatorDLQAlarm"));
    let found = after_removal("ArchiverDLQAlarm", "/TreatMissingData");
    assert_eq!(found, only(Rule::AlarmSilence, "ArchiverDLQAlarm"));
}

#[test]
fn throttles_that_nobody_watches_are_found() {
    let expected = only(Rule::ThrottlesWatched, "RateLimitsTable");
    for of in ["DynamoDB", "GSI1", "GSI2", "GSI3"] {
        for what in ["Read", "Write"] {
            let found = after_patch(
                &format!("{of}{what}ThrottleAlarm"),
                "/MetricName",
                json!("SystemErrors"),
            );
            assert_eq!(found, expected, "{of} {what}");
        }
    }
    let computed = json!([
        { "MetricStat": { "Metric": { "MetricName": "WriteThrottleEvents", "Dimensions": [
            { "Name": "TableName", "Value": { "Ref": "RateLimitsTable" } },
            { "Name": "GlobalSecondaryIndexName", "Value": "GSI2" },
        ] } } },
    ]);
    let mut model = model();
    model
        .remove_property(&id("GSI2WriteThrottleAlarm"), "/MetricName")
        .unwrap();
    model
        .patch(&id("GSI2WriteThrottleAlarm"), "/Metrics", computed)
        .unwrap();
    assert!(found(&model).is_empty(), "a computed alarm counts too");
}

#[test]
fn every_rule_is_broken_by_a_test_above_or_below() {
    let source = [include_str!("rules.rs"), include_str!("model.rs")].concat();
    for rule in Rule::ALL {
        assert!(
            source.contains(&format!("Rule::{rule:?}")),
            "{rule:?} has no test"
        );
    }
}
