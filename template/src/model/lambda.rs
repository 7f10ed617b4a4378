//! Lambda functions and event source mappings.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::filter::FilterPattern;
use super::{Construct, Handle, Tag, Text};

/// A function.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Function {
    /// The name, at most 64 characters.
    pub function_name: Text,
    /// What it does.
    pub description: &'static str,
    /// The runtime: `provided.al2023` runs native code.
    pub runtime: &'static str,
    /// The processor.
    pub architectures: Vec<Text>,
    /// The handler.
    pub handler: &'static str,
    /// Where the archive is.
    pub code: Code,
    /// ARN of the role it runs as.
    pub role: Text,
    /// Memory in megabytes.
    pub memory_size: u32,
    /// Timeout in seconds.
    pub timeout: u32,
    /// Reserved concurrent executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_concurrent_executions: Option<u32>,
    /// Environment variables.
    pub environment: Environment,
    /// The key that encrypts the environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms_key_arn: Option<Text>,
    /// The network it runs in; the internet if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vpc_config: Option<Vpc>,
    /// Where a failed asynchronous invocation goes.
    pub dead_letter_config: DeadLetter,
    /// Whether invocations are traced.
    pub tracing_config: Tracing,
    /// The log group.
    pub logging_config: Logging,
    /// Tags of the function.
    pub tags: Vec<Tag>,
}

/// The network of a function.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Vpc {
    /// Its subnets.
    pub subnet_ids: Vec<String>,
    /// Its security groups.
    pub security_group_ids: Vec<String>,
}

impl Construct for Function {
    const TYPE: &'static str = "AWS::Lambda::Function";
}

impl Handle<Function> {
    /// The function's name.
    pub fn name(&self) -> Text {
        self.reference()
    }

    /// The function's ARN.
    pub fn arn(&self) -> Text {
        self.attribute("Arn")
    }
}

/// Where a function's archive is.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Code {
    /// An object in S3.
    Object {
        /// The bucket, in the function's region.
        #[serde(rename = "S3Bucket")]
        bucket: Text,
        /// The object's key.
        #[serde(rename = "S3Key")]
        key: Text,
    },
    /// The value of a deployed template, unchanged.
    Deployed(Value),
}

/// A function's environment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Environment {
    /// The variables, sorted by name.
    pub variables: BTreeMap<&'static str, Text>,
}

/// Where a failed asynchronous invocation goes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetter {
    /// ARN of the queue.
    pub target_arn: Text,
}

/// Whether invocations are traced.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tracing {
    /// The mode.
    pub mode: TracingMode,
}

/// Which invocations are traced.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum TracingMode {
    /// A sample of all invocations.
    Active,
    /// Invocations that the caller traces.
    PassThrough,
}

/// Where a function logs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Logging {
    /// Name of the log group.
    pub log_group: Text,
}

/// How Lambda treats the asynchronous invocations of a function.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct EventInvokeConfig {
    /// The name of the function.
    pub function_name: Text,
    /// The version: `$LATEST`, or an alias.
    pub qualifier: &'static str,
    /// Age in seconds at which an event is discarded.
    pub maximum_event_age_in_seconds: u32,
    /// The most retries of a failed invocation, 0 to 2.
    pub maximum_retry_attempts: u32,
}

impl Construct for EventInvokeConfig {
    const TYPE: &'static str = "AWS::Lambda::EventInvokeConfig";
}

/// An event source mapping from a table's stream to a function.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct EventSourceMapping {
    /// ARN of the stream.
    pub event_source_arn: Text,
    /// ARN of the function.
    pub function_name: Text,
    /// Whether Lambda polls the stream. Without the property, an update leaves a mapping disabled that was disabled by hand.
    pub enabled: bool,
    /// Where in the stream a new mapping starts.
    pub starting_position: StartingPosition,
    /// The most records in one invocation.
    pub batch_size: u32,
    /// Seconds to wait for a batch to fill.
    pub maximum_batching_window_in_seconds: u32,
    /// The most retries; -1 for no limit.
    pub maximum_retry_attempts: i32,
    /// Age in seconds at which a record is discarded.
    pub maximum_record_age_in_seconds: u32,
    /// Whether a failed batch is split in half.
    pub bisect_batch_on_function_error: bool,
    /// Concurrent batches per shard.
    pub parallelization_factor: u32,
    /// How the function reports results.
    pub function_response_types: Vec<&'static str>,
    /// What happens to discarded records.
    pub destination_config: Destination,
    /// Which records the function receives.
    pub filter_criteria: FilterCriteria,
    /// The metrics that the mapping reports itself.
    pub metrics_config: MetricsConfig,
}

impl Construct for EventSourceMapping {
    const TYPE: &'static str = "AWS::Lambda::EventSourceMapping";
}

impl Handle<EventSourceMapping> {
    /// The mapping's UUID.
    pub fn uuid(&self) -> Text {
        self.reference()
    }
}

/// The metrics that an event source mapping reports itself.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetricsConfig {
    /// Groups of metrics, such as `EventCount`.
    pub metrics: Vec<&'static str>,
}

/// Where in the stream a new mapping starts.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StartingPosition {
    /// At the oldest record.
    TrimHorizon,
    /// At the next record.
    Latest,
}

/// What happens to discarded records.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Destination {
    /// Where their position in the stream is sent.
    pub on_failure: OnFailure,
}

/// Where the position of discarded records is sent.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct OnFailure {
    /// ARN of the queue.
    pub destination: Text,
}

/// Which records a function receives: those that match any filter.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct FilterCriteria {
    /// At most five.
    pub filters: Vec<Filter>,
}

/// One filter.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Filter {
    /// The pattern, as JSON text.
    #[serde(serialize_with = "as_text")]
    pub pattern: FilterPattern,
}

fn as_text<S: serde::Serializer>(pattern: &FilterPattern, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&pattern.to_value().to_string())
}
