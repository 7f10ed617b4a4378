//! What both functions have in common.

use std::collections::BTreeMap;
use std::fmt;

use zae_limiter_schema::StackName;

use super::context::Context;
use super::ids::{FunctionIds, RoleKind};
use super::{policies, tags};
use crate::Error;
use crate::model::filter::FilterPattern;
use crate::model::iam::{Condition, InlinePolicy, PolicyDocument, Principal, Role, Statement, actions};
use crate::model::lambda::{
    Code, DeadLetter, Destination, Environment, EventSourceMapping, Filter, FilterCriteria, Function,
    Logging, MetricsConfig, OnFailure, StartingPosition, Tracing, TracingMode, Vpc,
};
use crate::model::logs::LogGroup;
use crate::model::sqs::{Queue, QueueEncryption, QueuePolicy};
use crate::model::{Handle, LogicalId, Model, Text};
use crate::options::{RoleArn, StackOptions, StreamStart};

/// The longest name of a function.
const FUNCTION_NAME: usize = 64;

/// One of the stack's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LambdaFunction {
    /// Counts usage from bucket changes.
    Aggregator,
    /// Writes audit events to S3.
    Archiver,
}

impl LambdaFunction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Aggregator, Self::Archiver];

    /// The name, as in the names of functions, queues and archives.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aggregator => "aggregator",
            Self::Archiver => "archiver",
        }
    }

    /// Its name in a stack: `{stack}-{function}`, or `{stack}-{component of its role}` if that is too long for a function.
    pub fn name_in(self, stack: &StackName) -> String {
        let longest = FUNCTION_NAME - self.as_str().len() - 1;
        let component = if stack.as_str().len() > longest {
            self.role().component()
        } else {
            self.as_str()
        };
        format!("{stack}-{component}")
    }

    /// The option that enables it.
    pub const fn switch(self) -> &'static str {
        match self {
            Self::Aggregator => "enable_aggregator",
            Self::Archiver => "enable_audit_archival",
        }
    }

    /// The role it runs as.
    pub const fn role(self) -> RoleKind {
        match self {
            Self::Aggregator => RoleKind::Aggregator,
            Self::Archiver => RoleKind::Archiver,
        }
    }

    /// The logical ids of the function and its resources.
    pub const fn ids(self) -> FunctionIds {
        match self {
            // The alarms' ids are those of the outputs that operators know.
            Self::Aggregator => FunctionIds {
                function: LogicalId::fixed("AggregatorFunction"),
                role: RoleKind::Aggregator.id(),
                log_group: LogicalId::fixed("AggregatorLogGroup"),
                mapping: LogicalId::fixed("AggregatorEventSourceMapping"),
                queue: LogicalId::fixed("AggregatorDLQ"),
                queue_policy: LogicalId::fixed("AggregatorDLQPolicy"),
                queue_alarm: LogicalId::fixed("AggregatorDLQAlarm"),
                error_alarm: LogicalId::fixed("LambdaErrorRateAlarm"),
                duration_alarm: LogicalId::fixed("LambdaDurationAlarm"),
                age_alarm: LogicalId::fixed("StreamIteratorAgeAlarm"),
                stopped_alarm: LogicalId::fixed("AggregatorStoppedAlarm"),
                failed_events_alarm: LogicalId::fixed("AggregatorFailedEventsAlarm"),
                throttle_alarm: LogicalId::fixed("AggregatorThrottleAlarm"),
                destination_alarm: LogicalId::fixed("AggregatorDestinationAlarm"),
                code_key: LogicalId::fixed("AggregatorCodeKey"),
            },
            Self::Archiver => FunctionIds {
                function: LogicalId::fixed("ArchiverFunction"),
                role: RoleKind::Archiver.id(),
                log_group: LogicalId::fixed("ArchiverLogGroup"),
                mapping: LogicalId::fixed("ArchiverEventSourceMapping"),
                queue: LogicalId::fixed("ArchiverDLQ"),
                queue_policy: LogicalId::fixed("ArchiverDLQPolicy"),
                queue_alarm: LogicalId::fixed("ArchiverDLQAlarm"),
                error_alarm: LogicalId::fixed("ArchiverErrorRateAlarm"),
                duration_alarm: LogicalId::fixed("ArchiverDurationAlarm"),
                age_alarm: LogicalId::fixed("ArchiverIteratorAgeAlarm"),
                stopped_alarm: LogicalId::fixed("ArchiverStoppedAlarm"),
                failed_events_alarm: LogicalId::fixed("ArchiverFailedEventsAlarm"),
                throttle_alarm: LogicalId::fixed("ArchiverThrottleAlarm"),
                destination_alarm: LogicalId::fixed("ArchiverDestinationAlarm"),
                code_key: LogicalId::fixed("ArchiverCodeKey"),
            },
        }
    }
}

impl fmt::Display for LambdaFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What differs between the functions.
pub(super) struct Profile {
    pub(super) which: LambdaFunction,
    pub(super) description: &'static str,
    pub(super) role_description: &'static str,
    pub(super) external_role: Option<RoleArn>,
    /// The statements for its own data.
    pub(super) data: Vec<Statement>,
    pub(super) environment: BTreeMap<&'static str, Text>,
    pub(super) filter: FilterPattern,
    pub(super) batch_size: u32,
    pub(super) parallelization: u32,
}

/// A function of the model.
pub(super) struct Deployed {
    pub(super) which: LambdaFunction,
    pub(super) function: Handle<Function>,
    pub(super) mapping: Handle<EventSourceMapping>,
    pub(super) queue: Handle<Queue>,
    pub(super) role_arn: Text,
}

/// 14 days in seconds, the longest retention of SQS.
const FOURTEEN_DAYS: u32 = 14 * 24 * 60 * 60;
/// 22 hours in seconds: two hours before the stream trims a record, so that a dead letter's record can still be read.
const RECORD_AGE: u32 = 22 * 60 * 60;

/// Adds a function with its role, log group, queue and event source mapping.
pub(super) fn add(
    model: &mut Model,
    cx: &Context<'_>,
    code: Code,
    profile: Profile,
) -> Result<Deployed, Error> {
    let ids = profile.which.ids();
    let key = cx.options.kms_key_arn().map(|key| Text::from(key.as_str()));
    let queue = add_queue(model, cx, profile.which, key.clone())?;
    let log_group = model.add(
        ids.log_group,
        &LogGroup {
            log_group_name: Text::from("/aws/lambda/").then(cx.function_name(profile.which)),
            retention_in_days: cx.options.log_retention_days(),
            kms_key_id: key.clone(),
        },
    )?;
    let role_arn = match &profile.external_role {
        Some(arn) => Text::from(arn.as_str()),
        None => add_role(model, cx, &profile, &queue, &log_group)?.arn(),
    };
    let mut variables = profile.environment;
    variables.insert("DLQ_URL", queue.url());
    let tracing = if cx.options.enable_tracing() {
        TracingMode::Active
    } else {
        TracingMode::PassThrough
    };
    let function = model.add(
        ids.function,
        &Function {
            function_name: cx.function_name(profile.which),
            description: profile.description,
            runtime: "provided.al2023",
            architectures: vec![cx.options.lambda_architecture().as_str().into()],
            handler: "bootstrap",
            code,
            role: role_arn.clone(),
            memory_size: cx.options.lambda_memory(),
            timeout: cx.options.lambda_timeout(),
            reserved_concurrent_executions: cx.options.lambda_reserved_concurrency(),
            environment: Environment { variables },
            kms_key_arn: key,
            vpc_config: vpc(cx.options),
            dead_letter_config: DeadLetter {
                target_arn: queue.arn(),
            },
            tracing_config: Tracing { mode: tracing },
            logging_config: Logging {
                log_group: log_group.name(),
            },
            tags: vec![tags::lambda_version()],
        },
    )?;
    let mapping = model.add(
        ids.mapping,
        &EventSourceMapping {
            event_source_arn: cx.table.stream_arn(),
            function_name: function.arn(),
            enabled: true,
            starting_position: match cx.options.stream_start() {
                StreamStart::TrimHorizon => StartingPosition::TrimHorizon,
                StreamStart::Latest => StartingPosition::Latest,
            },
            batch_size: profile.batch_size,
            maximum_batching_window_in_seconds: 5,
            maximum_retry_attempts: -1,
            maximum_record_age_in_seconds: RECORD_AGE,
            bisect_batch_on_function_error: true,
            parallelization_factor: profile.parallelization,
            function_response_types: vec!["ReportBatchItemFailures"],
            destination_config: Destination {
                on_failure: OnFailure {
                    destination: queue.arn(),
                },
            },
            filter_criteria: FilterCriteria {
                filters: vec![Filter {
                    pattern: profile.filter,
                }],
            },
            // Without them nothing is reported while no batch finishes.
            metrics_config: MetricsConfig {
                metrics: vec!["EventCount"],
            },
        },
    )?;
    Ok(Deployed {
        which: profile.which,
        function,
        mapping,
        queue,
        role_arn,
    })
}

/// The network of functions.
pub(super) fn vpc(options: &StackOptions) -> Option<Vpc> {
    let subnets = options.lambda_subnet_ids();
    (!subnets.is_empty()).then(|| Vpc {
        subnet_ids: subnets.iter().map(ToString::to_string).collect(),
        security_group_ids: options
            .lambda_security_group_ids()
            .iter()
            .map(ToString::to_string)
            .collect(),
    })
}

fn add_queue(
    model: &mut Model,
    cx: &Context<'_>,
    function: LambdaFunction,
    key: Option<Text>,
) -> Result<Handle<Queue>, Error> {
    let ids = function.ids();
    let encryption = match key {
        Some(key) => QueueEncryption::Key { key },
        None => QueueEncryption::Managed { enabled: true },
    };
    let queue = model.add(
        ids.queue,
        &Queue {
            queue_name: cx.name.clone().then(format!("-{function}-dlq")),
            message_retention_period: FOURTEEN_DAYS,
            visibility_timeout: 300,
            encryption,
        },
    )?;
    let tls = Statement::deny_anyone("TlsOnly", actions("sqs", &["*"]), vec![queue.arn()]);
    let policy_document = PolicyDocument::new(vec![
        tls.when(Condition::default().is("aws:SecureTransport", false)),
    ]);
    model.add(
        ids.queue_policy,
        &QueuePolicy {
            queues: vec![queue.url()],
            policy_document,
        },
    )?;
    Ok(queue)
}

/// Policies are inline: as separate resources they might not be attached when the mapping is created.
fn add_role(
    model: &mut Model,
    cx: &Context<'_>,
    profile: &Profile,
    queue: &Handle<Queue>,
    log_group: &Handle<LogGroup>,
) -> Result<Handle<Role>, Error> {
    let kind = profile.which.role();
    let statements = policies::function(cx, profile.data.clone(), queue, log_group);
    policies::explain_wildcards_of_reader(model, &kind.id(), cx.options);
    model.add(
        kind.id(),
        &Role {
            role_name: cx.options.role_name(&cx.name, kind),
            path: policies::path(cx.options),
            description: profile.role_description,
            assume_role_policy_document: PolicyDocument::new(vec![Statement::trust(
                "Lambda",
                Principal::Service("lambda.amazonaws.com"),
            )]),
            permissions_boundary: cx.boundary(),
            policies: vec![InlinePolicy {
                policy_name: profile.which.as_str(),
                policy_document: PolicyDocument::new(statements),
            }],
            managed_policy_arns: vec![],
        },
    )
}
