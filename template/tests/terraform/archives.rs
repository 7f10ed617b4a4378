//! The code of the functions, and what survives.

use serde_json::{Value, json};
use zae_limiter_schema::{AttributeValue, Timestamp, VersionRecord};
use zae_limiter_template::{StackName, StackOptions, VERSION};

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
    let file = format!(
        "./.terraform/zae-limiter/limiter/aggregator-{}.zip",
        "a".repeat(64)
    );
    assert_eq!(released["filename"], file.as_str());
    let download = &evaluated.resources[&("terraform_data".to_owned(), "aggregator_archive".to_owned())];
    assert_eq!(
        download["triggers_replace"],
        json!(["limiter-aggregator", "a".repeat(64), "x86_64", "<plan>"]),
        "a missing file is downloaded again"
    );
    let command = download["provisioner"][0]["command"].as_str().unwrap();
    assert!(
        command.contains("https://example.com/releases/v1.2.3/zae-limiter-aggregator-x86_64.zip"),
        "{command}"
    );
    assert!(
        command.contains(&format!("grep --quiet '^{} '", "a".repeat(64))),
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
    let mut expected = vec!["aws_dynamodb_table", "aws_dynamodb_table_item"];
    let kinds = evaluated.resources.keys().map(|(kind, _)| kind.as_str());
    expected.extend(kinds.filter(|kind| kind.starts_with("aws_s3_bucket")));
    assert_eq!(expected.len(), 9);
    assert_eq!(protected, expected);
    let record = &evaluated.resources[&("aws_dynamodb_table_item".to_owned(), "version".to_owned())];
    assert_eq!(ignored(record), "[item]");
    let item: Value = serde_json::from_str(record["item"].as_str().unwrap()).unwrap();
    assert_eq!(item, version_record());
}

/// The attributes that Terraform leaves alone once a resource exists.
fn ignored(resource: &Value) -> String {
    let words = resource["lifecycle"][0]["ignore_changes"].as_str().unwrap();
    words.split_whitespace().collect()
}

/// The record that a client would write, as an item of Terraform. Without the release of a function, Python clients do not
/// update our functions.
pub(crate) fn version_record() -> Value {
    let record = VersionRecord::current(Timestamp::from_seconds(0), format!("terraform:{VERSION}"));
    let attribute = |(name, value): (String, AttributeValue)| {
        let value = match value {
            _ if name == "updated_at" => json!({ "S": "<now>" }),
            AttributeValue::S(text) => json!({ "S": text }),
            _ => json!({ "NULL": true }),
        };
        (name, value)
    };
    record.to_item().into_inner().into_iter().map(attribute).collect()
}

#[test]
fn a_mapping_keeps_its_place_in_the_stream() {
    let evaluated = evaluated(
        &StackName::parse("limiter").unwrap(),
        &with_code(StackOptions::builder()),
    );
    let mappings = evaluated
        .resources
        .iter()
        .filter(|((kind, _), _)| kind == "aws_lambda_event_source_mapping");
    let ignored: Vec<_> = mappings.map(|(_, mapping)| ignored(mapping)).collect();
    assert_eq!(ignored, ["[starting_position]", "[starting_position]"]);
}

/// Each of these once ended in a message of Terraform about null values.
#[test]
fn a_function_without_code_is_named_with_what_to_set() {
    let sums = |name: &str| json!({ "url": "https://example.com/r", "version": "1.2.3", "sha256": { "aggregator": (name == "aggregator").then(|| "a".repeat(64)), "archiver": (name == "archiver").then(|| "a".repeat(64)) } });
    let cases = [
        (json!({}), ["aggregator", "archiver"].as_slice()),
        (json!({ "code_bucket": "code" }), &["aggregator", "archiver"]),
        (
            json!({ "code_bucket": "code", "aggregator_code_key": "a.zip" }),
            &["archiver"],
        ),
        (json!({ "release": sums("aggregator") }), &["archiver"]),
        (
            json!({ "release": sums("archiver"), "code_bucket": "code" }),
            &["aggregator"],
        ),
        (
            json!({ "release": sums("aggregator"), "enable_audit_archival": false }),
            &[],
        ),
    ];
    for (mut given, functions) in cases {
        given["name"] = json!("limiter");
        let broken = module()
            .evaluate(given.as_object().unwrap())
            .err()
            .unwrap_or_default();
        assert_eq!(broken.len(), functions.len(), "{given}: {broken:?}");
        for (message, function) in broken.iter().zip(functions) {
            assert!(
                message.starts_with(&format!("The {function} has no code: set release")),
                "{message}"
            );
        }
    }
}

#[test]
fn archives_for_another_processor_are_refused() {
    let check = |directory: &str, architecture: &str| {
        let given =
            json!({ "name": "limiter", "code_directory": directory, "lambda_architecture": architecture });
        module().evaluate(given.as_object().unwrap()).map(|_| ()).is_ok()
    };
    assert!(check("target/functions/arm64", "arm64"));
    assert!(!check("target/functions/arm64", "x86_64"));
    assert!(check("archives", "arm64"));
}

/// A bucket that a stack left behind is imported under its own name; a prefix would replace it.
#[test]
fn an_imported_archive_keeps_its_name() {
    let given = json!({ "name": "limiter", "code_directory": "built", "archive_bucket_name": "limiter-auditarchivebucket-1a2b" });
    let evaluated = module().evaluate(given.as_object().unwrap()).unwrap();
    let bucket = &evaluated.resources[&("aws_s3_bucket".to_owned(), "audit_archive_bucket".to_owned())];
    assert_eq!(bucket["bucket"], "limiter-auditarchivebucket-1a2b");
    assert!(bucket.get("bucket_prefix").is_none());
    let both = json!({ "name": "limiter", "code_directory": "built", "archive_bucket_name": "abc", "archive_bucket": "abc" });
    assert!(module().evaluate(both.as_object().unwrap()).is_err());
}
