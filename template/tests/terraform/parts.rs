//! Parts of a resource that are resources of their own for the AWS provider.

use serde_json::{Value, json};

use crate::terraform::cloudformation::parsed;
use crate::terraform::fields::Fields;

/// A part that is a resource of its own for the AWS provider and a property for CloudFormation.
pub(crate) fn add_part(kind: &str, mut fields: Fields, parent: &mut Value, id: &str) {
    let reference = json!(format!("<{id}>"));
    match kind {
        "aws_dynamodb_contributor_insights" => {
            fields.expect("table_name", &reference);
            fields.done();
            parent["ContributorInsightsSpecification"] = json!({ "Enabled": true });
        }
        "aws_iam_role_policy" => {
            fields.expect("role", &reference);
            let document = parsed(&fields.take("policy").unwrap());
            let mut policy = fields.renamed(&[("name", "PolicyName")]);
            policy["PolicyDocument"] = document;
            parent["Policies"] = json!([policy]);
        }
        "aws_iam_role_policy_attachment" => {
            fields.expect("role", &reference);
            parent["ManagedPolicyArns"] = json!([fields.take("policy_arn")]);
            fields.done();
        }
        other => {
            fields.expect("bucket", &reference);
            bucket_part(other, fields, parent);
        }
    }
}

fn bucket_part(kind: &str, mut fields: Fields, bucket: &mut Value) {
    match kind {
        "aws_s3_bucket_server_side_encryption_configuration" => {
            let mut rule = fields.block("rule").unwrap();
            let default = rule.block("apply_server_side_encryption_by_default").unwrap();
            let default = default.renamed(&[
                ("sse_algorithm", "SSEAlgorithm"),
                ("kms_master_key_id", "KMSMasterKeyID"),
            ]);
            let mut rule = rule.renamed(&[("bucket_key_enabled", "BucketKeyEnabled")]);
            rule["ServerSideEncryptionByDefault"] = default;
            bucket["BucketEncryption"] = json!({ "ServerSideEncryptionConfiguration": [rule] });
        }
        "aws_s3_bucket_versioning" => {
            let versioning = fields.block("versioning_configuration").unwrap();
            bucket["VersioningConfiguration"] = versioning.renamed(&[("status", "Status")]);
        }
        "aws_s3_bucket_public_access_block" => {
            let names = [
                ("block_public_acls", "BlockPublicAcls"),
                ("block_public_policy", "BlockPublicPolicy"),
                ("ignore_public_acls", "IgnorePublicAcls"),
                ("restrict_public_buckets", "RestrictPublicBuckets"),
            ];
            bucket["PublicAccessBlockConfiguration"] = fields.renamed(&names);
            return;
        }
        "aws_s3_bucket_ownership_controls" => {
            let rule = fields
                .block("rule")
                .unwrap()
                .renamed(&[("object_ownership", "ObjectOwnership")]);
            bucket["OwnershipControls"] = json!({ "Rules": [rule] });
        }
        "aws_s3_bucket_lifecycle_configuration" => {
            let rules: Vec<_> = fields.blocks("rule").into_iter().map(lifecycle_rule).collect();
            bucket["LifecycleConfiguration"] = json!({ "Rules": rules });
        }
        "aws_s3_bucket_object_lock_configuration" => {
            let mut rule = fields.block("rule").unwrap();
            let retention = rule.block("default_retention").unwrap();
            rule.done();
            let retention = retention.renamed(&[("mode", "Mode"), ("days", "Days")]);
            bucket["ObjectLockConfiguration"] =
                json!({ "ObjectLockEnabled": "Enabled", "Rule": { "DefaultRetention": retention } });
        }
        other => panic!("{other} is part of nothing that CloudFormation has"),
    }
    fields.done();
}

fn lifecycle_rule(mut rule: Fields) -> Value {
    let filter = rule.block("filter").unwrap().renamed(&[("prefix", "Prefix")]);
    let transitions: Vec<_> = rule
        .blocks("transition")
        .into_iter()
        .map(|block| block.renamed(&[("days", "TransitionInDays"), ("storage_class", "StorageClass")]))
        .collect();
    let expiration = rule.block("noncurrent_version_expiration");
    let expiration = expiration.map(|block| block.renamed(&[("noncurrent_days", "NoncurrentDays")]));
    let abort = rule.block("abort_incomplete_multipart_upload");
    let abort = abort.map(|block| block.renamed(&[("days_after_initiation", "DaysAfterInitiation")]));
    let mut result = rule.renamed(&[("id", "Id"), ("status", "Status")]);
    if let Some(prefix) = filter.get("Prefix") {
        result["Prefix"] = prefix.clone();
    }
    if !transitions.is_empty() {
        result["Transitions"] = json!(transitions);
    }
    if let Some(expiration) = expiration {
        result["NoncurrentVersionExpiration"] = expiration;
    }
    if let Some(abort) = abort {
        result["AbortIncompleteMultipartUpload"] = abort;
    }
    result
}
