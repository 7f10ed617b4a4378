//! Applications that build on the model.

#![allow(clippy::unwrap_used)]

use serde_json::json;
use zae_limiter_template::check::Rule;
use zae_limiter_template::model::sqs::{Queue, QueueEncryption};
use zae_limiter_template::model::{Export, LogicalId, Model, Output, Resource, Text, ids};
use zae_limiter_template::{Error, StackName, StackOptions};

use crate::variants;

fn model() -> Model {
    let name = StackName::parse("limiter").unwrap();
    Model::of_stack(&name, &StackOptions::default(), &variants::code()).unwrap()
}

fn id(text: &str) -> LogicalId {
    LogicalId::parse(text).unwrap()
}

#[test]
fn a_resource_of_the_application_stands_behind_ours_and_may_refer_to_them() {
    let mut model = model();
    let stream = Text::attribute(ids::TABLE, "StreamArn").to_value();
    let parameter = json!({ "Type": "String", "Value": stream });
    model
        .add_resource(
            id("StreamParameter"),
            Resource::new("AWS::SSM::Parameter", parameter),
        )
        .unwrap();
    let template = model.render().unwrap();
    assert_eq!(template.logical_ids().last(), Some("StreamParameter"));
    let value = &template.resource(&id("StreamParameter")).unwrap()["Properties"]["Value"];
    assert_eq!(*value, json!({ "Fn::GetAtt": ["RateLimitsTable", "StreamArn"] }));
}

#[test]
fn a_construct_of_the_application_is_checked_like_ours() {
    let mut model = model();
    let queue = Queue {
        queue_name: "limiter-mine".into(),
        message_retention_period: 60,
        visibility_timeout: 30,
        encryption: QueueEncryption::Managed { enabled: true },
    };
    let handle = model.add(id("Mine"), &queue).unwrap();
    assert_eq!(handle.arn().to_value(), json!({ "Fn::GetAtt": ["Mine", "Arn"] }));
    let Error::Rules { findings } = model.render().unwrap_err() else {
        unreachable!("only rules can fail")
    };
    let rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::QueueTls, Rule::QueueRetention]);
}

#[test]
fn a_rule_can_be_lifted_with_a_reason_for_one_resource() {
    let mut model = model();
    model
        .patch(&id("ArchiverDLQ"), "/MessageRetentionPeriod", json!(60))
        .unwrap();
    model
        .patch(&id("AggregatorDLQ"), "/MessageRetentionPeriod", json!(60))
        .unwrap();
    model.allow(
        Rule::QueueRetention,
        id("ArchiverDLQ"),
        "the archive is filled again from the table",
    );
    let error = model.render().unwrap_err().to_string();
    assert!(error.contains("AggregatorDLQ (queue-retention)"), "{error}");
    assert!(!error.contains("ArchiverDLQ"), "{error}");
}

#[test]
fn a_patch_changes_one_property_and_nothing_else() {
    let mut model = model();
    let before = model.render().unwrap();
    model
        .patch(&id("ArchiverFunction"), "/MemorySize", json!(1024))
        .unwrap();
    let after = model.render().unwrap();
    let mut expected = before.to_value().clone();
    expected["Resources"]["ArchiverFunction"]["Properties"]["MemorySize"] = json!(1024);
    assert_eq!(*after.to_value(), expected);
}

#[test]
fn a_patch_for_nothing_is_refused() {
    let mut model = model();
    let error = model.patch(&id("Nothing"), "/A", json!(1)).unwrap_err();
    assert!(matches!(error, Error::NoSuchResource { .. }), "{error}");
    let error = model.patch(&ids::TABLE, "TableName", json!("x")).unwrap_err();
    assert!(matches!(error, Error::Patch { .. }), "{error}");
    let error = model.remove_property(&ids::TABLE, "/Nothing").unwrap_err();
    assert!(matches!(error, Error::Patch { .. }), "{error}");
}

#[test]
fn an_id_is_taken_once() {
    let mut model = model();
    let topic = || Resource::new("AWS::SNS::Topic", json!({}));
    assert!(matches!(
        model.add_resource(ids::TABLE, topic()).unwrap_err(),
        Error::Taken { .. }
    ));
    model.add_resource(id("Topic"), topic()).unwrap();
    assert!(matches!(
        model.add_resource(id("Topic"), topic()).unwrap_err(),
        Error::Taken { .. }
    ));
    let output = Output {
        description: String::new(),
        value: "x".into(),
        export: None,
    };
    assert!(matches!(
        model.add_output(id("TableName"), output).unwrap_err(),
        Error::Taken { .. }
    ));
}

#[test]
fn an_output_is_exported_under_the_name_of_the_stack() {
    let output = |export: Option<&str>| Output {
        description: "Mine".to_owned(),
        value: Text::reference(ids::TABLE),
        export: export.map(|name| Export { name: name.into() }),
    };
    let mut good = model();
    good.add_output(id("Mine"), output(Some("limiter-Mine"))).unwrap();
    assert!(good.render().is_ok());
    for bad in [None, Some("Mine"), Some("limiter2-Mine")] {
        let mut model = model();
        model.add_output(id("Mine"), output(bad)).unwrap();
        let Error::Rules { findings } = model.render().unwrap_err() else {
            unreachable!("only rules can fail")
        };
        assert_eq!(
            findings.iter().map(|finding| finding.rule).collect::<Vec<_>>(),
            [Rule::OutputExport]
        );
    }
}
