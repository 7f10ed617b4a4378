//! The stacks that tests and linters look at.

#![allow(dead_code, reason = "not every test looks at every stack")]

use zae_limiter_template::deployer::{
    Place, deployer_policy, ensure_policy, provisioning_policy, purge_policy,
};
use zae_limiter_template::model::iam::PolicyDocument;
use zae_limiter_template::{
    AcquirePolicy, Architecture, CodeBucket, CodeLocation, FunctionCode, IndexProjection, LambdaFunction,
    ObjectLockMode, RoleArn, StackName, StackOptions, StackOptionsBuilder, StreamStart, TableClass, Template,
    WindowKind, export, render,
};

pub(crate) const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:ops";
pub(crate) const KEY: &str = "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555";

/// A name of 55 characters, the longest there is.
pub(crate) const LONGEST_NAME: &str = "a-name-that-is-as-long-as-a-name-of-a-stack-may-ever-be";

/// Archives of made-up hashes.
pub(crate) fn code() -> FunctionCode {
    let object = |digit: &str| CodeLocation::Object {
        bucket: CodeBucket::Artifacts,
        key: format!("{}.zip", digit.repeat(64)),
    };
    FunctionCode::none()
        .with(LambdaFunction::Aggregator, object("a"))
        .with(LambdaFunction::Archiver, object("b"))
}

/// Everything that can be switched on.
pub(crate) fn everything() -> StackOptionsBuilder {
    StackOptions::builder()
        .snapshot_windows([WindowKind::Hourly, WindowKind::Daily, WindowKind::Monthly])
        .pitr_recovery_days(14)
        .enable_deletion_protection(true)
        .enable_contributor_insights(true)
        .kms_key_arn(KEY)
        .lambda_reserved_concurrency(10)
        .enable_tracing(true)
        .event_bus("company-events")
        .alarm_sns_topic(TOPIC)
        .enable_dashboard(true)
        .create_iam_roles(true)
        .acquire_policy(AcquirePolicy::Attributes)
        .audit_archive_object_lock_days(365)
        .audit_archive_object_lock_mode(ObjectLockMode::Compliance)
        .tags([("team".to_owned(), "platform".to_owned())].into())
}

/// Everything that can be switched off.
pub(crate) fn nothing_optional() -> StackOptionsBuilder {
    StackOptions::builder()
        .enable_aggregator(false)
        .enable_audit_archival(false)
        .enable_alarms(false)
        .create_iam(false)
}

/// A company with rules of its own for IAM.
pub(crate) fn enterprise() -> StackOptionsBuilder {
    StackOptions::builder()
        .permission_boundary("company-boundary")
        .role_name_format("pb-{}-PowerUser")
        .policy_name_format("pb-{}")
        .create_iam_roles(true)
        .aggregator_role_arn("arn:aws:iam::123456789012:role/pb-limiter-aggr")
        .archiver_role_arn("arn:aws:iam::123456789012:role/pb-limiter-arch")
        .alarm_sns_topic(TOPIC)
}

/// The other choice wherever there is one.
pub(crate) fn alternatives() -> StackOptionsBuilder {
    StackOptions::builder()
        .lambda_architecture(Architecture::Arm64)
        .gsi2_projection(IndexProjection::All)
        .stream_start(StreamStart::Latest)
        .regional_iam_names(true)
        .archive_bucket("company-audit-archive")
        .aggregator_parallelization(10)
        .permission_boundary("arn:aws:iam::aws:policy/PowerUserAccess")
        .create_iam_roles(true)
        .table_class(TableClass::InfrequentAccess)
        .max_read_request_units(4_000)
        .max_write_request_units(1_000)
        .lambda_subnet_ids(["subnet-0a1b2c3d4e5f60718", "subnet-1a1b2c3d4e5f60718"])
        .lambda_security_group_ids(["sg-0a1b2c3d4e5f60718"])
        .trusted_accounts(["210987654321", "098765432109"])
        .iam_path("/limiter/")
}

fn rendered(name: &str, options: StackOptionsBuilder) -> Template {
    render(
        &StackName::parse(name).unwrap(),
        &options.build().unwrap(),
        &code(),
    )
    .unwrap()
}

/// Every stack, by the name of its snapshot.
pub(crate) fn all() -> Vec<(&'static str, Template)> {
    let default = StackOptions::builder;
    vec![
        ("default", rendered("limiter", default())),
        ("everything-on", rendered("limiter", everything())),
        ("nothing-optional", rendered("limiter", nothing_optional())),
        ("enterprise", rendered("limiter", enterprise())),
        ("no-iam", rendered("limiter", default().create_iam(false))),
        (
            "no-aggregator",
            rendered("limiter", default().enable_aggregator(false)),
        ),
        (
            "no-archival",
            rendered("limiter", default().enable_audit_archival(false)),
        ),
        ("alternatives", rendered("limiter", alternatives())),
        ("longest-name", rendered(LONGEST_NAME, everything())),
        (
            "export",
            export::cloudformation(&default().build().unwrap()).unwrap(),
        ),
        (
            "export-everything",
            export::cloudformation(&everything().build().unwrap()).unwrap(),
        ),
    ]
}

/// A role that CloudFormation assumes.
pub(crate) fn service_role() -> RoleArn {
    "arn:aws:iam::123456789012:role/cloudformation".parse().unwrap()
}

/// The policies of a deployer as a template, so that linters recognize them as policies.
pub(crate) fn deployer_template() -> serde_json::Value {
    let place = Place {
        partition: "aws".into(),
        region: "eu-central-1".into(),
        account: "123456789012".into(),
    };
    let name = StackName::parse("limiter").unwrap();
    let policy = |document: PolicyDocument| serde_json::json!({ "Type": "AWS::IAM::ManagedPolicy", "Properties": { "PolicyDocument": document } });
    serde_json::json!({ "Resources": {
        "Ensure": policy(ensure_policy(&name, &place)),
        "Deployer": policy(deployer_policy(&name, &place, &everything().build().unwrap(), Some(&service_role()))),
        "Provisioning": policy(provisioning_policy(&name, &place, &everything().build().unwrap())),
        "Purge": policy(purge_policy(&name, &place)),
    } })
}
