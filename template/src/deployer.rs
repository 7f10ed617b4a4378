//! What somebody who deploys must be allowed.
//!
//! Policies here are for people and pipelines, so they are made for one account and region and name no template's
//! resources.

use zae_limiter_schema::StackName;
use zae_limiter_schema::keys::SYSTEM_PARTITION;

use crate::model::Text;
use crate::model::iam::{Action, Condition, PolicyDocument, Statement, actions};

/// Where stacks are deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `aws`, `aws-cn`, `aws-us-gov`, …
    pub partition: String,
    /// Such as `eu-central-1`.
    pub region: String,
    /// The twelve digits.
    pub account: String,
}

impl Place {
    fn arn(&self, service: &str, resource: &str) -> Text {
        format!(
            "arn:{}:{service}:{}:{}:{resource}",
            self.partition, self.region, self.account
        )
        .into()
    }

    fn account_arn(&self, service: &str, resource: &str) -> Text {
        format!("arn:{}:{service}::{}:{resource}", self.partition, self.account).into()
    }

    fn global_arn(&self, service: &str, resource: &str) -> Text {
        format!("arn:{}:{service}:::{resource}", self.partition).into()
    }
}

/// What an application needs whose `ensure_infrastructure()` finds the stack as it should be.
///
/// ```
/// use zae_limiter_template::StackName;
/// use zae_limiter_template::deployer::{Place, ensure_policy};
///
/// let place = Place { partition: "aws".into(), region: "eu-west-1".into(), account: "123456789012".into() };
/// let policy = ensure_policy(&StackName::parse("limiter")?, &place);
/// assert_eq!(policy.allowed_actions().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ensure_policy(name: &StackName, place: &Place) -> PolicyDocument {
    let look = actions("cloudformation", &["DescribeStacks", "GetTemplate"]);
    PolicyDocument::new(vec![Statement::allow("Look", look, vec![stack(name, place)])])
}

/// What a person or pipeline needs that plans, deploys, changes and deletes a stack of this name.
///
/// IAM names are those that the default formats make; with formats of your own, widen the two IAM statements.
pub fn deployer_policy(name: &StackName, place: &Place) -> PolicyDocument {
    let mut statements = vec![
        Statement::allow("Stack", stack_actions(), vec![stack(name, place)]),
        // These know no resource, or must see every stack to find ours.
        Statement::allow("Discover", discover_actions(), vec!["*".into()]),
    ];
    statements.extend(preflight(place));
    statements.push(records(name, place));
    statements.extend(artifacts(place));
    statements.extend(through_cloudformation(name, place));
    PolicyDocument::new(statements)
}

fn stack(name: &StackName, place: &Place) -> Text {
    place.arn("cloudformation", &format!("stack/{name}/*"))
}

fn stack_actions() -> Vec<Action> {
    actions(
        "cloudformation",
        &[
            "ContinueUpdateRollback",
            "CreateChangeSet",
            "CreateStack",
            "DeleteChangeSet",
            "DeleteStack",
            "DescribeChangeSet",
            "DescribeStackEvents",
            "DescribeStackResourceDrifts",
            "DescribeStackResources",
            "DescribeStacks",
            "DetectStackDrift",
            "DetectStackResourceDrift",
            "ExecuteChangeSet",
            "GetTemplate",
            "TagResource",
            "UpdateStack",
        ],
    )
}

fn discover_actions() -> Vec<Action> {
    let looks = [
        "DescribeStackDriftDetectionStatus",
        "DescribeStacks",
        "ListImports",
        "ListStacks",
    ];
    let mut all = actions("cloudformation", &looks);
    all.extend(actions("lambda", &["ListEventSourceMappings"]));
    all.extend(actions("tag", &["GetResources"]));
    all
}

/// What a deployment looks at before it touches anything: roles, boundary and topic that it was given.
fn preflight(place: &Place) -> [Statement; 2] {
    let iam = vec![
        place.account_arn("iam", "role/*"),
        place.account_arn("iam", "policy/*"),
    ];
    [
        Statement::allow("GivenIam", actions("iam", &["GetPolicy", "GetRole"]), iam),
        Statement::allow(
            "GivenTopic",
            actions("sns", &["GetTopicAttributes"]),
            vec![place.arn("sns", "*")],
        ),
    ]
}

/// What a deployment writes into the table: its version and how long audit events stay.
fn records(name: &StackName, place: &Place) -> Statement {
    let write = actions("dynamodb", &["GetItem", "PutItem", "UpdateItem"]);
    let system = Condition::default().all_like("dynamodb:LeadingKeys", &[SYSTEM_PARTITION]);
    Statement::allow(
        "Records",
        write,
        vec![place.arn("dynamodb", &format!("table/{name}"))],
    )
    .when(system)
}

fn artifacts(place: &Place) -> [Statement; 2] {
    let bucket = format!("zae-limiter-artifacts-{}-{}", place.account, place.region);
    let on_bucket = [
        "CreateBucket",
        "ListBucket",
        "PutBucketPolicy",
        "PutBucketPublicAccessBlock",
        "PutBucketVersioning",
        "PutEncryptionConfiguration",
    ];
    [
        Statement::allow(
            "ArtifactsBucket",
            actions("s3", &on_bucket),
            vec![place.global_arn("s3", &bucket)],
        ),
        Statement::allow(
            "Artifacts",
            actions("s3", &["GetObject", "PutObject"]),
            vec![place.global_arn("s3", &format!("{bucket}/*"))],
        ),
    ]
}

/// What CloudFormation does in the deployer's name, unless it has a role of its own.
fn through_cloudformation(name: &StackName, place: &Place) -> Vec<Statement> {
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
