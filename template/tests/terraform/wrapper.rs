//! The module around the template, evaluated for the templates of several options.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};
use zae_limiter_template::{StackName, StackOptions, StackOptionsBuilder, Template, export, stack_tags};

use crate::terraform::archives::version_record;
use crate::terraform::compare::snake_case;
use crate::terraform::evaluate::{Evaluated, Module};
use crate::terraform::schema::Schema;
use crate::variants;

fn options() -> Vec<StackOptionsBuilder> {
    vec![
        StackOptions::builder(),
        variants::everything(),
        variants::nothing_optional(),
        variants::enterprise(),
        StackOptions::builder().enable_audit_archival(false),
    ]
}

/// The exported module of these options, evaluated with archives for both functions.
fn wrapper(options: StackOptionsBuilder) -> (Template, Evaluated) {
    let options = options.build().unwrap();
    let template = export::cloudformation(&options).unwrap();
    let files = export::terraform_wrapper(&options).unwrap();
    let files: BTreeMap<_, _> = files.into_iter().map(|file| (file.path, file.contents)).collect();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("template.json"), &files["template.json"]).unwrap();
    let outputs = template
        .output_names()
        .map(|name| (name.to_owned(), name.to_owned()));
    let module = Module::new(&files, folder.path().to_str().unwrap(), outputs.collect());
    let given = json!({
        "name": "limiter",
        "code_bucket": "code",
        "aggregator_zip": "a.zip",
        "archiver_zip": "b.zip",
        "tags": { "team": "platform" },
    });
    let evaluated = module.evaluate(given.as_object().unwrap()).unwrap();
    (template, evaluated)
}

fn resource<'a>(evaluated: &'a Evaluated, kind: &str, name: &str) -> Option<&'a Value> {
    evaluated.resources.get(&(kind.to_owned(), name.to_owned()))
}

#[test]
fn the_stack_has_the_template_its_parameters_and_the_tags_of_a_deployed_stack() {
    for options in options() {
        let expected_tags = options
            .clone()
            .tags([("team".to_owned(), "platform".to_owned())].into());
        let expected_tags = stack_tags(
            &StackName::parse("limiter").unwrap(),
            &expected_tags.build().unwrap(),
        );
        let (template, evaluated) = wrapper(options);
        let stack = resource(&evaluated, "aws_cloudformation_stack", "limiter").unwrap();
        assert_eq!(stack["template_body"], template.to_json());
        assert!(stack.get("template_url").is_none());
        assert_eq!(stack["capabilities"], json!(["CAPABILITY_NAMED_IAM"]));
        let taken = template.to_value().get("Parameters").and_then(Value::as_object);
        let taken: BTreeSet<_> = taken
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        let passed: BTreeSet<_> = stack["parameters"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(passed, taken);
        let tags: BTreeMap<String, String> = serde_json::from_value(stack["tags"].clone()).unwrap();
        let expected: BTreeMap<_, _> = expected_tags
            .into_iter()
            .map(|tag| (tag.key, tag.value))
            .collect();
        assert_eq!(tags, expected);
        for ((kind, name), value) in &evaluated.resources {
            let findings = Schema::read().findings("resource_schemas", kind, value);
            assert!(findings.is_empty(), "{kind}.{name}: {findings:#?}");
        }
    }
}

#[test]
fn the_module_has_an_output_for_each_of_the_templates() {
    for options in options() {
        let (template, evaluated) = wrapper(options);
        let expected: BTreeMap<_, _> = template
            .output_names()
            .map(|name| (snake_case(name), json!(format!("<{name}>"))))
            .collect();
        let made: BTreeMap<_, _> = evaluated
            .outputs
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect();
        assert_eq!(made, expected);
    }
}

#[test]
fn archives_of_two_modules_in_one_bucket_are_two_objects() {
    let (_, evaluated) = wrapper(StackOptions::builder());
    for (function, file) in [("aggregator", "a.zip"), ("archiver", "b.zip")] {
        let object = resource(&evaluated, "aws_s3_object", function).unwrap();
        assert_eq!(object["key"], format!("limiter/<sha256 of {file}>.zip"));
    }
    let (_, evaluated) = wrapper(variants::nothing_optional());
    assert!(resource(&evaluated, "aws_s3_object", "aggregator").is_none());
}

#[test]
fn the_version_record_is_the_one_of_a_client_and_outlives_the_module() {
    let (_, evaluated) = wrapper(StackOptions::builder());
    let record = resource(&evaluated, "aws_dynamodb_table_item", "version").unwrap();
    let item: Value = serde_json::from_str(record["item"].as_str().unwrap()).unwrap();
    assert_eq!(item, version_record());
    assert_eq!(record["lifecycle"][0]["prevent_destroy"], "true");
}

/// CloudFormation refuses a larger body in a request.
#[test]
fn a_large_template_is_an_object_of_the_bucket() {
    let topic = format!("arn:aws:sns:eu-central-1:123456789012:{}", "t".repeat(256));
    let (template, evaluated) = wrapper(variants::everything().alarm_sns_topic(topic));
    assert!(template.needs_upload());
    let stack = resource(&evaluated, "aws_cloudformation_stack", "limiter").unwrap();
    assert!(stack.get("template_body").is_none());
    assert_eq!(
        stack["template_url"],
        "https://s3.<AWS::Region>.<AWS::URLSuffix>/code/<template.Key>"
    );
    let object = resource(&evaluated, "aws_s3_object", "template").unwrap();
    assert_eq!(object["content"], template.to_json());
}
