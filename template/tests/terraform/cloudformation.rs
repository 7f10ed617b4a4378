//! What the resources of the module are in CloudFormation.
//!
//! Every attribute is taken exactly once. One that is left over has no counterpart in the template, and is reported.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::terraform::evaluate::Instances;
use crate::terraform::fields::Fields;
use crate::terraform::parts::add_part;
use crate::terraform::schema::Schema;

/// A resource as CloudFormation would have it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    pub(crate) kind: &'static str,
    pub(crate) properties: Value,
    pub(crate) retained: bool,
    /// Whether the AWS provider has tags for it.
    pub(crate) has_tags: bool,
    pub(crate) tags: Option<BTreeMap<String, String>>,
}

/// The stack that the module makes, by logical id.
pub(crate) fn stack(resources: &Instances, ids: &BTreeMap<String, String>) -> BTreeMap<String, Resource> {
    let mut stack: BTreeMap<String, Resource> = BTreeMap::new();
    let schema = Schema::read();
    // Resources of their own first, then the parts that the AWS provider has apart from them.
    for whole in [true, false] {
        for ((kind, name), value) in resources {
            if OUR_OWN.contains(&kind.as_str()) {
                continue;
            }
            let id = ids
                .get(name)
                .unwrap_or_else(|| panic!("{kind}.{name} is no resource of the stack"));
            let mut fields = Fields::new(&format!("{kind}.{name}"), value);
            let lifecycle = fields.block("lifecycle").map(|block| block.left);
            let retained = lifecycle.is_some_and(|lifecycle| lifecycle["prevent_destroy"] == "true");
            if whole && let Some(cloudformation) = kind_of(kind) {
                let tags = fields
                    .take("tags")
                    .map(|tags| serde_json::from_value(tags).unwrap());
                let properties = properties(kind, fields);
                let resource = Resource {
                    kind: cloudformation,
                    properties,
                    retained,
                    has_tags: schema.has_tags(kind),
                    tags,
                };
                assert!(
                    stack.insert(id.clone(), resource).is_none(),
                    "two resources are {id}"
                );
            } else if !whole && kind_of(kind).is_none() {
                let parent = stack
                    .get_mut(id)
                    .unwrap_or_else(|| panic!("{kind}.{name} is part of nothing"));
                // What is left of a bucket must keep its protection.
                assert_eq!(retained, kind.starts_with("aws_s3_bucket_"), "{kind}.{name}");
                add_part(kind, fields, &mut parent.properties, id);
            }
        }
    }
    stack
}

/// What Terraform needs and CloudFormation does otherwise.
const OUR_OWN: [&str; 4] = [
    "aws_dynamodb_table_item",
    "aws_lambda_invocation",
    "aws_s3_object",
    "terraform_data",
];

fn kind_of(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "aws_cloudwatch_dashboard" => "AWS::CloudWatch::Dashboard",
        "aws_cloudwatch_log_group" => "AWS::Logs::LogGroup",
        "aws_cloudwatch_metric_alarm" => "AWS::CloudWatch::Alarm",
        "aws_dynamodb_table" => "AWS::DynamoDB::Table",
        "aws_iam_policy" => "AWS::IAM::ManagedPolicy",
        "aws_iam_role" => "AWS::IAM::Role",
        "aws_lambda_event_source_mapping" => "AWS::Lambda::EventSourceMapping",
        "aws_lambda_function" => "AWS::Lambda::Function",
        "aws_lambda_function_event_invoke_config" => "AWS::Lambda::EventInvokeConfig",
        "aws_s3_bucket" => "AWS::S3::Bucket",
        "aws_s3_bucket_policy" => "AWS::S3::BucketPolicy",
        "aws_sqs_queue" => "AWS::SQS::Queue",
        "aws_sqs_queue_policy" => "AWS::SQS::QueuePolicy",
        _ => return None,
    })
}

pub(crate) fn parsed(text: &Value) -> Value {
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

fn properties(kind: &str, mut fields: Fields) -> Value {
    match kind {
        "aws_cloudwatch_dashboard" => {
            let body = parsed(&fields.take("dashboard_body").unwrap());
            let mut result = fields.renamed(&[("dashboard_name", "DashboardName")]);
            result["DashboardBody"] = body;
            result
        }
        "aws_cloudwatch_log_group" => fields.renamed(&[
            ("name", "LogGroupName"),
            ("retention_in_days", "RetentionInDays"),
            ("kms_key_id", "KmsKeyId"),
        ]),
        "aws_cloudwatch_metric_alarm" => alarm(fields),
        "aws_dynamodb_table" => table(fields),
        "aws_iam_policy" => {
            let document = parsed(&fields.take("policy").unwrap());
            let mut result = fields.renamed(&[
                ("name", "ManagedPolicyName"),
                ("path", "Path"),
                ("description", "Description"),
            ]);
            result["PolicyDocument"] = document;
            result
        }
        "aws_iam_role" => {
            let trust = parsed(&fields.take("assume_role_policy").unwrap());
            let mut result = fields.renamed(&[
                ("name", "RoleName"),
                ("path", "Path"),
                ("description", "Description"),
                ("permissions_boundary", "PermissionsBoundary"),
            ]);
            result["AssumeRolePolicyDocument"] = trust;
            result
        }
        "aws_lambda_event_source_mapping" => mapping(fields),
        "aws_lambda_function" => function(fields),
        "aws_lambda_function_event_invoke_config" => fields.renamed(&[
            ("function_name", "FunctionName"),
            ("qualifier", "Qualifier"),
            ("maximum_event_age_in_seconds", "MaximumEventAgeInSeconds"),
            ("maximum_retry_attempts", "MaximumRetryAttempts"),
        ]),
        "aws_s3_bucket" => {
            let prefix = fields.take("bucket_prefix").unwrap();
            assert!(prefix.as_str().unwrap().len() <= 37, "{prefix}");
            match fields.take("object_lock_enabled") {
                Some(Value::Bool(true)) => json!({ "ObjectLockEnabled": true }),
                _ => fields.renamed(&[]),
            }
        }
        "aws_s3_bucket_policy" => {
            let document = parsed(&fields.take("policy").unwrap());
            let mut result = fields.renamed(&[("bucket", "Bucket")]);
            result["PolicyDocument"] = document;
            result
        }
        "aws_sqs_queue" => fields.renamed(&[
            ("name", "QueueName"),
            ("message_retention_seconds", "MessageRetentionPeriod"),
            ("visibility_timeout_seconds", "VisibilityTimeout"),
            ("sqs_managed_sse_enabled", "SqsManagedSseEnabled"),
            ("kms_master_key_id", "KmsMasterKeyId"),
        ]),
        "aws_sqs_queue_policy" => {
            let (url, document) = (fields.take("queue_url"), parsed(&fields.take("policy").unwrap()));
            fields.done();
            json!({ "Queues": [url], "PolicyDocument": document })
        }
        other => panic!("{other}"),
    }
}

fn alarm(mut fields: Fields) -> Value {
    let dimensions = fields.take("dimensions").unwrap();
    let dimensions = dimensions.as_object().unwrap().iter();
    let dimensions: Vec<_> = dimensions
        .map(|(name, value)| json!({ "Name": name, "Value": value }))
        .collect();
    for actions in ["alarm_actions", "ok_actions"] {
        if fields.left[actions] == json!([]) {
            fields.take(actions);
        }
    }
    let mut result = fields.renamed(&[
        ("alarm_name", "AlarmName"),
        ("alarm_description", "AlarmDescription"),
        ("namespace", "Namespace"),
        ("metric_name", "MetricName"),
        ("statistic", "Statistic"),
        ("period", "Period"),
        ("evaluation_periods", "EvaluationPeriods"),
        ("comparison_operator", "ComparisonOperator"),
        ("threshold", "Threshold"),
        ("treat_missing_data", "TreatMissingData"),
        ("alarm_actions", "AlarmActions"),
        ("ok_actions", "OKActions"),
    ]);
    result["Dimensions"] = json!(dimensions);
    result
}

fn keys(fields: &mut Fields) -> Value {
    let (hash, range) = (fields.take("hash_key"), fields.take("range_key"));
    json!([{ "AttributeName": hash, "KeyType": "HASH" }, { "AttributeName": range, "KeyType": "RANGE" }])
}

fn throughput(block: Fields) -> Value {
    block.renamed(&[
        ("max_read_request_units", "MaxReadRequestUnits"),
        ("max_write_request_units", "MaxWriteRequestUnits"),
    ])
}

fn table(mut fields: Fields) -> Value {
    let attributes: Vec<_> = fields
        .blocks("attribute")
        .into_iter()
        .map(|block| block.renamed(&[("name", "AttributeName"), ("type", "AttributeType")]))
        .collect();
    let indexes: Vec<_> = fields
        .blocks("global_secondary_index")
        .into_iter()
        .map(|mut block| {
            let projection = block.take("projection_type");
            let keys: Vec<_> = block
                .blocks("key_schema")
                .into_iter()
                .map(|key| key.renamed(&[("attribute_name", "AttributeName"), ("key_type", "KeyType")]))
                .collect();
            let throughput = block.block("on_demand_throughput").map(throughput);
            let mut index = block.renamed(&[("name", "IndexName")]);
            if let Some(throughput) = throughput {
                index["OnDemandThroughput"] = throughput;
            }
            index["KeySchema"] = json!(keys);
            index["Projection"] = json!({ "ProjectionType": projection });
            index
        })
        .collect();
    fields.expect("stream_enabled", &json!(true));
    let keys = keys(&mut fields);
    let view = fields.take("stream_view_type");
    let ttl = fields.block("ttl").unwrap();
    let ttl = ttl.renamed(&[("attribute_name", "AttributeName"), ("enabled", "Enabled")]);
    let recovery = fields.block("point_in_time_recovery").unwrap().renamed(&[
        ("enabled", "PointInTimeRecoveryEnabled"),
        ("recovery_period_in_days", "RecoveryPeriodInDays"),
    ]);
    let encryption = fields.block("server_side_encryption").map(|block| {
        let mut encryption = block.renamed(&[("enabled", "SSEEnabled"), ("kms_key_arn", "KMSMasterKeyId")]);
        encryption["SSEType"] = json!("KMS");
        encryption
    });
    let maximum = fields.block("on_demand_throughput").map(throughput);
    let mut result = fields.renamed(&[
        ("name", "TableName"),
        ("table_class", "TableClass"),
        ("billing_mode", "BillingMode"),
        ("deletion_protection_enabled", "DeletionProtectionEnabled"),
    ]);
    result["AttributeDefinitions"] = json!(attributes);
    result["GlobalSecondaryIndexes"] = json!(indexes);
    result["KeySchema"] = keys;
    result["StreamSpecification"] = json!({ "StreamViewType": view });
    result["TimeToLiveSpecification"] = ttl;
    result["PointInTimeRecoverySpecification"] = recovery;
    if let Some(maximum) = maximum {
        result["OnDemandThroughput"] = maximum;
    }
    if let Some(encryption) = encryption {
        result["SSESpecification"] = encryption;
    }
    result
}

fn mapping(mut fields: Fields) -> Value {
    let mut destination = fields.block("destination_config").unwrap();
    let failure = destination.block("on_failure").unwrap();
    destination.done();
    let failure = failure.renamed(&[("destination_arn", "Destination")]);
    let mut criteria = fields.block("filter_criteria").unwrap();
    let filters: Vec<_> = criteria
        .blocks("filter")
        .into_iter()
        .map(|mut filter| json!({ "Pattern": parsed(&filter.take("pattern").unwrap()) }))
        .collect();
    criteria.done();
    let metrics = fields
        .block("metrics_config")
        .unwrap()
        .renamed(&[("metrics", "Metrics")]);
    let mut result = fields.renamed(&[
        ("event_source_arn", "EventSourceArn"),
        ("function_name", "FunctionName"),
        ("enabled", "Enabled"),
        ("starting_position", "StartingPosition"),
        ("batch_size", "BatchSize"),
        (
            "maximum_batching_window_in_seconds",
            "MaximumBatchingWindowInSeconds",
        ),
        ("maximum_retry_attempts", "MaximumRetryAttempts"),
        ("maximum_record_age_in_seconds", "MaximumRecordAgeInSeconds"),
        ("bisect_batch_on_function_error", "BisectBatchOnFunctionError"),
        ("parallelization_factor", "ParallelizationFactor"),
        ("function_response_types", "FunctionResponseTypes"),
    ]);
    result["DestinationConfig"] = json!({ "OnFailure": failure });
    result["FilterCriteria"] = json!({ "Filters": filters });
    result["MetricsConfig"] = metrics;
    result
}

fn function(mut fields: Fields) -> Value {
    let environment = fields
        .block("environment")
        .unwrap()
        .renamed(&[("variables", "Variables")]);
    let dead_letters = fields
        .block("dead_letter_config")
        .unwrap()
        .renamed(&[("target_arn", "TargetArn")]);
    let vpc = fields.block("vpc_config").map(|block| {
        block.renamed(&[
            ("subnet_ids", "SubnetIds"),
            ("security_group_ids", "SecurityGroupIds"),
        ])
    });
    let tracing = fields
        .block("tracing_config")
        .unwrap()
        .renamed(&[("mode", "Mode")]);
    let mut logging = fields.block("logging_config").unwrap();
    // CloudFormation's default, which the AWS provider does not have.
    logging.expect("log_format", &json!("Text"));
    let logging = logging.renamed(&[("log_group", "LogGroup")]);
    let code = json!({ "S3Bucket": fields.take("s3_bucket"), "S3Key": fields.take("s3_key") });
    let mut result = fields.renamed(&[
        ("function_name", "FunctionName"),
        ("description", "Description"),
        ("runtime", "Runtime"),
        ("architectures", "Architectures"),
        ("handler", "Handler"),
        ("role", "Role"),
        ("memory_size", "MemorySize"),
        ("timeout", "Timeout"),
        ("reserved_concurrent_executions", "ReservedConcurrentExecutions"),
        ("kms_key_arn", "KmsKeyArn"),
    ]);
    result["Environment"] = environment;
    if let Some(vpc) = vpc {
        result["VpcConfig"] = vpc;
    }
    result["DeadLetterConfig"] = dead_letters;
    result["TracingConfig"] = tracing;
    result["LoggingConfig"] = logging;
    result["Code"] = code;
    result
}
