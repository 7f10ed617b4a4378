//! IAM policies for people, pipelines and applications.
//!
//! Unlike the policies in a template they are written out for one account and region.
//!
//! | Policy | For |
//! |---|---|
//! | [`ensure_policy`] | applications that observe their stack |
//! | [`plan_policy`] | pipelines that plan and change nothing |
//! | [`deployer_policy`] | people and pipelines that deploy, for their own calls |
//! | [`provisioning_policy`] | CloudFormation: a service role, or the deployer as well |
//! | [`terraform_policy`] | people and pipelines that apply the Terraform module |
//! | [`purge_policy`] | deleting a stack with its data |
//! | [`redrive_policy`] | counting the aggregator's dead letters |
//! | [`client_policy`] | users of the table, where the stack has no managed policies |
//! | [`function_policy`] | the functions, where they have roles of your own |
//!
//! A managed policy of IAM has at most 6,144 characters; [`managed_policies`] splits a longer document.

mod client;
mod provisioning;
mod redrive;

pub use client::{client_policy, function_policy};
pub use provisioning::{provisioning_policy, terraform_policy};
pub use redrive::redrive_policy;

use zae_limiter_schema::keys::{SYSTEM_PARTITION, prefix};
use zae_limiter_schema::{AuditSubject, StackName};

use crate::model::iam::{Action, Condition, PolicyDocument, Statement, actions};
use crate::model::{Text, ids};
use crate::options::{RoleArn, StackOptions};
use crate::resources::CodeBucket;
use crate::{Error, IMPORT_PROTECTION_TAG};

/// The account and region of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `aws`, `aws-cn`, `aws-us-gov`, …
    pub partition: String,
    /// The region, such as `eu-central-1`.
    pub region: String,
    /// The account's twelve digits.
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

/// The most characters of a managed policy. White space does not count, and these documents have none.
pub const LONGEST_MANAGED_POLICY: usize = 6_144;

/// A policy as managed policies that IAM accepts: the document, or several with some of its statements each.
///
/// ```
/// use zae_limiter_template::deployer::{Place, managed_policies, provisioning_policy};
/// use zae_limiter_template::{StackName, StackOptions};
///
/// let place = Place { partition: "aws".into(), region: "eu-west-1".into(), account: "123456789012".into() };
/// let policy = provisioning_policy(&StackName::parse("limiter")?, &place, &StackOptions::default());
/// assert_eq!(managed_policies(&policy)?, [policy]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn managed_policies(document: &PolicyDocument) -> Result<Vec<PolicyDocument>, Error> {
    let mut parts = vec![PolicyDocument::new(vec![])];
    for statement in &document.statements {
        let alone = PolicyDocument::new(vec![statement.clone()]).characters();
        if alone > LONGEST_MANAGED_POLICY {
            return Err(Error::PolicyTooLong {
                statement: statement.sid,
                characters: alone,
            });
        }
        if let Some(part) = parts.last_mut() {
            part.statements.push(statement.clone());
            if part.characters() <= LONGEST_MANAGED_POLICY {
                continue;
            }
            part.statements.pop();
        }
        parts.push(PolicyDocument::new(vec![statement.clone()]));
    }
    Ok(parts)
}

/// What an application needs to observe its stack with `ensure_infrastructure()`.
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

/// What a pipeline needs for `zae-limiter plan --offline`: it reads the stack and its table, and cannot change anything.
pub fn plan_policy(name: &StackName, place: &Place) -> PolicyDocument {
    let mut document = ensure_policy(name, place);
    document.statements.push(Statement::allow(
        "LeftTable",
        actions("dynamodb", &["DescribeTable"]),
        vec![table(name, place)],
    ));
    document
}

/// What a person or pipeline needs to plan, deploy, change and delete a stack of this name, for its own calls.
///
/// CloudFormation provisions resources with the caller's permissions, so the caller needs [`provisioning_policy`] as well, unless
/// a service role has it: then the caller may pass that role, to CloudFormation only. A purge needs [`purge_policy`].
///
/// It follows the options: archives are stored in `code_bucket` if it is set, and `archive_bucket` is checked for existence.
///
/// ```
/// use zae_limiter_template::deployer::{Place, deployer_policy};
/// use zae_limiter_template::{StackName, StackOptions};
///
/// let place = Place { partition: "aws".into(), region: "eu-west-1".into(), account: "123456789012".into() };
/// let options = StackOptions::builder().code_bucket("our-archives").build()?;
/// let policy = deployer_policy(&StackName::parse("limiter")?, &place, &options, None);
/// assert!(serde_json::to_string(&policy)?.contains("arn:aws:s3:::our-archives/*"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn deployer_policy(
    name: &StackName,
    place: &Place,
    options: &StackOptions,
    service_role: Option<&RoleArn>,
) -> PolicyDocument {
    let mut statements = vec![
        Statement::allow("Stack", stack_actions(), vec![stack(name, place)]),
        // These have no resource type, or must see every stack to find ours.
        Statement::allow("Discover", discover_actions(), vec!["*".into()]),
    ];
    statements.extend(preflight(name, place));
    // `status` counts the dead letters.
    statements.push(Statement::allow(
        "DeadLetters",
        actions("sqs", &["GetQueueAttributes", "GetQueueUrl"]),
        vec![place.arn("sqs", &format!("{name}-*-dlq"))],
    ));
    statements.push(records(name, place));
    // The records are encrypted with the table's key.
    if let Some(key) = options.kms_key_arn() {
        let through = format!("dynamodb.{}.{}", place.region, place.url_suffix());
        let use_key = actions("kms", &["Decrypt", "GenerateDataKey"]);
        let use_key = Statement::allow("RecordsKey", use_key, vec![key.as_str().into()]);
        statements.push(use_key.when(Condition::default().equals("kms:ViaService", through)));
    }
    statements.extend(code(place, options));
    // Whether it exists is checked; the archiver writes to it with a role of its own.
    if let Some(bucket) = options.archive_bucket() {
        let look = actions("s3", &["ListBucket"]);
        let bucket = place.global_arn("s3", bucket.as_str());
        statements.push(Statement::allow("GivenArchive", look, vec![bucket]));
    }
    if let Some(role) = service_role {
        let to_cloudformation =
            Condition::default().equals("iam:PassedToService", "cloudformation.amazonaws.com");
        let pass = actions("iam", &["PassRole"]);
        let pass = Statement::allow("PassServiceRole", pass, vec![role.as_str().into()]);
        statements.push(pass.when(to_cloudformation));
    }
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
            "DescribeEvents",
            "DescribeStackEvents",
            "DescribeStackResourceDrifts",
            "DescribeStackResources",
            "DescribeStacks",
            "DetectStackDrift",
            "DetectStackResourceDrift",
            "ExecuteChangeSet",
            "GetTemplate",
            "ListChangeSets",
            "RollbackStack",
            "TagResource",
            "UpdateStack",
            "UpdateTerminationProtection",
        ],
    )
}

fn discover_actions() -> Vec<Action> {
    let looks = [
        "DescribeStackDriftDetectionStatus",
        // Which stack has a table.
        "DescribeStackResources",
        "DescribeStacks",
        "ListImports",
        "ListStacks",
    ];
    let mut all = actions("cloudformation", &looks);
    all.extend(actions("cloudwatch", &["GetMetricStatistics"]));
    all.extend(actions("lambda", &["ListEventSourceMappings"]));
    all
}

/// What a deployment checks before it changes anything: the roles, boundary and topic of the options, and what an older stack
/// may have left.
fn preflight(name: &StackName, place: &Place) -> [Statement; 5] {
    let iam = vec![
        place.account_arn("iam", "role/*"),
        place.account_arn("iam", "policy/*"),
    ];
    [
        Statement::allow(
            "GivenIam",
            actions(
                "iam",
                &[
                    "GetPolicy",
                    "GetRole",
                    "ListAttachedRolePolicies",
                    "ListEntitiesForPolicy",
                ],
            ),
            iam,
        ),
        Statement::allow(
            "GivenTopic",
            actions("sns", &["GetTopicAttributes"]),
            vec![place.arn("sns", "*")],
        ),
        Statement::allow(
            "LeftTable",
            actions(
                "dynamodb",
                &["DescribeTable", "ListTagsOfResource", "UpdateTable"],
            ),
            vec![table(name, place)],
        ),
        Statement::allow(
            "LeftTableTag",
            actions("dynamodb", &["TagResource", "UntagResource"]),
            vec![table(name, place)],
        )
        .when(Condition::default().all_like("aws:TagKeys", &[IMPORT_PROTECTION_TAG])),
        Statement::allow(
            "LeftLogs",
            actions("logs", &["DescribeLogGroups"]),
            vec![place.arn("logs", "log-group:*")],
        ),
    ]
}

fn table(name: &StackName, place: &Place) -> Text {
    place.arn("dynamodb", &format!("table/{name}"))
}

/// What deleting a stack together with its data needs in addition.
pub fn purge_policy(name: &StackName, place: &Place) -> PolicyDocument {
    let archive = provisioning::generated_bucket(name, &ids::ARCHIVE_BUCKET);
    let on_bucket = [
        "DeleteBucket",
        "GetBucketObjectLockConfiguration",
        "ListBucketVersions",
    ];
    let on_objects = ["DeleteObject", "DeleteObjectVersion"];
    PolicyDocument::new(vec![
        Statement::allow(
            "Table",
            actions("dynamodb", &["DeleteTable"]),
            vec![table(name, place)],
        ),
        Statement::allow(
            "Archive",
            actions("s3", &on_bucket),
            vec![place.global_arn("s3", &archive)],
        )
        .when(provisioning::own_buckets(place)),
        Statement::allow(
            "Objects",
            actions("s3", &on_objects),
            vec![place.global_arn("s3", &format!("{archive}/*"))],
        )
        .when(provisioning::own_buckets(place)),
    ])
}

/// What a deployment writes to the table: the version and the audit retention, whose change is an audit event itself and
/// sorts after the newest event.
fn records(name: &StackName, place: &Place) -> Statement {
    let operations = ["BatchGetItem", "GetItem", "PutItem", "Query", "UpdateItem"];
    let write = actions("dynamodb", &operations);
    let events = format!("{}{}", prefix::AUDIT, AuditSubject::System);
    let system = Condition::default().all_like("dynamodb:LeadingKeys", &[SYSTEM_PARTITION, &events]);
    Statement::allow("Records", write, vec![table(name, place)]).when(system)
}

/// The default bucket is created and hardened. A bucket that the options name is used as it is.
fn code(place: &Place, options: &StackOptions) -> [Statement; 2] {
    let bucket = CodeBucket::of(options);
    let create = [
        "CreateBucket",
        "GetBucketVersioning",
        "ListBucket",
        "PutBucketPolicy",
        "PutBucketPublicAccessBlock",
        "PutBucketVersioning",
        "PutEncryptionConfiguration",
    ];
    let on_bucket: &[&str] = match bucket {
        CodeBucket::Artifacts => &create,
        CodeBucket::Named(_) => &["ListBucket"],
    };
    let bucket = bucket.name(&place.account, &place.region);
    [
        Statement::allow(
            "ArtifactsBucket",
            actions("s3", on_bucket),
            vec![place.global_arn("s3", &bucket)],
        ),
        Statement::allow(
            "Artifacts",
            actions("s3", &["GetObject", "PutObject"]),
            vec![place.global_arn("s3", &format!("{bucket}/*"))],
        ),
    ]
}
