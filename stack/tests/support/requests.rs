//! The permissions that a request needs, as the service authorization reference has them.

use serde_json::{Value, json};

pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCOUNT: &str = "123456789012";

/// An operation and what it was called with.
pub(crate) struct Request {
    pub(crate) service: String,
    pub(crate) operation: String,
    /// As `Debug` prints it.
    pub(crate) input: String,
}

/// The action for an operation, where IAM has one for it.
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

impl Request {
    /// Each action that the request needs, the resource, and the condition keys.
    pub(crate) fn needs(&self) -> Vec<(String, String, Value)> {
        let Some(action) = permission(&self.service, &self.operation) else {
            return vec![];
        };
        let mut needs = vec![(action, self.resource(), json!({}))];
        if self.service == "CloudFormation"
            && let Some(role) = self.field("role_arn")
        {
            let keys = json!({ "iam:PassedToService": "cloudformation.amazonaws.com" });
            needs.push(("iam:PassRole".to_owned(), role.to_owned(), keys));
        }
        needs
    }

    /// The resource, in the account of the recorded responses. A local cloud has another one.
    fn resource(&self) -> String {
        self.arn().replace(":000000000000:", &format!(":{ACCOUNT}:"))
    }

    fn arn(&self) -> String {
        let regional = |service: &str, rest: &str| format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}");
        let must = |field: &str| {
            let value = self.field(field);
            value.unwrap_or_else(|| panic!("{} has no {field}: {}", self.operation, self.input))
        };
        match (self.service.as_str(), self.operation.as_str()) {
            // No resource type, or every resource.
            ("Lambda", "ListEventSourceMappings")
            | ("CloudWatch", "GetMetricStatistics")
            | ("CloudFormation", "DescribeStackDriftDetectionStatus" | "ListImports" | "ListStacks") => {
                "*".to_owned()
            }
            ("CloudFormation", _) => match self.field("stack_name") {
                Some(arn) if arn.starts_with("arn:") => arn.to_owned(),
                Some(name) => regional("cloudformation", &format!("stack/{name}/*")),
                None => "*".to_owned(),
            },
            ("DynamoDB", _) => match self.field("resource_arn") {
                Some(arn) => arn.to_owned(),
                None => regional("dynamodb", &format!("table/{}", must("table_name"))),
            },
            ("S3", "HeadObject" | "PutObject") => format!("arn:aws:s3:::{}/{}", must("bucket"), must("key")),
            ("S3", "DeleteObjects") => format!("arn:aws:s3:::{}/audit/1", must("bucket")),
            ("S3", _) => format!("arn:aws:s3:::{}", must("bucket")),
            ("IAM", _) => match self.field("policy_arn") {
                Some(arn) => arn.to_owned(),
                None => format!("arn:aws:iam::{ACCOUNT}:role/{}", must("role_name")),
            },
            ("CloudWatch Logs", _) => {
                regional("logs", &format!("log-group:{}", must("log_group_name_prefix")))
            }
            ("SNS", _) => must("topic_arn").to_owned(),
            ("SQS", _) => {
                let url = self.field("queue_url").unwrap_or_else(|| must("queue_name"));
                regional("sqs", url.rsplit('/').next().unwrap())
            }
            other => panic!("{other:?} has no resource here"),
        }
    }

    /// A text among the request's own fields.
    fn field(&self, name: &str) -> Option<&str> {
        let start = format!(" {name}: Some(\"");
        let (_, rest) = self.input.split_once(&start)?;
        Some(rest.split_once('"')?.0)
    }
}
