//! What the documented policies permit.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use zae_limiter_template::deployer::{Place, deployer_policy, purge_policy};
use zae_limiter_template::model::iam::PolicyDocument;
use zae_limiter_template::{PolicyKind, StackOptions, policy_document};

/// The permissions of somebody who deploys and purges.
pub(crate) static PERMITTED: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let place = Place {
        partition: "aws".into(),
        region: "us-east-1".into(),
        account: "123456789012".into(),
    };
    let name = super::name("demo");
    let own = deployer_policy(&name, &place, &StackOptions::default(), None);
    let policies = [own, purge_policy(&name, &place)];
    let actions = policies.iter().flat_map(PolicyDocument::allowed_actions);
    actions.map(|action| action.as_str().to_owned()).collect()
});

/// The permissions of the managed policy for readers.
pub(crate) fn readable() -> BTreeSet<String> {
    let read = policy_document(PolicyKind::Read, &StackOptions::default());
    let actions = read.allowed_actions();
    actions.iter().map(|action| action.as_str().to_owned()).collect()
}

/// The permission that an operation needs, where IAM has one for it.
pub(crate) fn permission(service: &str, operation: &str) -> Option<String> {
    let prefix = match service {
        "CloudFormation" => "cloudformation",
        "CloudWatch" => "cloudwatch",
        "CloudWatch Logs" => "logs",
        "DynamoDB" => "dynamodb",
        "IAM" => "iam",
        "Lambda" => "lambda",
        "S3" => "s3",
        "SNS" => "sns",
        "SQS" => "sqs",
        "STS" => return None,
        other => panic!("a service that nobody thought of: {other}"),
    };
    let action = match (prefix, operation) {
        ("s3", "HeadBucket") => "ListBucket",
        ("s3", "HeadObject") => "GetObject",
        ("s3", "PutPublicAccessBlock") => "PutBucketPublicAccessBlock",
        ("s3", "PutBucketEncryption") => "PutEncryptionConfiguration",
        ("s3", "GetObjectLockConfiguration") => "GetBucketObjectLockConfiguration",
        ("s3", "ListObjectVersions") => "ListBucketVersions",
        ("s3", "DeleteObjects") => "DeleteObjectVersion",
        _ => operation,
    };
    Some(format!("{prefix}:{action}"))
}
