//! What the handlers of CloudFormation ask for.

use serde_json::{Value, json};
use zae_limiter_template::{StackOptions, Template};

use super::{ACCOUNT, REGION};

/// Permissions for features that no stack of ours has. A prefix stands for all that start with it.
const UNUSED: [(&str, &str); 35] = [
    ("kinesis:", "no Kinesis destination"),
    ("dynamodb:EnableKinesis", "no Kinesis destination"),
    ("dynamodb:DisableKinesis", "no Kinesis destination"),
    ("dynamodb:UpdateKinesis", "no Kinesis destination"),
    ("dynamodb:AssociateTableReplica", "no replicas"),
    ("dynamodb:CreateTableReplica", "no replicas"),
    ("dynamodb:ImportTable", "no import from S3"),
    ("dynamodb:DescribeImport", "no import from S3"),
    ("dynamodb:PutResourcePolicy", "no policy on the table"),
    ("dynamodb:DeleteResourcePolicy", "no policy on the table"),
    ("dynamodb:BatchWriteItem", "items are not the stack's"),
    ("dynamodb:DeleteItem", "items are not the stack's"),
    ("dynamodb:GetItem", "items are not the stack's"),
    ("dynamodb:PutItem", "items are not the stack's"),
    ("dynamodb:Query", "items are not the stack's"),
    ("dynamodb:Scan", "items are not the stack's"),
    ("dynamodb:UpdateItem", "items are not the stack's"),
    ("kms:ListAliases", "the key is given by its ARN"),
    ("elasticfilesystem:", "no file system"),
    ("s3files:", "no file system"),
    ("lambda:AssociateRuntimeAlias", "no runtime alias"),
    ("lambda:GetCodeSigningConfig", "no code signing"),
    ("lambda:DeleteFunctionCodeSigningConfig", "no code signing"),
    ("lambda:PutFunctionCodeSigningConfig", "no code signing"),
    ("lambda:GetLayerVersion", "no layers"),
    ("lambda:PassCapacityProvider", "no capacity provider"),
    ("lambda:PublishVersion", "no published versions"),
    (
        "lambda:PutFunctionRecursionConfig",
        "recursion is left at its default",
    ),
    ("lambda:PutFunctionScalingConfig", "no capacity provider"),
    (
        "lambda:PutRuntimeManagementConfig",
        "runtime updates are left at their default",
    ),
    (
        "iam:DeleteRolePermissionsBoundary",
        "nobody may remove a boundary",
    ),
    ("iam:AttachGroup", "policies are attached to roles only"),
    ("iam:AttachUser", "policies are attached to roles only"),
    ("iam:DetachGroup", "policies are attached to roles only"),
    ("iam:DetachUser", "policies are attached to roles only"),
];

/// The same for log groups, whose handler knows many features.
const UNUSED_LOGS: [&str; 14] = [
    "firehose:",
    "s3:REST",
    "logs:CreateLogDelivery",
    "logs:CreateLogStream",
    "logs:DescribeLogStreams",
    "logs:PutLogEvents",
    "logs:PutBearerToken",
    "logs:PutDataProtectionPolicy",
    "logs:DeleteDataProtectionPolicy",
    "logs:PutIndexPolicy",
    "logs:DeleteIndexPolicy",
    "logs:PutResourcePolicy",
    "logs:DeleteResourcePolicy",
    "logs:PutLogGroupDeletionProtection",
];

/// Configurations of a bucket that ours has. Of the others a handler reads, and never writes.
const WRITTEN_TO_BUCKETS: [&str; 13] = [
    "s3:CreateBucket",
    "s3:DeleteBucket",
    "s3:ListBucket",
    "s3:PutBucketObjectLockConfiguration",
    "s3:PutBucketOwnershipControls",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketTagging",
    "s3:PutBucketVersioning",
    "s3:PutEncryptionConfiguration",
    "s3:PutLifecycleConfiguration",
    "s3:TagResource",
    "s3:UntagResource",
    "s3:ListTagsForResource",
];

/// Whether a handler uses a permission for a resource of ours.
pub(crate) fn uses(kind: &str, permission: &str, options: &StackOptions) -> bool {
    if UNUSED.iter().any(|(start, _)| permission.starts_with(start))
        || UNUSED_LOGS.iter().any(|start| permission.starts_with(start))
    {
        return false;
    }
    match (kind, permission) {
        (_, permission) if permission.starts_with("kms:") => options.kms_key_arn().is_some(),
        (_, permission) if permission.starts_with("ec2:") => !options.lambda_subnet_ids().is_empty(),
        (_, "iam:CreateServiceLinkedRole") => options.enable_contributor_insights(),
        // Items of the table's import, and the archives of functions.
        ("AWS::DynamoDB::Table", permission) => {
            !permission.starts_with("s3:") && !permission.starts_with("logs:")
        }
        ("AWS::S3::Bucket", permission) if permission.starts_with("s3:Get") => {
            permission != "s3:GetBucketAcl"
        }
        ("AWS::S3::Bucket", permission) => WRITTEN_TO_BUCKETS.contains(&permission),
        _ => true,
    }
}

/// The ARN that a handler's request is about, and the condition keys of the request.
#[allow(clippy::too_many_lines, reason = "a table of resource types")]
pub(crate) fn request(
    template: &Template,
    id: &str,
    permission: &str,
    options: &StackOptions,
) -> (String, Value) {
    let resource = &template.to_value()["Resources"][id];
    let (kind, properties) = (resource["Type"].as_str().unwrap(), &resource["Properties"]);
    let name = |property: &str| {
        properties[property]
            .as_str()
            .unwrap_or_else(|| panic!("{id} {property}"))
    };
    let regional = |service: &str, rest: &str| format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}");
    let target = |property: &Value| property["Ref"].as_str().unwrap().to_owned();
    let bucket = || "arn:aws:s3:::limiter-auditarchivebucket-1a2b3c4d5e6f".to_owned();
    let function_arn = |id: &str| {
        let function = &template.to_value()["Resources"][id]["Properties"]["FunctionName"];
        regional("lambda", &format!("function:{}", function.as_str().unwrap()))
    };
    match (kind, permission) {
        (_, permission) if permission.starts_with("kms:") => {
            (options.kms_key_arn().unwrap().to_string(), json!({}))
        }
        (_, "iam:CreateServiceLinkedRole") => {
            let service = "contributorinsights.dynamodb.amazonaws.com";
            let role = "AWSServiceRoleForDynamoDBCloudWatchContributorInsights";
            (
                format!("arn:aws:iam::{ACCOUNT}:role/aws-service-role/{service}/{role}"),
                json!({ "iam:AWSServiceName": service }),
            )
        }
        // Describing has no resource.
        (_, permission) if permission.starts_with("ec2:") => ("*".to_owned(), json!({})),
        ("AWS::DynamoDB::Table", _) => (
            regional("dynamodb", &format!("table/{}", name("TableName"))),
            json!({}),
        ),
        ("AWS::Lambda::Function", "iam:PassRole") => {
            let role = &properties["Role"];
            let own = || {
                let id = role["Fn::GetAtt"][0].as_str().unwrap();
                iam_arn(
                    &template.to_value()["Resources"][id]["Properties"],
                    "role",
                    "RoleName",
                )
            };
            let arn = role.as_str().map_or_else(own, str::to_owned);
            (arn, json!({ "iam:PassedToService": "lambda.amazonaws.com" }))
        }
        ("AWS::Lambda::Function", permission) if permission.starts_with("s3:") => {
            let bucket = properties["Code"]["S3Bucket"].as_str().unwrap();
            let key = properties["Code"]["S3Key"].as_str().unwrap();
            (format!("arn:aws:s3:::{bucket}/{key}"), json!({}))
        }
        ("AWS::Lambda::Function", _) => (function_arn(id), json!({})),
        ("AWS::Lambda::EventSourceMapping", permission) => {
            let arn = regional(
                "lambda",
                "event-source-mapping:11111111-2222-3333-4444-555555555555",
            );
            let function = properties["FunctionName"]["Fn::GetAtt"][0].as_str().unwrap();
            let tagging = permission.contains("Tag");
            let keys = json!({ "lambda:FunctionArn": function_arn(function) });
            (arn, if tagging { json!({}) } else { keys })
        }
        ("AWS::IAM::Role", permission) => {
            let mut keys = json!({});
            if let Some(boundary) = properties.get("PermissionsBoundary") {
                keys["iam:PermissionsBoundary"] = boundary.clone();
            }
            if permission.contains("tachRolePolicy") {
                keys["iam:PolicyARN"] = properties["ManagedPolicyArns"]
                    .get(0)
                    .map_or(json!(own_policy(template)), |arn| {
                        json!(policy_arn(template, &target(arn)))
                    });
            }
            (iam_arn(properties, "role", "RoleName"), keys)
        }
        // Attached by the roles, with the roles' permissions.
        ("AWS::IAM::ManagedPolicy", "iam:AttachRolePolicy" | "iam:DetachRolePolicy") => {
            (String::new(), json!({}))
        }
        ("AWS::IAM::ManagedPolicy", _) => (policy_arn(template, id), json!({})),
        ("AWS::SQS::Queue", _) => (regional("sqs", name("QueueName")), json!({})),
        ("AWS::SQS::QueuePolicy", _) => {
            let queue = target(&properties["Queues"][0]);
            let queue = &template.to_value()["Resources"][&queue]["Properties"]["QueueName"];
            (regional("sqs", queue.as_str().unwrap()), json!({}))
        }
        ("AWS::Logs::LogGroup", _) => (
            regional("logs", &format!("log-group:{}:*", name("LogGroupName"))),
            json!({}),
        ),
        ("AWS::CloudWatch::Alarm", _) => (
            regional("cloudwatch", &format!("alarm:{}", name("AlarmName"))),
            json!({}),
        ),
        ("AWS::CloudWatch::Dashboard", _) => (
            format!(
                "arn:aws:cloudwatch::{ACCOUNT}:dashboard/{}",
                name("DashboardName")
            ),
            json!({}),
        ),
        ("AWS::S3::Bucket" | "AWS::S3::BucketPolicy", _) => {
            (bucket(), json!({ "aws:ResourceAccount": ACCOUNT }))
        }
        other => panic!("{other:?} has no ARN here"),
    }
}

pub(crate) fn policy_arn(template: &Template, id: &str) -> String {
    let properties = &template.to_value()["Resources"][id]["Properties"];
    iam_arn(properties, "policy", "ManagedPolicyName")
}

fn iam_arn(properties: &Value, kind: &str, name: &str) -> String {
    let path = properties.get("Path").and_then(Value::as_str).unwrap_or("/");
    let name = properties[name].as_str().unwrap();
    format!("arn:aws:iam::{ACCOUNT}:{kind}{path}{name}")
}

pub(crate) fn own_policy(template: &Template) -> String {
    policy_arn(template, "AcquireOnlyPolicy")
}
