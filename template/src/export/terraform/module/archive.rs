//! The archive bucket of audit events. The AWS provider has a resource for each part of a bucket.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::text::snake_case;
use super::iam;
use super::print::Part;
use super::source::Source;
use crate::model::ids;

const CREATED: &str = "local.creates_archive_bucket";

pub(super) fn parts(source: &Source) -> Vec<Part> {
    let name = snake_case(ids::ARCHIVE_BUCKET.as_str());
    let properties = source.properties(&ids::ARCHIVE_BUCKET);
    let mut parts = vec![Part::with_comment(
        "CloudFormation retains the archive; here it cannot be destroyed. The README says how to remove it.",
        format!(
            "resource \"aws_s3_bucket\" \"{name}\" {{
               count = {CREATED} ? 1 : 0
               bucket_prefix = \"${{substr(lower(var.name), 0, 30)}}-audit-\"
               object_lock_enabled = var.audit_archive_object_lock_days != null
               tags = local.tags
               lifecycle {{
                 prevent_destroy = true
               }}
             }}"
        ),
    )];
    let part = |kind: &str, created: &str, body: &str| {
        Part::new(format!(
            "resource \"aws_s3_bucket_{kind}\" \"{name}\" {{
               count = {created} ? 1 : 0
               bucket = aws_s3_bucket.{name}[0].bucket
               {body}
             }}"
        ))
    };
    parts.push(part(
        "server_side_encryption_configuration",
        CREATED,
        "rule {
           bucket_key_enabled = var.kms_key_arn == null ? null : true
           apply_server_side_encryption_by_default {
             sse_algorithm = var.kms_key_arn == null ? \"AES256\" : \"aws:kms\"
             kms_master_key_id = var.kms_key_arn
           }
         }",
    ));
    let versioning = &properties["VersioningConfiguration"]["Status"];
    parts.push(part(
        "versioning",
        CREATED,
        &format!("versioning_configuration {{\n status = {versioning}\n }}"),
    ));
    let public = properties["PublicAccessBlockConfiguration"].as_object();
    let public = public
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{} = {value}\n", snake_case(key)));
    parts.push(part(
        "public_access_block",
        CREATED,
        &public.collect::<Vec<_>>().concat(),
    ));
    let ownership = &properties["OwnershipControls"]["Rules"][0]["ObjectOwnership"];
    parts.push(part(
        "ownership_controls",
        CREATED,
        &format!("rule {{\n object_ownership = {ownership}\n }}"),
    ));
    let rules = properties["LifecycleConfiguration"]["Rules"].as_array();
    let rules = rules.into_iter().flatten().map(rule);
    parts.push(part(
        "lifecycle_configuration",
        CREATED,
        &format!(
            "depends_on = [aws_s3_bucket_versioning.{name}]\n{}",
            rules.collect::<Vec<_>>().concat()
        ),
    ));
    parts.push(part(
        "object_lock_configuration",
        &format!("{CREATED} && var.audit_archive_object_lock_days != null"),
        "rule {
           default_retention {
             mode = upper(var.audit_archive_object_lock_mode)
             days = var.audit_archive_object_lock_days
           }
         }",
    ));
    parts.extend(iam::resource_policy(
        source,
        &ids::ARCHIVE_BUCKET_POLICY,
        "aws_s3_bucket_policy",
        &format!("bucket = aws_s3_bucket.{name}[0].bucket"),
        CREATED,
    ));
    parts
}

fn rule(rule: &Value) -> String {
    let prefix = rule
        .get("Prefix")
        .map(|prefix| format!("prefix = {prefix}\n"))
        .unwrap_or_default();
    let mut body = format!(
        "id = {}\n status = {}\n filter {{\n{prefix}}}\n",
        rule["Id"], rule["Status"]
    );
    for transition in rule["Transitions"].as_array().into_iter().flatten() {
        let _ = write!(
            body,
            "transition {{\n days = var.audit_archive_glacier_days\n storage_class = {}\n }}\n",
            transition["StorageClass"]
        );
    }
    if let Some(days) = rule.pointer("/NoncurrentVersionExpiration/NoncurrentDays") {
        let _ = write!(
            body,
            "noncurrent_version_expiration {{\n noncurrent_days = {days}\n }}\n"
        );
    }
    if let Some(days) = rule.pointer("/AbortIncompleteMultipartUpload/DaysAfterInitiation") {
        let _ = write!(
            body,
            "abort_incomplete_multipart_upload {{\n days_after_initiation = {days}\n }}\n"
        );
    }
    format!("rule {{\n{body}}}\n")
}
