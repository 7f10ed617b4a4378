//! What CloudFormation does for a stack.

use zae_limiter_schema::StackName;

use super::Place;
use crate::model::iam::{Action, Condition, PolicyDocument, Statement, actions};
use crate::options::{NameFormat, StackOptions};

/// What CloudFormation needs to make, change and delete the resources of a stack of this name.
///
/// Names of roles and policies are as the options make them, and a key that they name may be used.
///
/// ```
/// use zae_limiter_template::deployer::{Place, provisioning_policy};
/// use zae_limiter_template::{StackName, StackOptions};
///
/// let place = Place { partition: "aws".into(), region: "eu-west-1".into(), account: "123456789012".into() };
/// let options = StackOptions::builder().role_name_format("pb-{}").build()?;
/// let policy = provisioning_policy(&StackName::parse("limiter")?, &place, &options);
/// assert!(serde_json::to_string(&policy)?.contains("role/pb-limiter-*"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn provisioning_policy(name: &StackName, place: &Place, options: &StackOptions) -> PolicyDocument {
    let mut statements = statements(name, place, options);
    if let Some(key) = options.kms_key_arn() {
        statements.push(Statement::allow("Key", key_actions(), vec![key.as_str().into()]));
    }
    PolicyDocument::new(statements)
}

/// What the names of a kind that the options format are like.
fn names(kind: &str, name: &StackName, format: Option<&NameFormat>) -> String {
    let inner = format!("{name}-*");
    let all = format.map_or_else(|| inner.clone(), |format| format.apply(&inner));
    format!("{kind}/{all}")
}

fn statements(name: &StackName, place: &Place, options: &StackOptions) -> Vec<Statement> {
    let functions = place.arn("lambda", &format!("function:{name}-*"));
    let role = place.account_arn("iam", &names("role", name, options.role_name_format()));
    let policy = names("policy", name, options.policy_name_format());
    vec![
        Statement::allow(
            "Table",
            table_actions(),
            vec![place.arn("dynamodb", &format!("table/{name}"))],
        ),
        Statement::allow("Functions", function_actions(), vec![functions.clone()]),
        // A mapping has an id of AWS's making: its function tells whose it is.
        Statement::allow("Mappings", mapping_actions(), vec!["*".into()])
            .when(Condition::default().arn_like("lambda:FunctionArn", functions)),
        // Nothing tells a mapping's function to those who tag it.
        Statement::allow(
            "MappingTags",
            actions("lambda", &["ListTags", "TagResource", "UntagResource"]),
            vec![place.arn("lambda", "event-source-mapping:*")],
        ),
        Statement::allow("Roles", role_actions(), vec![role.clone()]),
        Statement::allow("PassRoles", actions("iam", &["PassRole"]), vec![role])
            .when(Condition::default().equals("iam:PassedToService", "lambda.amazonaws.com")),
        Statement::allow(
            "Policies",
            policy_actions(),
            vec![place.account_arn("iam", &policy)],
        ),
        Statement::allow(
            "Logs",
            log_actions(),
            vec![place.arn("logs", &format!("log-group:/aws/lambda/{name}-*"))],
        ),
        Statement::allow(
            "FindLogs",
            actions("logs", &["DescribeLogGroups"]),
            vec![place.arn("logs", "log-group:*")],
        ),
        Statement::allow(
            "Queues",
            queue_actions(),
            vec![place.arn("sqs", &format!("{name}-*"))],
        ),
        Statement::allow(
            "Alarms",
            alarm_actions(),
            vec![place.arn("cloudwatch", &format!("alarm:{name}-*"))],
        ),
        Statement::allow(
            "Archive",
            archive_actions(),
            vec![place.global_arn("s3", &generated_bucket(name))],
        ),
    ]
}

/// CloudFormation names a bucket by the stack in lower case, cut short where it is long, and something random.
pub(super) fn generated_bucket(name: &StackName) -> String {
    let start: String = name.as_str().chars().take(20).collect();
    format!("{}*", start.to_ascii_lowercase())
}

fn table_actions() -> Vec<Action> {
    actions(
        "dynamodb",
        &[
            "CreateTable",
            "DeleteTable",
            "DescribeContinuousBackups",
            "DescribeContributorInsights",
            "DescribeTable",
            "DescribeTimeToLive",
            "ListTagsOfResource",
            "TagResource",
            "UntagResource",
            "UpdateContinuousBackups",
            "UpdateContributorInsights",
            "UpdateTable",
            "UpdateTimeToLive",
        ],
    )
}

fn function_actions() -> Vec<Action> {
    actions(
        "lambda",
        &[
            "CreateFunction",
            "DeleteFunction",
            "DeleteFunctionConcurrency",
            "GetFunction",
            "GetFunctionConfiguration",
            "ListTags",
            "PutFunctionConcurrency",
            "TagResource",
            "UntagResource",
            "UpdateFunctionCode",
            "UpdateFunctionConfiguration",
        ],
    )
}

fn mapping_actions() -> Vec<Action> {
    actions(
        "lambda",
        &[
            "CreateEventSourceMapping",
            "DeleteEventSourceMapping",
            "GetEventSourceMapping",
            "UpdateEventSourceMapping",
        ],
    )
}

fn role_actions() -> Vec<Action> {
    actions(
        "iam",
        &[
            "AttachRolePolicy",
            "CreateRole",
            "DeleteRole",
            "DeleteRolePermissionsBoundary",
            "DeleteRolePolicy",
            "DetachRolePolicy",
            "GetRole",
            "GetRolePolicy",
            "ListAttachedRolePolicies",
            "ListRolePolicies",
            "PutRolePermissionsBoundary",
            "PutRolePolicy",
            "TagRole",
            "UntagRole",
            "UpdateAssumeRolePolicy",
            "UpdateRole",
            "UpdateRoleDescription",
        ],
    )
}

fn policy_actions() -> Vec<Action> {
    actions(
        "iam",
        &[
            "CreatePolicy",
            "CreatePolicyVersion",
            "DeletePolicy",
            "DeletePolicyVersion",
            "GetPolicy",
            "GetPolicyVersion",
            "ListEntitiesForPolicy",
            "ListPolicyVersions",
            "TagPolicy",
            "UntagPolicy",
        ],
    )
}

fn log_actions() -> Vec<Action> {
    actions(
        "logs",
        &[
            "AssociateKmsKey",
            "CreateLogGroup",
            "DeleteLogGroup",
            "DeleteRetentionPolicy",
            "DisassociateKmsKey",
            "ListTagsForResource",
            "PutRetentionPolicy",
            "TagResource",
            "UntagResource",
        ],
    )
}

fn queue_actions() -> Vec<Action> {
    actions(
        "sqs",
        &[
            "CreateQueue",
            "DeleteQueue",
            "GetQueueAttributes",
            "GetQueueUrl",
            "ListQueueTags",
            "SetQueueAttributes",
            "TagQueue",
            "UntagQueue",
        ],
    )
}

fn alarm_actions() -> Vec<Action> {
    actions(
        "cloudwatch",
        &[
            "DeleteAlarms",
            "DescribeAlarms",
            "ListTagsForResource",
            "PutMetricAlarm",
            "TagResource",
            "UntagResource",
        ],
    )
}

fn archive_actions() -> Vec<Action> {
    actions(
        "s3",
        &[
            "CreateBucket",
            "DeleteBucket",
            "DeleteBucketPolicy",
            // What CloudFormation reads to tell whether a bucket has drifted.
            "GetAccelerateConfiguration",
            "GetAnalyticsConfiguration",
            "GetBucketCORS",
            "GetBucketLogging",
            "GetBucketNotification",
            "GetBucketObjectLockConfiguration",
            "GetBucketOwnershipControls",
            "GetBucketPolicy",
            "GetBucketPublicAccessBlock",
            "GetBucketTagging",
            "GetBucketVersioning",
            "GetBucketWebsite",
            "GetEncryptionConfiguration",
            "GetIntelligentTieringConfiguration",
            "GetInventoryConfiguration",
            "GetLifecycleConfiguration",
            "GetMetricsConfiguration",
            "GetReplicationConfiguration",
            "ListBucket",
            "PutBucketObjectLockConfiguration",
            "PutBucketOwnershipControls",
            "PutBucketPolicy",
            "PutBucketPublicAccessBlock",
            "PutBucketTagging",
            "PutBucketVersioning",
            "PutEncryptionConfiguration",
            "PutLifecycleConfiguration",
        ],
    )
}

fn key_actions() -> Vec<Action> {
    actions(
        "kms",
        &[
            "CreateGrant",
            "Decrypt",
            "DescribeKey",
            "Encrypt",
            "GenerateDataKey",
            "ReEncryptFrom",
            "ReEncryptTo",
        ],
    )
}
