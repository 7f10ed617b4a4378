//! What CloudFormation needs to provision a stack.
//!
//! The actions are those of the resource handlers, as the CloudFormation registry lists them.

use zae_limiter_schema::StackName;
use zae_limiter_schema::keys::SYSTEM_PARTITION;

use super::Place;
use crate::model::iam::{Action, Condition, PolicyDocument, Statement, actions};
use crate::model::{LogicalId, Text, ids};
use crate::options::{IamPath, NameFormat, PermissionBoundary, StackOptions};
use crate::resources::CodeBucket;

/// What CloudFormation needs to create, change and delete the resources of a stack of this name.
///
/// It follows the options: formats of role and policy names, external roles, the KMS key and the permissions boundary. With a
/// `permission_boundary`, roles can be created and changed only if they have that boundary, and nobody can remove it.
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
    let mut statements = vec![Statement::allow(
        "Table",
        table_actions(),
        vec![place.arn("dynamodb", &format!("table/{name}"))],
    )];
    if options.enable_contributor_insights() {
        statements.push(contributor_insights(place));
    }
    statements.extend(functions(name, place));
    statements.push(code(place, options));
    statements.extend(iam(name, place, options));
    statements.extend(logs_and_queues(name, place));
    statements.extend([
        watching(name, place, options),
        Statement::allow(
            "FindAlarms",
            actions("cloudwatch", &["DescribeAlarms"]),
            vec![place.arn("cloudwatch", "alarm:*")],
        ),
        Statement::allow(
            "Archive",
            archive_actions(),
            vec![place.global_arn("s3", &generated_bucket(name, &ids::ARCHIVE_BUCKET))],
        )
        .when(own_buckets(place)),
    ]);
    if !options.lambda_subnet_ids().is_empty() {
        let look = [
            "DescribeNetworkInterfaces",
            "DescribeSecurityGroups",
            "DescribeSubnets",
            "DescribeVpcs",
        ];
        statements.push(Statement::allow(
            "Network",
            actions("ec2", &look),
            vec!["*".into()],
        ));
    }
    if let Some(key) = options.kms_key_arn() {
        statements.push(Statement::allow("Key", key_actions(), vec![key.as_str().into()]));
    }
    PolicyDocument::new(statements)
}

/// What applying the Terraform module with this name needs: what CloudFormation needs for the same resources, what the AWS
/// provider reads in addition, and the table's version record.
///
/// ```
/// use zae_limiter_template::deployer::{Place, terraform_policy};
/// use zae_limiter_template::{StackName, StackOptions};
///
/// let place = Place { partition: "aws".into(), region: "eu-west-1".into(), account: "123456789012".into() };
/// let policy = terraform_policy(&StackName::parse("limiter")?, &place, &StackOptions::default());
/// assert!(serde_json::to_string(&policy)?.contains("arn:aws:s3:::limiter-audit-*"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn terraform_policy(name: &StackName, place: &Place, options: &StackOptions) -> PolicyDocument {
    let mut document = provisioning_policy(name, place, options);
    for statement in &mut document.statements {
        match statement.sid {
            "Functions" => {
                let read = ["GetPolicy", "ListVersionsByFunction"];
                statement.actions.extend(actions("lambda", &read));
            }
            // Read before a role is deleted.
            "Roles" => {
                let read = actions("iam", &["ListInstanceProfilesForRole"]);
                statement.actions.extend(read);
            }
            "Archive" => {
                let prefix: String = name
                    .as_str()
                    .to_ascii_lowercase()
                    .chars()
                    .take(AUDIT_PREFIX)
                    .collect();
                // The bucket of a stack may be imported, so its name stays among the resources.
                let made = place.global_arn("s3", &format!("{prefix}-audit-*"));
                statement.resources.push(made);
            }
            // With `code_bucket`, the module uploads the archives.
            "Code" if options.code_bucket().is_some() => {
                let write = ["DeleteObject", "GetObjectTagging", "PutObject"];
                statement.actions.extend(actions("s3", &write));
            }
            _ => {}
        }
    }
    let write = ["DeleteItem", "GetItem", "PutItem", "UpdateItem"];
    let version = Statement::allow(
        "VersionRecord",
        actions("dynamodb", &write),
        vec![place.arn("dynamodb", &format!("table/{name}"))],
    );
    let system = Condition::default().all_like("dynamodb:LeadingKeys", &[SYSTEM_PARTITION]);
    document.statements.push(version.when(system));
    document
}

/// Characters of the name that the module's archive bucket starts with.
const AUDIT_PREFIX: usize = 30;

/// DynamoDB creates this role when the first table of the account turns Contributor Insights on.
fn contributor_insights(place: &Place) -> Statement {
    const SERVICE: &str = "contributorinsights.dynamodb.amazonaws.com";
    let role =
        format!("role/aws-service-role/{SERVICE}/AWSServiceRoleForDynamoDBCloudWatchContributorInsights");
    Statement::allow(
        "ServiceRole",
        actions("iam", &["CreateServiceLinkedRole"]),
        vec![place.account_arn("iam", &role)],
    )
    .when(Condition::default().equals("iam:AWSServiceName", SERVICE))
}

fn functions(name: &StackName, place: &Place) -> [Statement; 3] {
    let functions = place.arn("lambda", &format!("function:{name}-*"));
    [
        Statement::allow("Functions", function_actions(), vec![functions.clone()]),
        // AWS generates a mapping's id, so a mapping is known by its function.
        Statement::allow("Mappings", mapping_actions(), vec!["*".into()])
            .when(Condition::default().arn_like("lambda:FunctionArn", functions)),
        // Requests that tag a mapping do not name its function.
        Statement::allow(
            "MappingTags",
            actions("lambda", &["ListTags", "TagResource", "UntagResource"]),
            vec![place.arn("lambda", "event-source-mapping:*")],
        ),
    ]
}

/// Lambda reads an archive with the permissions of the caller that creates the function.
fn code(place: &Place, options: &StackOptions) -> Statement {
    let bucket = CodeBucket::of(options).name(&place.account, &place.region);
    Statement::allow(
        "Code",
        actions("s3", &["GetObject", "GetObjectVersion"]),
        vec![place.global_arn("s3", &format!("{bucket}/*"))],
    )
}

fn iam(name: &StackName, place: &Place, options: &StackOptions) -> Vec<Statement> {
    let path = options.iam_path().map_or("/", IamPath::as_str);
    let role = names("role", path, name, options.role_name_format());
    let role = place.account_arn("iam", &role);
    let policy = names("policy", path, name, options.policy_name_format());
    let policy = place.account_arn("iam", &policy);
    let boundary = options.permission_boundary().map(|boundary| match boundary {
        PermissionBoundary::Arn(arn) => Text::from(arn.as_str()),
        PermissionBoundary::Name(name) => place.account_arn("iam", &format!("policy/{name}")),
    });
    let bounded = || match &boundary {
        Some(boundary) => Condition::default().equals("iam:PermissionsBoundary", boundary.clone()),
        None => Condition::default(),
    };
    let to_lambda = || Condition::default().equals("iam:PassedToService", "lambda.amazonaws.com");
    let mut statements = vec![
        Statement::allow("Roles", role_actions(), vec![role.clone()]),
        Statement::allow("GrantToRoles", granting_actions(), vec![role.clone()]).when(bounded()),
        Statement::allow(
            "AttachPolicies",
            actions("iam", &["AttachRolePolicy", "DetachRolePolicy"]),
            vec![role.clone()],
        )
        .when(bounded().arn_like("iam:PolicyARN", policy.clone())),
        Statement::allow("PassRoles", actions("iam", &["PassRole"]), vec![role]).when(to_lambda()),
        Statement::allow("Policies", policy_actions(), vec![policy]),
    ];
    let external: Vec<Text> = [options.aggregator_role_arn(), options.archiver_role_arn()]
        .into_iter()
        .flatten()
        .map(|arn| arn.as_str().into())
        .collect();
    if !external.is_empty() {
        let pass = actions("iam", &["PassRole"]);
        statements.push(Statement::allow("PassExternalRoles", pass, external).when(to_lambda()));
    }
    statements
}

fn logs_and_queues(name: &StackName, place: &Place) -> [Statement; 3] {
    [
        Statement::allow(
            "Logs",
            log_actions(),
            vec![place.arn("logs", &format!("log-group:/aws/lambda/{name}-*"))],
        ),
        Statement::allow(
            "FindLogs",
            actions(
                "logs",
                &[
                    "DescribeIndexPolicies",
                    "DescribeLogGroups",
                    "DescribeResourcePolicies",
                ],
            ),
            vec![place.arn("logs", "*")],
        ),
        Statement::allow(
            "Queues",
            queue_actions(),
            vec![place.arn("sqs", &format!("{name}-*"))],
        ),
    ]
}

/// What the names of a kind look like under the options' format.
fn names(kind: &str, path: &str, name: &StackName, format: Option<&NameFormat>) -> String {
    let inner = format!("{name}-*");
    let all = format.map_or_else(|| inner.clone(), |format| format.apply(&inner));
    format!("{kind}{path}{all}")
}

/// Only buckets of the account: a pattern for generated names may match those of others. A bucket that is being created belongs
/// to nobody yet.
pub(super) fn own_buckets(place: &Place) -> Condition {
    Condition::default().equals_if_exists("aws:ResourceAccount", place.account.as_str())
}

/// CloudFormation names a bucket `{stack}-{logical id}-{random}` in lower case, and shortens a long stack name.
pub(super) fn generated_bucket(name: &StackName, id: &LogicalId) -> String {
    /// Characters of a stack name that are always kept.
    const KEPT: usize = 20;
    let (name, id) = (
        name.as_str().to_ascii_lowercase(),
        id.as_str().to_ascii_lowercase(),
    );
    match name.char_indices().nth(KEPT) {
        Some((end, _)) => format!("{}*-{id}-*", &name[..end]),
        None => format!("{name}-{id}-*"),
    }
}

fn table_actions() -> Vec<Action> {
    actions(
        "dynamodb",
        &[
            "CreateTable",
            "DeleteTable",
            // The table, its backups, expiry, insights and destinations.
            "Describe*",
            "GetResourcePolicy",
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
            // GetFunction, and the configurations that the read handler looks at.
            "GetFunction*",
            "GetRuntimeManagementConfig",
            "ListTags",
            "PutFunctionConcurrency",
            "TagResource",
            "UntagResource",
            // The code and the configuration. A managed policy has at most 6,144 characters.
            "UpdateFunctionCo*",
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
            "DeleteRole",
            "GetRole",
            "GetRolePolicy",
            "ListAttachedRolePolicies",
            "ListRolePolicies",
            "TagRole",
            "UntagRole",
            "UpdateAssumeRolePolicy",
            "UpdateRole*",
        ],
    )
}

/// What decides about a role's permissions. Removing a boundary is not among them.
fn granting_actions() -> Vec<Action> {
    actions(
        "iam",
        &[
            "CreateRole",
            "DeleteRolePolicy",
            "PutRolePermissionsBoundary",
            "PutRolePolicy",
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
            "GetDataProtectionPolicy",
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

/// The alarms, and the dashboard if the stack has one.
fn watching(name: &StackName, place: &Place, options: &StackOptions) -> Statement {
    let mut resources = vec![place.arn("cloudwatch", &format!("alarm:{name}-*"))];
    let mut operations = vec![
        "DeleteAlarms",
        "ListTagsForResource",
        "PutMetricAlarm",
        "TagResource",
        "UntagResource",
    ];
    if options.enable_dashboard() {
        resources.push(place.account_arn("cloudwatch", &format!("dashboard/{name}")));
        operations.extend(["DeleteDashboards", "GetDashboard", "PutDashboard"]);
    }
    Statement::allow("Alarms", actions("cloudwatch", &operations), resources)
}

fn archive_actions() -> Vec<Action> {
    actions(
        "s3",
        &[
            "CreateBucket",
            "DeleteBucket",
            "DeleteBucketPolicy",
            // The read handler looks at every configuration that a bucket can have.
            "Get*Configuration",
            "GetBucket*",
            "ListBucket",
            "ListTagsForResource",
            "PutBucketObjectLockConfiguration",
            "PutBucketOwnershipControls",
            "PutBucketPolicy",
            "PutBucketPublicAccessBlock",
            "PutBucketTagging",
            "PutBucketVersioning",
            "PutEncryptionConfiguration",
            "PutLifecycleConfiguration",
            "TagResource",
            "UntagResource",
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
            "RevokeGrant",
        ],
    )
}
