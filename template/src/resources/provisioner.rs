//! The function that serves limits files as resources, in a stack of its own: the limits of a table may change more often
//! than the table.

use std::collections::BTreeMap;

use serde_json::Map;
use zae_limiter_schema::keys::{SYSTEM_PARTITION, prefix};

use super::context::boundary;
use super::function::vpc;
use super::{code, ids, policies};
use crate::Error;
use crate::check::Facts;
use crate::model::cloudwatch::{Alarm, Comparison, Dimension, Metric, Statistic};
use crate::model::iam::{Condition, InlinePolicy, PolicyDocument, Principal, Role, Statement, actions};
use crate::model::lambda::{
    Code, DeadLetter, Environment, EventInvokeConfig, Function, Logging, Tracing, TracingMode,
};
use crate::model::logs::LogGroup;
use crate::model::sqs::{Queue, QueueEncryption, QueuePolicy};
use crate::model::{Export, Handle, LogicalId, Model, Output, Parameter, Pseudo, Text, arn};
use crate::options::{Architecture, StackOptions};
use crate::resources::tags;

/// The name of the table, a parameter.
const TABLE_NAME: LogicalId = LogicalId::fixed("TableName");
/// The key of the archive, a parameter.
const CODE_KEY: LogicalId = LogicalId::fixed("ProvisionerCodeKey");
/// The processor of the function, a parameter.
const ARCHITECTURE: LogicalId = LogicalId::fixed("Architecture");
const ARCHITECTURES: [&str; 2] = [Architecture::X86_64.as_str(), Architecture::Arm64.as_str()];
const FUNCTION: LogicalId = LogicalId::fixed("ProvisionerFunction");
const INVOCATIONS: LogicalId = LogicalId::fixed("ProvisionerInvocations");
const LOG_GROUP: LogicalId = LogicalId::fixed("ProvisionerLogGroup");
const QUEUE: LogicalId = LogicalId::fixed("ProvisionerDLQ");
const QUEUE_POLICY: LogicalId = LogicalId::fixed("ProvisionerDLQPolicy");
const ROLE: LogicalId = LogicalId::fixed("ProvisionerRole");
const QUEUE_ALARM: LogicalId = LogicalId::fixed("ProvisionerDLQAlarm");
const ERROR_ALARM: LogicalId = LogicalId::fixed("ProvisionerErrorAlarm");
/// What follows the stack's name in the role's name.
const ROLE_COMPONENT: &str = "prov";

/// Memory in megabytes. A file is small; Lambda gives more processor time with more memory.
const MEMORY: u32 = 256;
/// Timeout in seconds. The response to CloudFormation is sent 30 seconds before.
const TIMEOUT: u32 = 300;
/// Age in seconds at which a request is discarded: CloudFormation waits no longer for a response.
const OLDEST_REQUEST: u32 = 3_600;
/// 14 days in seconds, the longest retention of SQS.
const QUEUE_SECONDS: u32 = 14 * 24 * 60 * 60;

/// The stack of the provisioner, for any table. It follows the options that the limiter's stack has for its own functions:
/// the key, the boundary and names of roles, logs, tracing and alarms.
pub(crate) fn model(options: &StackOptions) -> Result<Model, Error> {
    let boundary = options.permission_boundary().map(boundary);
    let facts = Facts {
        stack: Pseudo::StackName.into(),
        alarm_topic: options.alarm_sns_topic().is_some(),
        boundary: boundary.clone(),
    };
    let key_arn = options.kms_key_arn().map(|key| Text::from(key.as_str()));
    let mut model = Model::new("zae-limiter: limits files as resources", Map::new(), facts);
    let table = model.add_parameter(TABLE_NAME, table_parameter())?;
    let bucket = model.add_parameter(ids::CODE_BUCKET, code::bucket_parameter())?;
    let key = model.add_parameter(CODE_KEY, key_parameter())?;
    let architecture = model.add_parameter(
        ARCHITECTURE,
        architecture_parameter(options.lambda_architecture()),
    )?;
    let name = table.clone().then("-provisioner");
    let queue = add_queue(&mut model, &name, key_arn.clone())?;
    let log_group = model.add(
        LOG_GROUP,
        &LogGroup {
            log_group_name: Text::from("/aws/lambda/").then(name.clone()),
            retention_in_days: options.log_retention_days(),
            kms_key_id: key_arn.clone(),
        },
    )?;
    let role = model.add(
        ROLE,
        &Role {
            path: policies::path(options),
            role_name: options.iam_name(&table, ROLE_COMPONENT, options.role_name_format()),
            description: "For the provisioner of the rate limiter",
            assume_role_policy_document: PolicyDocument::new(vec![Statement::trust(
                "Lambda",
                Principal::Service("lambda.amazonaws.com"),
            )]),
            permissions_boundary: boundary,
            policies: vec![InlinePolicy {
                policy_name: "provisioner",
                policy_document: policy(&table, &queue, &log_group, options),
            }],
            managed_policy_arns: vec![],
        },
    )?;
    policies::explain_wildcards(&mut model, &ROLE, options);
    let mode = if options.enable_tracing() {
        TracingMode::Active
    } else {
        TracingMode::PassThrough
    };
    let function = model.add(
        FUNCTION,
        &Function {
            function_name: name.clone(),
            description: "Applies limits files",
            runtime: "provided.al2023",
            architectures: vec![architecture],
            handler: "bootstrap",
            code: Code::Object { bucket, key },
            role: role.arn(),
            memory_size: MEMORY,
            timeout: TIMEOUT,
            reserved_concurrent_executions: None,
            environment: Environment {
                variables: BTreeMap::from([("TABLE_NAME", table)]),
            },
            kms_key_arn: key_arn,
            vpc_config: vpc(options),
            dead_letter_config: DeadLetter {
                target_arn: queue.arn(),
            },
            tracing_config: Tracing { mode },
            logging_config: Logging {
                log_group: log_group.name(),
            },
            tags: vec![tags::lambda_version()],
        },
    )?;
    model.add(
        INVOCATIONS,
        &EventInvokeConfig {
            function_name: function.name(),
            qualifier: "$LATEST",
            maximum_event_age_in_seconds: OLDEST_REQUEST,
            // A retry could apply a file after a newer one.
            maximum_retry_attempts: 0,
        },
    )?;
    if options.enable_alarms() {
        add_alarms(&mut model, &name, &function, &queue, options)?;
    }
    let export = Text::from(Pseudo::StackName).then("-ProvisionerFunctionArn");
    model.add_output(
        LogicalId::fixed("ProvisionerFunctionArn"),
        Output {
            description: "ARN of the provisioner, the ServiceToken of Custom::ZaeLimiterLimits".to_owned(),
            value: function.arn(),
            export: Some(Export { name: export }),
        },
    )?;
    Ok(model)
}

/// A request that CloudFormation still waits for, and a file that could not be applied.
fn add_alarms(
    model: &mut Model,
    name: &Text,
    function: &Handle<Function>,
    queue: &Handle<Queue>,
    options: &StackOptions,
) -> Result<(), Error> {
    let topics: Vec<_> = options
        .alarm_sns_topic()
        .map(|topic| topic.as_str().into())
        .into_iter()
        .collect();
    let alarm = |suffix, alarm_description, metric, statistic| Alarm {
        alarm_name: name.clone().then(suffix),
        alarm_description,
        metric,
        statistic,
        period: 300,
        evaluation_periods: 1,
        comparison_operator: Comparison::GreaterThanOrEqualToThreshold,
        threshold: 1.into(),
        treat_missing_data: "notBreaching",
        alarm_actions: topics.clone(),
        ok_actions: topics.clone(),
    };
    let metric = |namespace, metric_name, name, value| Metric {
        namespace,
        metric_name,
        dimensions: vec![Dimension { name, value }],
    };
    let messages = metric(
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        "QueueName",
        queue.name(),
    );
    let errors = metric("AWS/Lambda", "Errors", "FunctionName", function.name());
    model.add(
        QUEUE_ALARM,
        &alarm(
            "-dlq-alarm",
            "The provisioner's dead-letter queue has requests without a response",
            messages,
            Statistic::Maximum,
        ),
    )?;
    model.add(
        ERROR_ALARM,
        &alarm(
            "-errors",
            "Invocations of the provisioner fail",
            errors,
            Statistic::Sum,
        ),
    )?;
    Ok(())
}

fn add_queue(model: &mut Model, name: &Text, key: Option<Text>) -> Result<Handle<Queue>, Error> {
    let encryption = match key {
        Some(key) => QueueEncryption::Key { key },
        None => QueueEncryption::Managed { enabled: true },
    };
    let queue = model.add(
        QUEUE,
        &Queue {
            queue_name: name.clone().then("-dlq"),
            message_retention_period: QUEUE_SECONDS,
            visibility_timeout: 300,
            encryption,
        },
    )?;
    let tls = Statement::deny_anyone("TlsOnly", actions("sqs", &["*"]), vec![queue.arn()]);
    model.add(
        QUEUE_POLICY,
        &QueuePolicy {
            queues: vec![queue.url()],
            policy_document: PolicyDocument::new(vec![
                tls.when(Condition::default().is("aws:SecureTransport", false)),
            ]),
        },
    )?;
    Ok(queue)
}

/// Levels, their audit events and the record of managed levels: no buckets are read or written beyond the partitions that
/// hold the levels.
fn policy(
    table: &Text,
    queue: &Handle<Queue>,
    log_group: &Handle<LogGroup>,
    options: &StackOptions,
) -> PolicyDocument {
    let table = arn::of_region("dynamodb", Text::from("table/").then(table.clone()));
    let patterns = [prefix::AUDIT, prefix::ENTITY, prefix::RESOURCE].map(|start| format!("{start}*"));
    let mut keys: Vec<&str> = patterns.iter().map(String::as_str).collect();
    keys.push(SYSTEM_PARTITION);
    let levels = Statement::allow("Levels", actions("dynamodb", &LEVEL_ACTIONS), vec![table]);
    let mut statements = vec![
        levels.when(Condition::default().all_like("dynamodb:LeadingKeys", &keys)),
        Statement::allow("DeadLetters", actions("sqs", &["SendMessage"]), vec![queue.arn()]),
        Statement::allow(
            "Logs",
            actions("logs", &["CreateLogStream", "PutLogEvents"]),
            vec![log_group.arn()],
        ),
    ];
    statements.extend(policies::options_of_functions(options));
    PolicyDocument::new(statements)
}

/// What comparing and applying a limits file does to the table.
const LEVEL_ACTIONS: [&str; 6] = [
    "BatchGetItem",
    "DeleteItem",
    "GetItem",
    "PutItem",
    "Query",
    "UpdateItem",
];

fn table_parameter() -> Parameter {
    Parameter {
        r#type: "String",
        description: "Name of the limiter's table".to_owned(),
        // The role's name has a suffix and at most 64 characters.
        default: None,
        allowed_values: None,
        allowed_pattern: Some("^[a-zA-Z][a-zA-Z0-9-]{2,54}$"),
        constraint_description: Some("must be the name of a stack or a Terraform module of the limiter"),
    }
}

fn architecture_parameter(default: Architecture) -> Parameter {
    Parameter {
        r#type: "String",
        description: "Processor that the archive was built for".to_owned(),
        default: Some(default.as_str()),
        allowed_values: Some(&ARCHITECTURES),
        allowed_pattern: None,
        constraint_description: None,
    }
}

fn key_parameter() -> Parameter {
    Parameter {
        r#type: "String",
        description: "Key of the provisioner's archive in the bucket; a new key for new code".to_owned(),
        default: None,
        allowed_values: None,
        allowed_pattern: Some("^.{1,1024}$"),
        constraint_description: Some("must be the key of an object"),
    }
}
