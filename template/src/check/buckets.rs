//! Rules for buckets.

use serde_json::Value;

use super::properties::{denies_plain_http, list, of_type};
use super::{Findings, Rule};
use crate::Template;
use crate::model::ids;

const PUBLIC_ACCESS: [&str; 4] = [
    "BlockPublicAcls",
    "BlockPublicPolicy",
    "IgnorePublicAcls",
    "RestrictPublicBuckets",
];

pub(super) fn check(template: &Template, findings: &mut Findings) {
    for (id, bucket) in of_type(template, "AWS::S3::Bucket") {
        let properties = &bucket["Properties"];
        let block = &properties["PublicAccessBlockConfiguration"];
        let private = PUBLIC_ACCESS.iter().all(|switch| block[*switch] == true);
        findings.require(
            private,
            Rule::BucketPrivate,
            id,
            "must have all four of PublicAccessBlockConfiguration",
        );
        let encryption = list(&properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]);
        findings.require(
            !encryption.is_empty(),
            Rule::BucketEncrypted,
            id,
            "must have BucketEncryption",
        );
        let versioned = properties["VersioningConfiguration"]["Status"] == "Enabled";
        findings.require(
            versioned,
            Rule::BucketVersioned,
            id,
            "must have VersioningConfiguration",
        );
        let tls = denies_plain_http(template, "AWS::S3::BucketPolicy", "Bucket", id);
        findings.require(
            tls,
            Rule::BucketTls,
            id,
            "must have a bucket policy that denies requests without TLS",
        );
        let rules = list(&properties["LifecycleConfiguration"]["Rules"]);
        let tidy = enabled(rules).any(|rule| !rule["AbortIncompleteMultipartUpload"].is_null());
        findings.require(
            tidy,
            Rule::BucketLifecycle,
            id,
            "must have AbortIncompleteMultipartUpload in its lifecycle",
        );
        if id == ids::ARCHIVE_BUCKET.as_str() {
            let moves = enabled(rules).flat_map(|rule| list(&rule["Transitions"]));
            let cold = moves
                .into_iter()
                .any(|transition| transition["StorageClass"] == "GLACIER_IR");
            findings.require(
                cold,
                Rule::BucketLifecycle,
                id,
                "must move to GLACIER_IR in its lifecycle",
            );
        }
    }
}

fn enabled(rules: &[Value]) -> impl Iterator<Item = &Value> {
    rules.iter().filter(|rule| rule["Status"] == "Enabled")
}
