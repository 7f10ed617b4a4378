//! The code of the functions, and what survives.

use serde_json::{Value, json};
use zae_limiter_template::{StackName, StackOptions};

use crate::terraform::compare::{evaluated, module, with_code};
use crate::terraform::evaluate::Evaluated;

fn function(given: &Value) -> (Evaluated, Value) {
    let evaluated = module().evaluate(given.as_object().unwrap()).unwrap();
    let function =
        evaluated.resources[&("aws_lambda_function".to_owned(), "aggregator_function".to_owned())].clone();
    (evaluated, function)
}

#[test]
fn archives_come_from_a_directory_a_release_or_a_bucket() {
    let (_, local) = function(&json!({ "name": "limiter", "code_directory": "built" }));
    assert_eq!(local["filename"], "built/aggregator.zip");
    assert_eq!(
        local["source_code_hash"],
        "<base64sha256 of built/aggregator.zip>"
    );
    assert!(local.get("s3_bucket").is_none());

    let sums = json!({ "aggregator": "a".repeat(64), "archiver": "b".repeat(64) });
    let release = json!({ "url": "https://example.com/releases", "version": "1.2.3", "sha256": sums });
    let (evaluated, released) = function(&json!({ "name": "limiter", "release": release }));
    let file = format!("./.terraform/zae-limiter/{}.zip", "a".repeat(64));
    assert_eq!(released["filename"], file.as_str());
    let download = &evaluated.resources[&("terraform_data".to_owned(), "aggregator_archive".to_owned())];
    let command = download["provisioner"][0]["command"].as_str().unwrap();
    assert!(
        command.contains("https://example.com/releases/v1.2.3/zae-limiter-aggregator-x86_64.zip"),
        "{command}"
    );
    assert!(
        command.ends_with(&format!("grep --quiet '^{} '", "a".repeat(64))),
        "{command}"
    );

    let (evaluated, uploaded) =
        function(&json!({ "name": "limiter", "code_directory": "built", "code_bucket": "code" }));
    assert_eq!(
        (&uploaded["s3_bucket"], &uploaded["s3_key"]),
        (&json!("code"), &json!("<aggregator_archive.Key>"))
    );
    let object = &evaluated.resources[&("aws_s3_object".to_owned(), "aggregator_archive".to_owned())];
    assert_eq!(
        object["key"], "limiter/<sha256 of built/aggregator.zip>.zip",
        "two modules in one bucket have two objects"
    );
}

#[test]
fn what_cloudformation_retains_and_the_version_record_survive() {
    let evaluated = evaluated(
        &StackName::parse("limiter").unwrap(),
        &with_code(StackOptions::builder()),
    );
    let protected: Vec<_> = evaluated
        .resources
        .iter()
        .filter(|(_, value)| value["lifecycle"][0]["prevent_destroy"] == "true")
        .map(|((kind, _), _)| kind.as_str())
        .collect();
    assert_eq!(
        protected,
        ["aws_dynamodb_table", "aws_dynamodb_table_item", "aws_s3_bucket"]
    );
    let record = &evaluated.resources[&("aws_dynamodb_table_item".to_owned(), "version".to_owned())];
    assert_eq!(
        record["lifecycle"][0]["ignore_changes"]
            .as_str()
            .unwrap()
            .split_whitespace()
            .collect::<String>(),
        "[item]"
    );
    let item: Value = serde_json::from_str(record["item"].as_str().unwrap()).unwrap();
    // Without the release of a function Python clients leave our functions alone.
    assert_eq!(item["lambda_version"], json!({ "NULL": true }));
    assert_eq!(item["schema_version"], json!({ "S": "0.8.0" }));
}
