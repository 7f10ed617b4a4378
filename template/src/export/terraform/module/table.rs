//! The table, and the record of its version.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::text::{snake_case, version_record};
use super::print::Part;
use super::source::Source;
use crate::model::ids;
use zae_limiter_schema::keys::GSI2;

pub(super) fn parts(source: &Source) -> Vec<Part> {
    let name = snake_case(ids::TABLE.as_str());
    vec![
        Part::with_comment(
            "CloudFormation retains the table; here it cannot be destroyed. The README says how to remove it.",
            table(&name, source),
        ),
        Part::new(format!(
            "resource \"aws_dynamodb_contributor_insights\" \"{name}\" {{
               count      = var.enable_contributor_insights ? 1 : 0
               table_name = aws_dynamodb_table.{name}.name
             }}"
        )),
        Part::with_comment(
            "Clients write this record if it is missing, and update it: it is written once, and left alone.",
            version(&name),
        ),
    ]
}

fn table(name: &str, source: &Source) -> String {
    let properties = source.properties(&ids::TABLE);
    let plain = |pointer: &str| source.expression(properties.pointer(pointer).unwrap_or(&Value::Null));
    let key = |place: usize| plain(&format!("/KeySchema/{place}/AttributeName"));
    let mut blocks = String::new();
    for attribute in list(&properties["AttributeDefinitions"]) {
        let _ = write!(
            blocks,
            "attribute {{\n name = {}\n type = {}\n }}\n",
            attribute["AttributeName"], attribute["AttributeType"]
        );
    }
    for index in list(&properties["GlobalSecondaryIndexes"]) {
        let projection = if index["IndexName"] == GSI2 {
            "var.gsi2_projection == \"all\" ? \"ALL\" : \"KEYS_ONLY\"".to_owned()
        } else {
            index["Projection"]["ProjectionType"].to_string()
        };
        let _ = write!(
            blocks,
            "global_secondary_index {{\n name = {}\n hash_key = {}\n range_key = {}\n projection_type = {projection}\n }}\n",
            index["IndexName"],
            index["KeySchema"][0]["AttributeName"],
            index["KeySchema"][1]["AttributeName"],
        );
    }
    format!(
        "resource \"aws_dynamodb_table\" \"{name}\" {{
           name = {table_name}
           billing_mode = {billing}
           hash_key = {hash}
           range_key = {range}
           stream_enabled = true
           stream_view_type = {view}
           deletion_protection_enabled = var.enable_deletion_protection
           tags = merge(local.tags, {{ {application} = {value} }})
           {blocks}
           ttl {{
             attribute_name = {ttl}
             enabled = {ttl_enabled}
           }}
           point_in_time_recovery {{
             enabled = {recovery}
             recovery_period_in_days = var.pitr_recovery_days
           }}
           dynamic \"server_side_encryption\" {{
             for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]
             content {{
               enabled = true
               kms_key_arn = server_side_encryption.value
             }}
           }}
           lifecycle {{
             prevent_destroy = true
             {preconditions}
           }}
         }}",
        table_name = plain("/TableName"),
        billing = plain("/BillingMode"),
        hash = key(0),
        range = key(1),
        view = plain("/StreamSpecification/StreamViewType"),
        application = plain("/Tags/0/Key"),
        value = plain("/Tags/0/Value"),
        ttl = plain("/TimeToLiveSpecification/AttributeName"),
        ttl_enabled = plain("/TimeToLiveSpecification/Enabled"),
        recovery = plain("/PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled"),
        preconditions = contradictions(),
    )
}

/// Options that are fine alone and not together.
fn contradictions() -> String {
    let rules = [
        (
            "!var.create_iam_roles || var.create_iam",
            "create_iam_roles must be false when create_iam is false.",
        ),
        (
            "var.archive_bucket == null || var.audit_archive_object_lock_days == null",
            "audit_archive_object_lock_days must not be set together with archive_bucket, which the module leaves as it is.",
        ),
        (
            "var.code_bucket != null || (var.aggregator_code_key == null && var.archiver_code_key == null)",
            "aggregator_code_key and archiver_code_key need code_bucket, the bucket that has them.",
        ),
    ];
    let block = |(condition, message): &(&str, &str)| {
        format!("precondition {{\n condition = {condition}\n error_message = \"{message}\"\n }}\n")
    };
    rules.iter().map(block).collect::<Vec<_>>().concat()
}

fn version(table: &str) -> String {
    let attributes = version_record();
    let lines: Vec<_> = attributes
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    format!(
        "resource \"aws_dynamodb_table_item\" \"version\" {{
           count = var.write_version_record ? 1 : 0
           table_name = aws_dynamodb_table.{table}.name
           hash_key = aws_dynamodb_table.{table}.hash_key
           range_key = aws_dynamodb_table.{table}.range_key
           item = jsonencode({{ {} }})
           lifecycle {{
             prevent_destroy = true
             ignore_changes = [item]
           }}
         }}",
        lines.join(", ")
    )
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
