//! What CloudFormation does for a stack.

use zae_limiter_schema::StackName;

use super::Place;
use crate::model::iam::{Action, Condition, PolicyDocument, Statement, actions};

/// What CloudFormation needs to make, change and delete the resources of a stack of this name.
///
/// IAM names are those that the default formats make; with formats of your own, widen the statements on roles and policies.
pub fn provisioning_policy(name: &StackName, place: &Place) -> PolicyDocument {
    PolicyDocument::new(statements(name, place))
}

fn statements(name: &StackName, place: &Place) -> Vec<Statement> {
    let functions = place.arn("lambda", &format!("function:{name}-*"));
    let role = place.account_arn("iam", &format!("role/{name}-*"));
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
        Statement::allow("Roles", role_actions(), vec![role.clone()]),
        Statement::allow("PassRoles", actions("iam", &["PassRole"]), vec![role])
            .when(Condition::default().equals("iam:PassedToService", "lambda.amazonaws.com")),
        Statement::allow(
            "Policies",
            policy_actions(),
            vec![place.account_arn("iam", &format!("policy/{name}-*"))],
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
fn generated_bucket(name: &StackName) -> String {
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
            "GetBucketPolicy",
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
