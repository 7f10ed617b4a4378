//! Functions and what feeds them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::filter::FilterPattern;
use super::{Construct, Handle, Tag, Text};

/// A function.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Function {
    /// Its name, at most 64 characters.
    pub function_name: Text,
    /// What it does.
    pub description: &'static str,
    /// The runtime: `provided.al2023` runs native code.
    pub runtime: &'static str,
    /// The processor.
    pub architectures: Vec<&'static str>,
    /// Name of the program in the archive.
    pub handler: &'static str,
    /// Where the archive is.
    pub code: Code,
    /// ARN of the role it runs as.
    pub role: Text,
    /// Megabytes.
    pub memory_size: u32,
    /// Seconds.
    pub timeout: u32,
    /// How many may run at once, set aside for it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_concurrent_executions: Option<u32>,
    /// Its settings.
    pub environment: Environment,
    /// The key that encrypts its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms_key_arn: Option<Text>,
    /// Where a failed asynchronous call goes.
    pub dead_letter_config: DeadLetter,
    /// Whether calls are traced.
    pub tracing_config: Tracing,
    /// Where it logs.
    pub logging_config: Logging,
    /// Tags of its own.
    pub tags: Vec<Tag>,
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
    /// Taken over from a deployed template as it is there.
    Deployed(Value),
}

/// A function's environment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Environment {
    /// Variables, sorted.
    pub variables: BTreeMap<&'static str, Text>,
}

/// Where a failed asynchronous call goes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetter {
    /// ARN of the queue.
    pub target_arn: Text,
}

/// Whether calls are traced.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tracing {
    /// When.
    pub mode: TracingMode,
}

/// When calls are traced.
#[derive(Debug, Clone, Copy, Serialize)]
pub enum TracingMode {
    /// A share of all calls.
    Active,
    /// When the caller traces.
    PassThrough,
}

/// Where a function logs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Logging {
    /// Name of the log group.
    pub log_group: Text,
}

/// Feeds a table's stream to a function.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct EventSourceMapping {
    /// ARN of the stream.
    pub event_source_arn: Text,
    /// ARN of the function.
    pub function_name: Text,
    /// Where in the stream a new mapping starts.
    pub starting_position: StartingPosition,
    /// The most records in one call.
    pub batch_size: u32,
    /// Seconds to wait for more records.
    pub maximum_batching_window_in_seconds: u32,
    /// -1: until the records are too old.
    pub maximum_retry_attempts: i32,
    /// Seconds until a record is given up.
    pub maximum_record_age_in_seconds: u32,
    /// Whether a failed batch is halved.
    pub bisect_batch_on_function_error: bool,
    /// Batches of one shard at the same time.
    pub parallelization_factor: u32,
    /// How the function answers.
    pub function_response_types: Vec<&'static str>,
    /// What happens to records that were given up.
    pub destination_config: Destination,
    /// Which records the function gets.
    pub filter_criteria: FilterCriteria,
}

impl Construct for EventSourceMapping {
    const TYPE: &'static str = "AWS::Lambda::EventSourceMapping";
}

/// Where in the stream a new mapping starts.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StartingPosition {
    /// With the oldest record there is.
    TrimHorizon,
    /// With the next record.
    Latest,
}

/// What happens to records that were given up.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Destination {
    /// Where their place in the stream is told.
    pub on_failure: OnFailure,
}

/// Where the place of lost records is told.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct OnFailure {
    /// ARN of the queue.
    pub destination: Text,
}

/// Which records a function gets: those that match any of the filters.
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
