//! Data sources, and values that several resources use.

use zae_limiter_schema::VersionRecord;

use super::print::Part;
use crate::resources::LambdaFunction;
use crate::{MANAGED_BY_TERRAFORM, VERSION};

/// The longest function name.
const FUNCTION: usize = 64;

/// Where archives of a release are downloaded to.
pub(super) const DOWNLOADS: &str = "${path.root}/.terraform/zae-limiter";

pub(super) fn parts() -> Vec<Part> {
    let data = ["aws_caller_identity", "aws_partition", "aws_region"];
    let mut parts: Vec<_> = data
        .iter()
        .map(|kind| Part::new(format!("data \"{kind}\" \"current\" {{}}")))
        .collect();
    parts.push(Part::new(format!("locals {{\n{COMMON}\n{}\n}}", tags())));
    parts.extend(LambdaFunction::ALL.map(of_function));
    parts
}

const COMMON: &str = r#"
iam_name = var.regional_iam_names ? "${var.name}-${data.aws_region.current.id}" : var.name
role_name_format = var.role_name_format == null ? "{}" : var.role_name_format
policy_name_format = var.policy_name_format == null ? "{}" : var.policy_name_format
boundary_by_name = "arn:${data.aws_partition.current.partition}:iam::${data.aws_caller_identity.current.account_id}:policy/"
permissions_boundary = var.permission_boundary == null ? null : (startswith(var.permission_boundary, "arn:") ? var.permission_boundary : "${local.boundary_by_name}${var.permission_boundary}")
alarm_actions = var.alarm_sns_topic == null ? [] : [var.alarm_sns_topic]
creates_archive_bucket = local.has_archiver && var.archive_bucket == null
archive_bucket_name = var.archive_bucket != null ? var.archive_bucket : one(aws_s3_bucket.audit_archive_bucket[*].bucket)
archive_bucket_arn = var.archive_bucket != null ? "arn:${data.aws_partition.current.partition}:s3:::${var.archive_bucket}" : one(aws_s3_bucket.audit_archive_bucket[*].arn)
"#;

/// The tags that CloudFormation propagates from a stack to its resources, except for who manages them.
fn tags() -> String {
    format!(
        "tags = merge(var.tags, {{
           \"ManagedBy\" = \"{MANAGED_BY_TERRAFORM}\",
           \"zae-limiter:name\" = var.name,
           \"zae-limiter:version\" = \"{VERSION}\",
           \"zae-limiter:schema-version\" = \"{}\",
           \"zae-limiter:lambda-version\" = \"{VERSION}\",
           \"zae-limiter:type\" = \"limiter\",
         }})",
        VersionRecord::SCHEMA_VERSION
    )
}

fn of_function(function: LambdaFunction) -> Part {
    let (switch, short) = (function.switch(), function.role().component());
    let longest = FUNCTION - 1 - function.as_str().len();
    Part::new(format!(
        r#"locals {{
             has_{function} = var.{switch} && (var.create_iam || var.{function}_role_arn != null)
             creates_{function}_role = local.has_{function} && var.{function}_role_arn == null
             {function}_role_arn = var.{function}_role_arn != null ? var.{function}_role_arn : one(aws_iam_role.{function}_role[*].arn)
             {function}_function_name = length(var.name) > {longest} ? "${{var.name}}-{short}" : "${{var.name}}-{function}"
             {function}_directory = var.code_directory == null ? null : "${{var.code_directory}}/{function}.zip"
             {function}_archive = var.release == null ? local.{function}_directory : "{DOWNLOADS}/${{var.release.sha256.{function}}}.zip"
             uploads_{function} = local.has_{function} && var.code_bucket != null && var.{function}_code_key == null
             downloads_{function} = local.has_{function} && var.release != null && var.{function}_code_key == null
           }}"#
    ))
}
