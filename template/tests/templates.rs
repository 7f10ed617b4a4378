//! The templates as a whole.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use zae_limiter_template::model::ids;
use zae_limiter_template::{
    CodeBucket, CodeLocation, Error, FunctionCode, LambdaFunction, StackName, StackOptions,
    StackOptionsBuilder, Template, VERSION, export, render, stack_tags, tags_of_user,
};

use crate::variants;

fn limiter() -> StackName {
    StackName::parse("limiter").unwrap()
}

/// All resources, the other choice of every option, and what no stack is without. `rendered` has the default options.
#[test]
fn templates_are_as_in_their_snapshots() {
    for (name, template) in variants::all() {
        if ["everything-on", "alternatives", "nothing-optional"].contains(&name) {
            insta::assert_snapshot!(name, template.to_yaml());
        }
    }
}

/// CloudFormation knows resources by these ids and types: a change deletes and creates.
#[test]
fn logical_ids_and_types_are_those_of_the_list() {
    let mut types = BTreeMap::new();
    for (_, template) in variants::all() {
        for (id, resource) in template.resources() {
            let kind = resource["Type"].as_str().unwrap().to_owned();
            let before = types.insert(id.to_owned(), kind.clone());
            assert!(before.is_none_or(|before| before == kind), "{id} has two types");
        }
    }
    let found: Vec<_> = types.iter().map(|(id, kind)| format!("{id} {kind}\n")).collect();
    let found = found.concat();
    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("logical-ids.txt")).unwrap();
    for line in list.lines() {
        assert!(
            found.lines().any(|known| known == line),
            "{line:?} was released and must stay for ever"
        );
    }
    assert_eq!(found, list, "add new ids to template/logical-ids.txt");
}

#[test]
fn the_same_options_render_to_the_same_bytes() {
    for ((name, one), (_, other)) in variants::all().into_iter().zip(variants::all()) {
        assert_eq!(one.to_json(), other.to_json(), "{name}");
        assert_eq!(one.to_yaml(), other.to_yaml(), "{name}");
    }
}

#[test]
fn a_template_tells_the_options_that_it_was_rendered_from() {
    for options in [
        StackOptions::builder(),
        variants::everything(),
        variants::everything()
            .snapshot_windows("monthly, hourly")
            .code_directory("elsewhere")
            .tags(BTreeMap::from([("team".to_owned(), "search".to_owned())])),
    ] {
        let options = options.build().unwrap();
        let template = render(&limiter(), &options, &variants::code()).unwrap();
        let parsed = Template::parse(&template.to_yaml()).unwrap();
        let stored = parsed.options().unwrap().unwrap();
        let text = serde_json::to_string(&template.to_value()["Metadata"]).unwrap();
        assert!(!text.contains("null") && !text.contains("elsewhere") && !text.contains("search"));
        let again = stored.tags(options.tags().clone()).build().unwrap();
        assert_eq!(again.snapshot_windows(), options.snapshot_windows());
        assert_eq!(render(&limiter(), &again, &variants::code()).unwrap(), template);
    }
    assert!(
        Template::parse("Resources: {}")
            .unwrap()
            .options()
            .unwrap()
            .is_none()
    );
}

#[test]
fn stored_options_alone_make_no_other_stack() {
    let rendered = |options: StackOptionsBuilder| {
        let options = options.enable_aggregator(false).enable_audit_archival(false);
        render(&limiter(), &options.build().unwrap(), &FunctionCode::none()).unwrap()
    };
    let bare = rendered(StackOptions::builder());
    let unused = rendered(StackOptions::builder().lambda_memory(512));
    assert_ne!(bare, unused);
    assert!(bare.deploys_the_same_as(&unused));
    let different = rendered(StackOptions::builder().enable_deletion_protection(true));
    assert!(!bare.deploys_the_same_as(&different));
    let retention = rendered(StackOptions::builder().audit_retention_days(7));
    assert!(
        !bare.deploys_the_same_as(&retention),
        "what no resource has is an output"
    );
}

#[test]
fn the_tags_of_a_user_are_those_that_the_stack_does_not_set() {
    let tags = BTreeMap::from([("team".to_owned(), "search".to_owned())]);
    let options = StackOptions::builder().tags(tags.clone()).build().unwrap();
    let mut all: BTreeMap<_, _> = stack_tags(&limiter(), &options)
        .into_iter()
        .map(|tag| (tag.key, tag.value))
        .collect();
    all.insert("aws:servicecatalog:portfolio".to_owned(), "1".to_owned());
    assert_eq!(tags_of_user(&all), tags);
}

#[test]
fn a_template_for_a_name_has_no_parameters_and_no_conditions() {
    for (name, template) in variants::all() {
        let exported = name.starts_with("export");
        assert_eq!(
            template.to_value().get("Parameters").is_some(),
            exported,
            "{name}"
        );
        assert!(template.to_value().get("Conditions").is_none(), "{name}");
        let table = &template.resource(&ids::TABLE).unwrap()["Properties"]["TableName"];
        assert_eq!(
            table.is_string(),
            !exported,
            "{name}: only a name that is written out can be imported"
        );
    }
}

#[test]
fn names_of_aws_resources_fit_their_limits() {
    let limits = [
        ("FunctionName", 64),
        ("RoleName", 64),
        ("ManagedPolicyName", 128),
        ("QueueName", 80),
        ("LogGroupName", 512),
        ("AlarmName", 255),
    ];
    for (variant, template) in variants::all() {
        for (id, resource) in template.resources() {
            for (property, most) in limits {
                let name = resource["Properties"]
                    .get(property)
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                assert!(name.len() <= most, "{variant}: {id} has {property} {name}");
            }
        }
    }
}

#[test]
fn names_are_those_that_users_know() {
    let options = variants::everything().build().unwrap();
    let template = render(&limiter(), &options, &variants::code()).unwrap();
    let name =
        |id: &str, property: &str| template.to_value()["Resources"][id]["Properties"][property].clone();
    for (id, property, expected) in [
        ("RateLimitsTable", "TableName", "limiter"),
        ("AggregatorFunction", "FunctionName", "limiter-aggregator"),
        ("ArchiverFunction", "FunctionName", "limiter-archiver"),
        (
            "AggregatorLogGroup",
            "LogGroupName",
            "/aws/lambda/limiter-aggregator",
        ),
        ("AggregatorDLQ", "QueueName", "limiter-aggregator-dlq"),
        ("AcquireOnlyPolicy", "ManagedPolicyName", "limiter-acq"),
        ("FullAccessPolicy", "ManagedPolicyName", "limiter-full"),
        ("ReadOnlyPolicy", "ManagedPolicyName", "limiter-read"),
        ("AggregatorRole", "RoleName", "limiter-aggr"),
        ("AppRole", "RoleName", "limiter-app"),
        ("AdminRole", "RoleName", "limiter-admin"),
        ("ReadOnlyRole", "RoleName", "limiter-read"),
    ] {
        assert_eq!(name(id, property), expected, "{id}");
    }
    assert!(
        name("AuditArchiveBucket", "BucketName").is_null(),
        "its name is CloudFormation's to make"
    );
}

#[test]
fn outputs_have_the_names_and_exports_that_other_stacks_import() {
    let options = variants::everything().build().unwrap();
    let template = render(&limiter(), &options, &variants::code()).unwrap();
    for (output, export) in [
        ("TableName", "TableName"),
        ("TableArn", "TableArn"),
        ("StreamArn", "StreamArn"),
        ("AggregatorFunctionArn", "AggregatorArn"),
        ("AggregatorFunctionName", "AggregatorName"),
        ("AggregatorDLQUrl", "DLQUrl"),
        ("AggregatorDLQArn", "DLQArn"),
        ("AggregatorDLQAlarmName", "DLQAlarmName"),
        ("LambdaErrorRateAlarmName", "LambdaErrorRateAlarmName"),
        ("LambdaDurationAlarmName", "LambdaDurationAlarmName"),
        ("DynamoDBReadThrottleAlarmName", "ReadThrottleAlarmName"),
        ("DynamoDBWriteThrottleAlarmName", "WriteThrottleAlarmName"),
        ("StreamIteratorAgeAlarmName", "StreamIteratorAgeAlarmName"),
        ("AuditArchiveBucketName", "AuditArchiveBucketName"),
        ("AuditArchiveBucketArn", "AuditArchiveBucketArn"),
        ("AcquireOnlyPolicyArn", "AcquireOnlyPolicyArn"),
        ("FullAccessPolicyArn", "FullAccessPolicyArn"),
        ("ReadOnlyPolicyArn", "ReadOnlyPolicyArn"),
        ("AppRoleArn", "AppRoleArn"),
        ("AppRoleName", "AppRoleName"),
        ("AdminRoleArn", "AdminRoleArn"),
        ("AdminRoleName", "AdminRoleName"),
        ("ReadOnlyRoleArn", "ReadOnlyRoleArn"),
        ("ReadOnlyRoleName", "ReadOnlyRoleName"),
        ("ArchiverFunctionArn", "ArchiverArn"),
        ("ArchiverFunctionName", "ArchiverName"),
        ("ArchiverDLQUrl", "ArchiverDLQUrl"),
        ("ArchiverDLQArn", "ArchiverDLQArn"),
    ] {
        let found = &template.to_value()["Outputs"][output]["Export"]["Name"];
        assert_eq!(*found, format!("limiter-{export}"), "{output}");
    }
}

#[test]
fn the_code_of_a_function_is_where_it_was_said_to_be() {
    let options = StackOptions::builder()
        .enable_audit_archival(false)
        .build()
        .unwrap();
    let code_of = |location: CodeLocation| {
        let code = FunctionCode::none().with(LambdaFunction::Aggregator, location);
        let template = render(&limiter(), &options, &code).unwrap();
        template.to_value()["Resources"]["AggregatorFunction"]["Properties"]["Code"].clone()
    };
    let artifacts = code_of(CodeLocation::Object {
        bucket: CodeBucket::Artifacts,
        key: "x.zip".to_owned(),
    });
    let bucket = serde_json::json!({ "Fn::Sub": "zae-limiter-artifacts-${AWS::AccountId}-${AWS::Region}" });
    assert_eq!(
        artifacts,
        serde_json::json!({ "S3Bucket": bucket, "S3Key": "x.zip" })
    );
    let deployed = serde_json::json!({ "S3Bucket": "b", "S3Key": "k", "S3ObjectVersion": "1" });
    assert_eq!(code_of(CodeLocation::Deployed(deployed.clone())), deployed);
    let given = StackOptions::builder()
        .code_bucket("mine")
        .aggregator_code_key("a.zip")
        .build()
        .unwrap();
    let object = FunctionCode::of(&given)
        .get(LambdaFunction::Aggregator)
        .unwrap()
        .clone();
    assert_eq!(
        code_of(object),
        serde_json::json!({ "S3Bucket": "mine", "S3Key": "a.zip" })
    );
}

#[test]
fn a_function_without_code_is_refused_with_advice() {
    let error = render(&limiter(), &StackOptions::default(), &FunctionCode::none()).unwrap_err();
    assert!(matches!(
        error,
        Error::CodeMissing {
            function: LambdaFunction::Aggregator
        }
    ));
    assert!(error.to_string().contains("enable_aggregator"), "{error}");
    let error = render(
        &limiter(),
        &StackOptions::builder().enable_aggregator(false).build().unwrap(),
        &FunctionCode::none(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("enable_audit_archival"), "{error}");
}

#[test]
fn a_template_tells_whose_it_is_and_what_stays() {
    let template = render(&limiter(), &StackOptions::default(), &variants::code()).unwrap();
    assert!(template.is_ours());
    assert_eq!(template.version(), Some(VERSION));
    assert_eq!(
        template.retained().collect::<Vec<_>>(),
        ["RateLimitsTable", "AuditArchiveBucket"]
    );
    let foreign = Template::parse("Resources: {}").unwrap();
    assert!(!foreign.is_ours());
    assert_eq!(foreign.version(), None);
}

#[test]
fn a_template_reads_back_from_both_of_its_texts() {
    for (name, template) in variants::all() {
        assert_eq!(Template::parse(&template.to_json()).unwrap(), template, "{name}");
        assert_eq!(Template::parse(&template.to_yaml()).unwrap(), template, "{name}");
    }
}

#[test]
fn an_exported_template_takes_code_as_parameters_of_the_functions_it_has() {
    let parameters = |options: StackOptions| {
        let template = export::cloudformation(&options).unwrap();
        let parameters = template
            .to_value()
            .get("Parameters")
            .and_then(Value::as_object)
            .cloned();
        parameters.unwrap_or_default().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        parameters(StackOptions::default()),
        ["CodeBucket", "AggregatorCodeKey", "ArchiverCodeKey"]
    );
    let no_archival = StackOptions::builder()
        .enable_audit_archival(false)
        .build()
        .unwrap();
    assert_eq!(parameters(no_archival), ["CodeBucket", "AggregatorCodeKey"]);
    assert!(parameters(variants::nothing_optional().build().unwrap()).is_empty());
}

#[test]
fn stack_tags_are_those_that_stacks_are_found_by_and_the_users() {
    let options = variants::everything().build().unwrap();
    let tags: BTreeMap<_, _> = stack_tags(&limiter(), &options)
        .into_iter()
        .map(|tag| (tag.key, tag.value))
        .collect();
    for (key, value) in [
        ("ManagedBy", "zae-limiter"),
        ("zae-limiter:name", "limiter"),
        ("zae-limiter:version", VERSION),
        ("zae-limiter:schema-version", "0.8.0"),
        ("zae-limiter:lambda-version", VERSION),
        ("zae-limiter:type", "limiter"),
        ("team", "platform"),
    ] {
        assert_eq!(tags.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(tags.len(), 7);
}
