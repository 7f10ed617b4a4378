//! What the resources of the module are in CloudFormation.
//!
//! Every attribute is taken exactly once. One that is left over has no counterpart in the template, and is reported.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::evaluate::Instances;

/// A resource as CloudFormation would have it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    pub(crate) kind: &'static str,
    pub(crate) properties: Value,
    pub(crate) retained: bool,
    pub(crate) tags: Option<BTreeMap<String, String>>,
}

/// Attributes of a resource or a block, to be taken one by one.
struct Fields {
    of: String,
    left: Map<String, Value>,
}

impl Fields {
    fn new(of: &str, value: &Value) -> Self {
        Self {
            of: of.to_owned(),
            left: value
                .as_object()
                .unwrap_or_else(|| panic!("{of}: {value}"))
                .clone(),
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    /// The only block of this name.
    fn block(&mut self, name: &str) -> Option<Fields> {
        let blocks = self.left.remove(name)?;
        let [block] = blocks.as_array().unwrap().as_slice() else {
            panic!("{}: several {name}", self.of)
        };
        Some(Fields::new(&format!("{}.{name}", self.of), block))
    }

    fn blocks(&mut self, name: &str) -> Vec<Fields> {
        let of = format!("{}.{name}", self.of);
        let blocks = self.left.remove(name).unwrap_or_else(|| json!([]));
        blocks
            .as_array()
            .unwrap()
            .iter()
            .map(|block| Fields::new(&of, block))
            .collect()
    }

    /// The rest under other names; nothing may be left.
    fn renamed(mut self, names: &[(&str, &str)]) -> Value {
        let mut result = Map::new();
        for (terraform, cloudformation) in names {
            result.extend(
                self.take(terraform)
                    .map(|value| ((*cloudformation).to_owned(), value)),
            );
        }
        self.done();
        Value::Object(result)
    }

    fn done(self) {
        assert!(
            self.left.is_empty(),
            "{} has {:?}, which CloudFormation does not",
            self.of,
            self.left
        );
    }

    fn expect(&mut self, name: &str, expected: &Value) {
        assert_eq!(self.take(name).as_ref(), Some(expected), "{}.{name}", self.of);
    }
}

/// The stack that the module makes, by logical id.
pub(crate) fn stack(resources: &Instances, ids: &BTreeMap<String, String>) -> BTreeMap<String, Resource> {
    let mut stack: BTreeMap<String, Resource> = BTreeMap::new();
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
                    tags,
                };
                assert!(
                    stack.insert(id.clone(), resource).is_none(),
                    "two resources are {id}"
                );
            } else if !whole && kind_of(kind).is_none() {
                assert!(!retained, "{kind}.{name}");
                let parent = stack
                    .get_mut(id)
                    .unwrap_or_else(|| panic!("{kind}.{name} is part of nothing"));
                add_part(kind, fields, &mut parent.properties, id);
            }
        }
    }
    stack
}

/// What Terraform needs and CloudFormation does otherwise.
const OUR_OWN: [&str; 3] = ["aws_dynamodb_table_item", "aws_s3_object", "terraform_data"];

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
        "aws_s3_bucket" => "AWS::S3::Bucket",
        "aws_s3_bucket_policy" => "AWS::S3::BucketPolicy",
        "aws_sqs_queue" => "AWS::SQS::Queue",
        "aws_sqs_queue_policy" => "AWS::SQS::QueuePolicy",
        _ => return None,
    })
}

fn parsed(text: &Value) -> Value {
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
            let mut result = fields.renamed(&[("name", "ManagedPolicyName"), ("description", "Description")]);
            result["PolicyDocument"] = document;
            result
        }
        "aws_iam_role" => {
            let trust = parsed(&fields.take("assume_role_policy").unwrap());
            let mut result = fields.renamed(&[
                ("name", "RoleName"),
                ("description", "Description"),
                ("permissions_boundary", "PermissionsBoundary"),
            ]);
            result["AssumeRolePolicyDocument"] = trust;
            result
        }
        "aws_lambda_event_source_mapping" => mapping(fields),
        "aws_lambda_function" => function(fields),
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
            let (keys, projection) = (keys(&mut block), block.take("projection_type"));
            let mut index = block.renamed(&[("name", "IndexName")]);
            index["KeySchema"] = keys;
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
    let mut result = fields.renamed(&[
        ("name", "TableName"),
        ("billing_mode", "BillingMode"),
        ("deletion_protection_enabled", "DeletionProtectionEnabled"),
    ]);
    result["AttributeDefinitions"] = json!(attributes);
    result["GlobalSecondaryIndexes"] = json!(indexes);
    result["KeySchema"] = keys;
    result["StreamSpecification"] = json!({ "StreamViewType": view });
    result["TimeToLiveSpecification"] = ttl;
    result["PointInTimeRecoverySpecification"] = recovery;
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
    result["DeadLetterConfig"] = dead_letters;
    result["TracingConfig"] = tracing;
    result["LoggingConfig"] = logging;
    result["Code"] = code;
    result
}

/// A part that is a resource of its own for the AWS provider and a property for CloudFormation.
fn add_part(kind: &str, mut fields: Fields, parent: &mut Value, id: &str) {
    let reference = json!(format!("<{id}>"));
    match kind {
        "aws_dynamodb_contributor_insights" => {
            fields.expect("table_name", &reference);
            fields.done();
            parent["ContributorInsightsSpecification"] = json!({ "Enabled": true });
        }
        "aws_iam_role_policy" => {
            fields.expect("role", &reference);
            let document = parsed(&fields.take("policy").unwrap());
            let mut policy = fields.renamed(&[("name", "PolicyName")]);
            policy["PolicyDocument"] = document;
            parent["Policies"] = json!([policy]);
        }
        "aws_iam_role_policy_attachment" => {
            fields.expect("role", &reference);
            parent["ManagedPolicyArns"] = json!([fields.take("policy_arn")]);
            fields.done();
        }
        other => {
            fields.expect("bucket", &reference);
            bucket_part(other, fields, parent);
        }
    }
}

fn bucket_part(kind: &str, mut fields: Fields, bucket: &mut Value) {
    match kind {
        "aws_s3_bucket_server_side_encryption_configuration" => {
            let mut rule = fields.block("rule").unwrap();
            let default = rule.block("apply_server_side_encryption_by_default").unwrap();
            let default = default.renamed(&[
                ("sse_algorithm", "SSEAlgorithm"),
                ("kms_master_key_id", "KMSMasterKeyID"),
            ]);
            let mut rule = rule.renamed(&[("bucket_key_enabled", "BucketKeyEnabled")]);
            rule["ServerSideEncryptionByDefault"] = default;
            bucket["BucketEncryption"] = json!({ "ServerSideEncryptionConfiguration": [rule] });
        }
        "aws_s3_bucket_versioning" => {
            let versioning = fields.block("versioning_configuration").unwrap();
            bucket["VersioningConfiguration"] = versioning.renamed(&[("status", "Status")]);
        }
        "aws_s3_bucket_public_access_block" => {
            let names = [
                ("block_public_acls", "BlockPublicAcls"),
                ("block_public_policy", "BlockPublicPolicy"),
                ("ignore_public_acls", "IgnorePublicAcls"),
                ("restrict_public_buckets", "RestrictPublicBuckets"),
            ];
            bucket["PublicAccessBlockConfiguration"] = fields.renamed(&names);
            return;
        }
        "aws_s3_bucket_ownership_controls" => {
            let rule = fields
                .block("rule")
                .unwrap()
                .renamed(&[("object_ownership", "ObjectOwnership")]);
            bucket["OwnershipControls"] = json!({ "Rules": [rule] });
        }
        "aws_s3_bucket_lifecycle_configuration" => {
            let rules: Vec<_> = fields.blocks("rule").into_iter().map(lifecycle_rule).collect();
            bucket["LifecycleConfiguration"] = json!({ "Rules": rules });
        }
        "aws_s3_bucket_object_lock_configuration" => {
            let mut rule = fields.block("rule").unwrap();
            let retention = rule.block("default_retention").unwrap();
            rule.done();
            let retention = retention.renamed(&[("mode", "Mode"), ("days", "Days")]);
            bucket["ObjectLockConfiguration"] =
                json!({ "ObjectLockEnabled": "Enabled", "Rule": { "DefaultRetention": retention } });
        }
        other => panic!("{other} is part of nothing that CloudFormation has"),
    }
    fields.done();
}

fn lifecycle_rule(mut rule: Fields) -> Value {
    let filter = rule.block("filter").unwrap().renamed(&[("prefix", "Prefix")]);
    let transitions: Vec<_> = rule
        .blocks("transition")
        .into_iter()
        .map(|block| block.renamed(&[("days", "TransitionInDays"), ("storage_class", "StorageClass")]))
        .collect();
    let expiration = rule.block("noncurrent_version_expiration");
    let expiration = expiration.map(|block| block.renamed(&[("noncurrent_days", "NoncurrentDays")]));
    let abort = rule.block("abort_incomplete_multipart_upload");
    let abort = abort.map(|block| block.renamed(&[("days_after_initiation", "DaysAfterInitiation")]));
    let mut result = rule.renamed(&[("id", "Id"), ("status", "Status")]);
    if let Some(prefix) = filter.get("Prefix") {
        result["Prefix"] = prefix.clone();
    }
    if !transitions.is_empty() {
        result["Transitions"] = json!(transitions);
    }
    if let Some(expiration) = expiration {
        result["NoncurrentVersionExpiration"] = expiration;
    }
    if let Some(abort) = abort {
        result["AbortIncompleteMultipartUpload"] = abort;
    }
    result
}
