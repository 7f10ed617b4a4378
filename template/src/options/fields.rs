//! The list of options: each with its kind, type, default and rule.

use std::collections::BTreeMap;

use zae_limiter_schema::WindowKind;

use super::StackOptions;
use super::choices::{AcquirePolicy, Architecture, IndexProjection, ObjectLockMode, StreamStart, TableClass};
use super::field::Field;
use super::formats::{
    AccountId, BucketName, EventBusName, IamPath, KeyArn, NameFormat, ObjectKey, PermissionBoundary, RoleArn,
    SecurityGroupId, SubnetId, TopicArn,
};
use super::mistake::{InvalidOptions, Mistake};
use super::raw::{Given, Words};
use super::rules::{
    accepts, any, between, choice, directory, list, log_retention, optional, text, user_tags, windows,
};

options! {
    /// Usage windows that the aggregator fills: `hourly`, `daily`, `monthly`. Default: hourly and daily.
    snapshot_windows: windows Vec<WindowKind>, "hourly,daily".into(), windows();
    /// Days to keep a usage snapshot after its window has ended. Default: 90.
    usage_retention_days: number u32, 90, between(1, 3650);
    /// Days to keep an audit event in the table. Default: 90.
    audit_retention_days: number u32, 90, between(1, 3650);
    /// Whether the stack has the aggregator, which counts usage. Default: true.
    enable_aggregator: flag bool, true, any();
    /// Concurrent batches per shard for the aggregator, 1 to 10. Default: 1.
    aggregator_parallelization: number u32, 1, between(1, 10);
    /// Name of the `EventBridge` bus that gets an event when a quota reaches a threshold, such as `default`. Default: none.
    event_bus: maybe_text EventBusName, None, optional(text(None));
    /// Where new event source mappings start: `trim_horizon`, or `latest` for an adopted table. Default: `trim_horizon`.
    stream_start: choice StreamStart, StreamStart::TrimHorizon.into(), choice();
    /// What the index by resource copies: `keys`, or `all` at twice the write cost. Default: `keys`.
    gsi2_projection: choice IndexProjection, IndexProjection::Keys.into(), choice();
    /// Storage class of the table: `standard`, or `infrequent_access` for cheaper storage and dearer requests. Default: `standard`.
    table_class: choice TableClass, TableClass::Standard.into(), choice();
    /// Most read request units per second of the table and of each index, which bounds the cost. Default: no limit.
    max_read_request_units: maybe_number u32, None, optional(between(1, 10_000_000));
    /// Most write request units per second of the table and of each index, which bounds the cost. Default: no limit.
    max_write_request_units: maybe_number u32, None, optional(between(1, 10_000_000));
    /// Days of point-in-time recovery, 1 to 35. Default: 35, as AWS sets it.
    pitr_recovery_days: maybe_number u32, None, optional(between(1, 35));
    /// Whether the table refuses to be deleted. Default: false.
    enable_deletion_protection: flag bool, false, any();
    /// Whether `DynamoDB` reports the most accessed keys; use it for parents with more than 500 children. Default: false.
    enable_contributor_insights: flag bool, false, any();
    /// ARN of a KMS key for the table, queues, logs and archive. Default: AWS owned keys.
    kms_key_arn: maybe_text KeyArn, None, optional(text(None));
    /// Days to keep the functions' logs. Default: 30.
    log_retention_days: number u32, 30, log_retention();
    /// Timeout of a function, in seconds. Default: 60.
    lambda_timeout: number u32, 60, between(1, 900);
    /// Memory of a function, in megabytes. Default: 256.
    lambda_memory: number u32, 256, between(128, 3008);
    /// Processor of the functions: `x86_64` or `arm64`. Default: `x86_64`.
    lambda_architecture: choice Architecture, Architecture::X86_64.into(), choice();
    /// Reserved concurrent executions of each function. Default: none.
    lambda_reserved_concurrency: maybe_number u32, None, optional(between(1, 10_000));
    /// Subnets of the functions, in one VPC that reaches the AWS services in use. Default: no VPC.
    lambda_subnet_ids: list SubnetId, Words::default(), list();
    /// Security groups of the functions, with `lambda_subnet_ids`. Default: no VPC.
    lambda_security_group_ids: list SecurityGroupId, Words::default(), list();
    /// Whether the functions are traced with X-Ray. Default: false.
    enable_tracing: flag bool, false, any();
    /// Whether the stack has alarms. Default: true.
    enable_alarms: flag bool, true, any();
    /// ARN of the SNS topic that every alarm notifies. Default: none.
    alarm_sns_topic: maybe_text TopicArn, None, optional(text(None));
    /// Average duration that raises an alarm, as a percentage of the timeout. Default: 80.
    lambda_duration_threshold_pct: number u32, 80, between(1, 100);
    /// Percentage of failed invocations above which an alarm is raised. Default: 1.
    alarm_error_rate_pct: number u32, 1, between(0, 99);
    /// Lag behind the table, in seconds, above which an alarm is raised. Default: 30.
    alarm_iterator_age_seconds: number u32, 30, between(1, 79_200);
    /// Throttled requests in five minutes, of the table or an index, above which an alarm is raised. Default: 1.
    alarm_throttled_requests: number u32, 1, between(0, 1_000_000);
    /// Whether the stack has a CloudWatch dashboard. Default: false.
    enable_dashboard: flag bool, false, any();
    /// Whether the stack has managed policies, and roles for its functions. Default: true.
    create_iam: flag bool, true, any();
    /// Whether the stack also has roles for applications, administrators and readers. Default: false.
    create_iam_roles: flag bool, false, any();
    /// Other accounts whose roles may assume the role for applications, for access across accounts. Default: none.
    trusted_accounts: list AccountId, Words::default(), list();
    /// Path of every role and managed policy, such as `/limiter/`. Default: `/`.
    iam_path: maybe_text IamPath, None, optional(text(Some(512)));
    /// Name or ARN of the managed policy that is the permissions boundary of every role. Default: none.
    permission_boundary: maybe_text PermissionBoundary, None, optional(text(None));
    /// Format of role names, with `{}` in place of `{stack}-{component}`. Default: `{}`.
    role_name_format: maybe_text NameFormat, None, optional(text(Some(55)));
    /// Format of policy names, with `{}` in place of `{stack}-{component}`. Default: `{}`.
    policy_name_format: maybe_text NameFormat, None, optional(text(Some(122)));
    /// Whether role and policy names include the region, so that one stack name works in several. Default: false.
    regional_iam_names: flag bool, false, any();
    /// How narrow the acquire policy is: limited to `keys`, or to `attributes` as well. Default: `keys`.
    acquire_policy: choice AcquirePolicy, AcquirePolicy::Keys.into(), choice();
    /// ARN of an existing role for the aggregator. Default: a role of the stack.
    aggregator_role_arn: maybe_text RoleArn, None, optional(text(None));
    /// ARN of an existing role for the archiver. Default: a role of the stack.
    archiver_role_arn: maybe_text RoleArn, None, optional(text(None));
    /// Whether audit events are archived in S3. Default: true.
    enable_audit_archival: flag bool, true, any();
    /// Days until archived events move to Glacier Instant Retrieval. Default: 90.
    audit_archive_glacier_days: number u32, 90, between(1, 3650);
    /// Days that an archived event cannot be deleted. Can only be set when the bucket is created. Default: no lock.
    audit_archive_object_lock_days: maybe_number u32, None, optional(between(1, 36_500));
    /// Who may remove a lock: `governance` or `compliance`. Default: `governance`.
    audit_archive_object_lock_mode: choice ObjectLockMode, ObjectLockMode::Governance.into(), choice();
    /// Name of an existing bucket for the archive, which the stack does not change. Default: a bucket of the stack.
    archive_bucket: maybe_text BucketName, None, optional(text(None));
    /// Name of an existing bucket for the functions' archives. Default: `zae-limiter-artifacts-{account}-{region}`.
    code_bucket: maybe_text BucketName, None, optional(text(None));
    /// Directory with the functions' archives. Default: where the build puts them.
    code_directory: maybe_text String, None, optional(directory());
    /// Key of the aggregator's archive in `code_bucket`. Default: the archive is uploaded.
    aggregator_code_key: maybe_text ObjectKey, None, optional(text(None));
    /// Key of the archiver's archive in `code_bucket`. Default: the archive is uploaded.
    archiver_code_key: maybe_text ObjectKey, None, optional(text(None));
    /// Tags for every resource of the stack, at most 43. Default: none.
    tags: tags BTreeMap<String, String>, BTreeMap::new(), user_tags();
}

impl StackOptionsBuilder {
    /// The options, or every mistake in them.
    pub fn build(self) -> Result<StackOptions, InvalidOptions> {
        let contradictions = self.contradictions();
        match self.settle() {
            Ok(settings) => {
                InvalidOptions::unless_empty(contradictions)?;
                Ok(StackOptions::settled(self, settings))
            }
            Err(mut mistakes) => {
                mistakes.extend(contradictions);
                Err(InvalidOptions::of(mistakes))
            }
        }
    }

    /// Options that are fine alone and not together.
    fn contradictions(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let mut refuse =
            |field, value: &dyn Given, rule: &str| mistakes.push(Mistake::new(field, value.given(), rule));
        if self.create_iam_roles && !self.create_iam {
            refuse(
                "create_iam_roles",
                &self.create_iam_roles,
                "must be false when create_iam is false",
            );
        }
        if self.trusted_accounts.words().next().is_some() && !self.create_iam_roles {
            let rule = "needs create_iam_roles: these accounts assume the role for applications";
            refuse("trusted_accounts", &self.trusted_accounts, rule);
        }
        let (subnets, groups) = (&self.lambda_subnet_ids, &self.lambda_security_group_ids);
        if subnets.words().next().is_some() != groups.words().next().is_some() {
            let rule = "must be set together with lambda_security_group_ids, or neither";
            refuse("lambda_subnet_ids", subnets, rule);
        }
        if self.archive_bucket.is_some() && self.audit_archive_object_lock_days.is_some() {
            let rule = "must not be set together with archive_bucket, which the stack leaves as it is";
            refuse(
                "audit_archive_object_lock_days",
                &self.audit_archive_object_lock_days,
                rule,
            );
        }
        if self.code_bucket.is_none() {
            let rule = "needs code_bucket, the bucket that has it";
            if self.aggregator_code_key.is_some() {
                refuse("aggregator_code_key", &self.aggregator_code_key, rule);
            }
            if self.archiver_code_key.is_some() {
                refuse("archiver_code_key", &self.archiver_code_key, rule);
            }
        }
        mistakes
    }
}
