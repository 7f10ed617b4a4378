//! Complete configurations that call the module.

use super::print::{Part, file};
use super::variables::{Variable, literal};
use crate::Error;
use crate::export::File;
use serde_json::{Value, json};

pub(super) fn files(variables: &[Variable]) -> Result<Vec<File>, Error> {
    let examples = [
        ("basic", basic()),
        ("complete", complete(variables)),
        ("existing-table", existing_table()),
    ];
    examples
        .into_iter()
        .map(|(name, parts)| Ok(File::new(&format!("examples/{name}/main.tf"), file(&parts)?)))
        .collect()
}

const PROVIDER: &str = "provider \"aws\" {\n region = \"eu-central-1\"\n }";
const TABLE_NAME: &str = "output \"table_name\" {\n value = module.limiter.table_name\n }";
const DIRECTORY: &str = "variable \"code_directory\" {
  description = \"Directory with aggregator.zip and archiver.zip.\"
  type = string
}";

fn basic() -> Vec<Part> {
    vec![
        Part::new(PROVIDER),
        Part::new(DIRECTORY),
        Part::new(
            "module \"limiter\" {
               source = \"../..\"
               name = \"limiter\"
               code_directory = var.code_directory
             }",
        ),
        Part::with_comment(
            "What an application needs to acquire.",
            "output \"acquire_policy_arn\" {\n value = module.limiter.acquire_only_policy_arn\n }",
        ),
        Part::new(TABLE_NAME),
    ]
}

/// Options that contradict others, or that need an object of the user's, stay at their default.
const LEFT_OUT: [&str; 7] = [
    "name",
    "aggregator_code_key",
    "archiver_code_key",
    "archive_bucket",
    "code_bucket",
    "code_directory",
    "release",
];

fn complete(variables: &[Variable]) -> Vec<Part> {
    let set = variables
        .iter()
        .filter(|variable| !LEFT_OUT.contains(&variable.name.as_str()))
        .map(|variable| format!("{} = {}\n", variable.name, sample(variable)));
    vec![
        Part::new(PROVIDER),
        Part::new(
            "variable \"release\" {
               description = \"Address of the project's releases, and the SHA-256 checksums of its archives.\"
               type = object({ url = string, sha256 = object({ aggregator = string, archiver = string }) })
             }",
        ),
        Part::new(format!(
            "module \"limiter\" {{
               source = \"../..\"
               name = \"limiter\"
               release = var.release
               {}
             }}",
            set.collect::<Vec<_>>().concat()
        )),
        Part::new(TABLE_NAME),
    ]
}

fn sample(variable: &Variable) -> String {
    let value = match variable.name.as_str() {
        "pitr_recovery_days" => json!(14),
        "kms_key_arn" => {
            json!("arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555")
        }
        "lambda_reserved_concurrency" => json!(10),
        "alarm_sns_topic" => json!("arn:aws:sns:eu-central-1:123456789012:ops"),
        "permission_boundary" => json!("company-boundary"),
        "role_name_format" | "policy_name_format" => json!("company-{}"),
        "aggregator_role_arn" => json!("arn:aws:iam::123456789012:role/limiter-aggregator"),
        "archiver_role_arn" => json!("arn:aws:iam::123456789012:role/limiter-archiver"),
        "audit_archive_object_lock_days" => json!(365),
        "tags" => json!({ "team": "platform" }),
        "enable_deletion_protection"
        | "enable_contributor_insights"
        | "enable_tracing"
        | "enable_dashboard"
        | "create_iam_roles" => json!(true),
        _ => variable.default.clone().unwrap_or(Value::Null),
    };
    literal(&value)
}

fn existing_table() -> Vec<Part> {
    vec![
        Part::new(PROVIDER),
        Part::new(DIRECTORY),
        Part::with_comment(
            "The table's name. Deleting a stack of this name leaves it behind.",
            "import {
               to = module.limiter.aws_dynamodb_table.rate_limits_table
               id = \"limiter\"
             }",
        ),
        Part::with_comment(
            "Another aggregator has counted the table's usage until now, and the table has its version record.",
            "module \"limiter\" {
               source = \"../..\"
               name = \"limiter\"
               code_directory = var.code_directory
               stream_start = \"latest\"
               write_version_record = false
             }",
        ),
        Part::new(TABLE_NAME),
    ]
}
