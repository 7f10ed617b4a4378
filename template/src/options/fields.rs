//! The list of options: each with its kind, what it is settled to, its default and its rule.

use std::collections::BTreeMap;

use zae_limiter_schema::WindowKind;

use super::StackOptions;
use super::choices::{AcquirePolicy, Architecture, IndexProjection, ObjectLockMode, StreamStart};
use super::formats::{BucketName, KeyArn, NameFormat, ObjectKey, PermissionBoundary, RoleArn, TopicArn};
use super::mistake::{InvalidOptions, Mistake};
use super::raw::Given;
use super::rules::{any, between, directory, log_retention, optional, parsed, user_tags, windows};

options! {
    /// Usage windows that the aggregator fills: `hourly`, `daily`, `monthly`. Default: hourly and daily.
    snapshot_windows: windows => Vec<WindowKind>, "hourly,daily".into(), windows;
    /// Days that a usage snapshot is kept after its window has ended. Default: 90.
    usage_retention_days: number => u32, 90, between(1, 3650);
    /// Days that an audit event stays in the table. Default: 90.
    audit_retention_days: number => u32, 90, between(1, 3650);
    /// Whether the aggregator, which counts usage, is part of the stack. Default: yes.
    enable_aggregator: flag => bool, true, any;
    /// Batches of one shard that the aggregator works on at the same time, 1 to 10. Default: 1.
    aggregator_parallelization: number => u32, 1, between(1, 10);
    /// Where in the stream the functions start: `trim_horizon`, or `latest` for an adopted table. Default: `trim_horizon`.
    stream_start: text => StreamStart, StreamStart::TrimHorizon.into(), parsed(StreamStart::parse);
    /// What the index by resource copies: `keys`, or `all` at twice the write cost. Default: `keys`.
    gsi2_projection: text => IndexProjection, IndexProjection::Keys.into(), parsed(IndexProjection::parse);
    /// Days that the table can be set back to, 1 to 35. Default: AWS's, which is 35.
    pitr_recovery_days: maybe_number => Option<u32>, None, optional(between(1, 35));
    /// Whether the table refuses to be deleted. Default: no.
    enable_deletion_protection: flag => bool, false, any;
    /// Whether `DynamoDB` reports the most used keys: for parents with more than 500 children. Default: no.
    enable_contributor_insights: flag => bool, false, any;
    /// ARN of a KMS key for table, queues, logs and archive. Default: keys of AWS.
    kms_key_arn: maybe_text => Option<KeyArn>, None, optional(parsed(KeyArn::parse));
    /// Days that the functions' logs are kept. Default: 30.
    log_retention_days: number => u32, 30, log_retention;
    /// Seconds that a call of a function may take. Default: 60.
    lambda_timeout: number => u32, 60, between(1, 900);
    /// Megabytes of memory of a function. Default: 256.
    lambda_memory: number => u32, 256, between(128, 3008);
    /// Processor of the functions: `x86_64` or `arm64`. Default: `x86_64`.
    lambda_architecture: text => Architecture, Architecture::X86_64.into(), parsed(Architecture::parse);
    /// Calls at once that are set aside for each function. Default: none.
    lambda_reserved_concurrency: maybe_number => Option<u32>, None, optional(between(1, 10_000));
    /// Whether calls of the functions are traced with X-Ray. Default: no.
    enable_tracing: flag => bool, false, any;
    /// Whether there are alarms. Default: yes.
    enable_alarms: flag => bool, true, any;
    /// ARN of the SNS topic that every alarm tells. Default: none.
    alarm_sns_topic: maybe_text => Option<TopicArn>, None, optional(parsed(TopicArn::parse));
    /// Percentage of the timeout that a call may take on average before an alarm. Default: 80.
    lambda_duration_threshold_pct: number => u32, 80, between(1, 100);
    /// Percentage of failed calls above which there is an alarm. Default: 1.
    alarm_error_rate_pct: number => u32, 1, between(0, 99);
    /// Seconds that a function may be behind the table before an alarm. Default: 30.
    alarm_iterator_age_seconds: number => u32, 30, between(1, 79_200);
    /// Throttled requests in five minutes, of the table or of an index, above which there is an alarm. Default: 1.
    alarm_throttled_requests: number => u32, 1, between(0, 1_000_000);
    /// Whether the stack has managed policies, and roles for its functions. Default: yes.
    create_iam: flag => bool, true, any;
    /// Whether the stack has roles for applications, administrators and readers as well. Default: no.
    create_iam_roles: flag => bool, false, any;
    /// Name or ARN of the managed policy that bounds every role. Default: none.
    permission_boundary: maybe_text => Option<PermissionBoundary>, None, optional(parsed(PermissionBoundary::parse));
    /// How role names are made, with `{}` for `{stack}-{component}`. Default: `{}`.
    role_name_format: maybe_text => Option<NameFormat>, None, optional(parsed(|text| NameFormat::parse(text, 55)));
    /// How policy names are made, with `{}` for `{stack}-{component}`. Default: `{}`.
    policy_name_format: maybe_text => Option<NameFormat>, None, optional(parsed(|text| NameFormat::parse(text, 122)));
    /// Whether names of roles and policies have the region in them, for one name in several regions. Default: no.
    regional_iam_names: flag => bool, false, any;
    /// How narrow the policy for acquiring is: `keys`, or `attributes` as well. Default: `keys`.
    acquire_policy: text => AcquirePolicy, AcquirePolicy::Keys.into(), parsed(AcquirePolicy::parse);
    /// ARN of a role for the aggregator that is not made by the stack. Default: none.
    aggregator_role_arn: maybe_text => Option<RoleArn>, None, optional(parsed(RoleArn::parse));
    /// ARN of a role for the archiver that is not made by the stack. Default: none.
    archiver_role_arn: maybe_text => Option<RoleArn>, None, optional(parsed(RoleArn::parse));
    /// Whether audit events are archived in S3. Default: yes.
    enable_audit_archival: flag => bool, true, any;
    /// Days until archived events move to Glacier Instant Retrieval. Default: 90.
    audit_archive_glacier_days: number => u32, 90, between(1, 3650);
    /// Days that an archived event cannot be deleted. Fixed when the bucket is created. Default: no lock.
    audit_archive_object_lock_days: maybe_number => Option<u32>, None, optional(between(1, 36_500));
    /// Who may lift the lock: `governance` or `compliance`. Default: `governance`.
    audit_archive_object_lock_mode: text => ObjectLockMode, ObjectLockMode::Governance.into(), parsed(ObjectLockMode::parse);
    /// Name of an existing bucket for the archive, which the stack leaves as it is. Default: a bucket of the stack.
    archive_bucket: maybe_text => Option<BucketName>, None, optional(parsed(BucketName::parse));
    /// Name of an existing bucket for the functions' archives. Default: `zae-limiter-artifacts-{account}-{region}`.
    code_bucket: maybe_text => Option<BucketName>, None, optional(parsed(BucketName::parse));
    /// Directory in which a deployment finds the functions' archives. Default: where the build puts them.
    code_directory: maybe_text => Option<String>, None, optional(parsed(directory));
    /// Key of the aggregator's archive, if it is in `code_bucket` already.
    aggregator_code_key: maybe_text => Option<ObjectKey>, None, optional(parsed(ObjectKey::parse));
    /// Key of the archiver's archive, if it is in `code_bucket` already.
    archiver_code_key: maybe_text => Option<ObjectKey>, None, optional(parsed(ObjectKey::parse));
    /// Tags for everything in the stack, at most 43.
    tags: tags => BTreeMap<String, String>, BTreeMap::new(), user_tags;
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
