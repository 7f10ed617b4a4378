//! The module of limits files is the template of the provisioner.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zae_limiter_template::{Architecture, StackOptions, Template, export};

use crate::terraform::compare::{compare_resources, files_below, snake_case};
use crate::terraform::evaluate::{Evaluated, Module};
use crate::terraform::schema::Schema;
use crate::variants;

const LIMITS: &str = "system: {limits: {rpm: 100}}";

fn ids(template: &Template) -> BTreeMap<String, String> {
    let ids = template
        .resources()
        .map(|(id, _)| (snake_case(id), id.to_owned()));
    ids.collect()
}

fn module() -> Module {
    let template = export::limits_provisioner(&StackOptions::default()).unwrap();
    Module::new(&files_below("modules/limits/"), "modules/limits", ids(&template))
}

fn given() -> Value {
    json!({
        "table_name": "limiter",
        "archive": "provisioner.zip",
        "limits": LIMITS,
        "tags": { "team": "platform" },
    })
}

fn evaluated(given: &Value) -> Evaluated {
    let evaluated = module().evaluate(given.as_object().unwrap());
    evaluated.unwrap_or_else(|broken| panic!("{broken:#?}"))
}

/// The options of the stack that the module has variables for, by their names.
const OPTIONS: [&str; 11] = [
    "alarm_sns_topic",
    "enable_alarms",
    "enable_tracing",
    "iam_path",
    "kms_key_arn",
    "lambda_security_group_ids",
    "lambda_subnet_ids",
    "log_retention_days",
    "permission_boundary",
    "regional_iam_names",
    "role_name_format",
];

#[test]
fn the_module_is_the_template() {
    let variants = [
        StackOptions::builder(),
        StackOptions::builder().lambda_architecture(Architecture::Arm64),
        StackOptions::builder().enable_alarms(false),
        variants::everything(),
        variants::enterprise(),
        variants::alternatives(),
        variants::everything()
            .log_retention_days(7)
            .role_name_format("pb-{}")
            .regional_iam_names(true),
    ];
    for options in variants.map(|options| options.build().unwrap()) {
        let template = export::limits_provisioner(&options).unwrap();
        let mut given = given();
        given["architecture"] = json!(options.lambda_architecture().as_str());
        let values = serde_json::to_value(options.to_builder()).unwrap();
        for option in OPTIONS {
            given[option] = values[option].clone();
        }
        let mut evaluated = evaluated(&given);
        let name = (
            "aws_lambda_function".to_owned(),
            "provisioner_function".to_owned(),
        );
        let function = evaluated.resources.get_mut(&name).unwrap();
        // The module sends the archive itself; the template takes it from a bucket.
        assert_eq!(function["filename"], "provisioner.zip");
        assert_eq!(function["source_code_hash"], "<base64sha256 of provisioner.zip>");
        let function = function.as_object_mut().unwrap();
        function.remove("filename");
        function.remove("source_code_hash");
        function.insert("s3_bucket".to_owned(), json!("archives"));
        function.insert("s3_key".to_owned(), json!("provisioner.zip"));
        let parameters = [
            ("TableName", "limiter"),
            ("CodeBucket", "archives"),
            ("ProvisionerCodeKey", "provisioner.zip"),
            ("Architecture", options.lambda_architecture().as_str()),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let ids = ids(&template);
        let template = template.resolved("limiter-limits", &parameters.into());
        let tags = BTreeMap::from([("team".to_owned(), "platform".to_owned())]);
        compare_resources(&evaluated, &template, &ids, &tags);
    }
}

/// Two modules for one table have two owners, so that the destruction of one leaves the limits of the other alone.
#[test]
fn the_file_is_sent_with_an_owner_on_every_change_and_on_destroy() {
    let evaluated = evaluated(&given());
    let invocation = &evaluated.resources[&("aws_lambda_invocation".to_owned(), "limits".to_owned())];
    assert_eq!(invocation["lifecycle_scope"], "CRUD");
    let input: Value = serde_json::from_str(invocation["input"].as_str().unwrap()).unwrap();
    assert_eq!(
        input,
        json!({ "Owner": "terraform:<owner.Id>", "ResourceProperties": { "Limits": LIMITS } })
    );
    assert!(
        evaluated
            .resources
            .contains_key(&("terraform_data".to_owned(), "owner".to_owned()))
    );
    assert_eq!(evaluated.outputs["result"], "<decoded <limits.Result>>");
}

#[test]
fn the_module_refuses_what_the_template_refuses() {
    for (variable, value) in [
        ("table_name", "a"),
        ("table_name", "1abc"),
        ("architecture", "riscv"),
    ] {
        let mut given = given();
        given[variable] = json!(value);
        let broken = module().evaluate(given.as_object().unwrap()).map(|_| ());
        assert_eq!(broken.unwrap_err().len(), 1, "{variable} = {value}");
    }
}

/// The data source that `docs/infra/limits.md` shows.
#[test]
fn a_plan_can_be_asked_for_with_a_data_source() {
    let page = include_str!("../../../docs/infra/limits.md");
    let block = page
        .split("```hcl")
        .find(|block| block.contains("data \"aws_lambda_invocation\""))
        .unwrap();
    let body = hcl::parse(block.split("```").next().unwrap()).unwrap();
    let source = body.blocks().next().unwrap();
    let mut attributes = serde_json::Map::new();
    for attribute in source.body().attributes() {
        attributes.insert(attribute.key().to_owned(), json!("text"));
    }
    let findings =
        Schema::read().findings("data_source_schemas", "aws_lambda_invocation", &attributes.into());
    assert!(findings.is_empty(), "{findings:#?}");
}
