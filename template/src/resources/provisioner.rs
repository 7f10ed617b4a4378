//! The function that serves limits files as resources, in a stack of its own.
//!
//! With every option on, the limiter's template has no room for another function; and the limits of a table may change more
//! often than the table.

use std::collections::BTreeMap;

use serde_json::Map;
use zae_limiter_schema::keys::{SYSTEM_PARTITION, prefix};

use super::{code, ids};
use crate::Error;
use crate::check::Facts;
use crate::model::iam::{Condition, InlinePolicy, PolicyDocument, Principal, Role, Statement, actions};
use crate::model::lambda::{
    Code, DeadLetter, Environment, EventInvokeConfig, Function, Logging, Tracing, TracingMode,
};
use crate::model::logs::LogGroup;
use crate::model::sqs::{Queue, QueueEncryption, QueuePolicy};
use crate::model::{Export, Handle, LogicalId, Model, Output, Parameter, Pseudo, Text, arn};
use crate::options::Architecture;
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

/// Memory in megabytes. A file is small; Lambda gives more processor time with more memory.
pub(crate) const MEMORY: u32 = 256;
/// Timeout in seconds. The response to CloudFormation is sent 30 seconds before.
pub(crate) const TIMEOUT: u32 = 300;
/// Age in seconds at which a request is discarded: CloudFormation waits no longer for a response.
pub(crate) const OLDEST_REQUEST: u32 = 3_600;
/// Days that the log is kept.
pub(crate) const LOG_DAYS: u32 = 30;
/// 14 days in seconds, the longest retention of SQS.
pub(crate) const QUEUE_SECONDS: u32 = 14 * 24 * 60 * 60;

/// The stack of the provisioner, for any table.
pub(crate) fn model() -> Result<Model, Error> {
    let facts = Facts {
        stack: Pseudo::StackName.into(),
        alarm_topic: false,
        boundary: None,
    };
    let mut model = Model::new("zae-limiter: limits files as resources", Map::new(), facts);
    let table = model.add_parameter(TABLE_NAME, table_parameter())?;
    let bucket = model.add_parameter(ids::CODE_BUCKET, code::bucket_parameter())?;
    let key = model.add_parameter(CODE_KEY, key_parameter())?;
    let architecture = model.add_parameter(ARCHITECTURE, architecture_parameter())?;
    let name = table.clone().then("-provisioner");
    let queue = add_queue(&mut model, &name)?;
    let log_group = model.add(
        LOG_GROUP,
        &LogGroup {
            log_group_name: Text::from("/aws/lambda/").then(name.clone()),
            retention_in_days: LOG_DAYS,
            kms_key_id: None,
        },
    )?;
    let role = model.add(
        ROLE,
        &Role {
            role_name: table.clone().then("-prov"),
            description: "For the provisioner of the rate limiter",
            assume_role_policy_document: PolicyDocument::new(vec![Statement::trust(
                "Lambda",
                Principal::Service("lambda.amazonaws.com"),
            )]),
            permissions_boundary: None,
            policies: vec![InlinePolicy {
                policy_name: "provisioner",
                policy_document: policy(&table, &queue, &log_group),
            }],
            managed_policy_arns: vec![],
        },
    )?;
    let function = model.add(
        FUNCTION,
        &Function {
            function_name: name,
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
            kms_key_arn: None,
            dead_letter_config: DeadLetter {
                target_arn: queue.arn(),
            },
            tracing_config: Tracing {
                mode: TracingMode::PassThrough,
            },
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

fn add_queue(model: &mut Model, name: &Text) -> Result<Handle<Queue>, Error> {
    let queue = model.add(
        QUEUE,
        &Queue {
            queue_name: name.clone().then("-dlq"),
            message_retention_period: QUEUE_SECONDS,
            visibility_timeout: 300,
            encryption: QueueEncryption::Managed { enabled: true },
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
fn policy(table: &Text, queue: &Handle<Queue>, log_group: &Handle<LogGroup>) -> PolicyDocument {
    let table = arn::of_region("dynamodb", Text::from("table/").then(table.clone()));
    let patterns = [prefix::AUDIT, prefix::ENTITY, prefix::RESOURCE].map(|start| format!("{start}*"));
    let mut keys: Vec<&str> = patterns.iter().map(String::as_str).collect();
    keys.push(SYSTEM_PARTITION);
    let levels = Statement::allow("Levels", actions("dynamodb", &LEVEL_ACTIONS), vec![table]);
    PolicyDocument::new(vec![
        levels.when(Condition::default().all_like("dynamodb:LeadingKeys", &keys)),
        Statement::allow("DeadLetters", actions("sqs", &["SendMessage"]), vec![queue.arn()]),
        Statement::allow(
            "Logs",
            actions("logs", &["CreateLogStream", "PutLogEvents"]),
            vec![log_group.arn()],
        ),
    ])
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

fn architecture_parameter() -> Parameter {
    Parameter {
        r#type: "String",
        description: "Processor that the archive was built for".to_owned(),
        default: Some(Architecture::X86_64.as_str()),
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
