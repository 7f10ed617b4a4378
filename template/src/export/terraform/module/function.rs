//! A function with its queue, log group, role and event source mapping.

use serde_json::Value;

use super::super::text::snake_case;
use super::iam;
use super::locals::DOWNLOADS;
use super::print::Part;
use super::source::Source;
use crate::resources::LambdaFunction;

pub(super) fn parts(source: &Source, function: LambdaFunction) -> Vec<Part> {
    let created = format!("local.has_{function}");
    let ids = function.ids();
    let mut parts = vec![Part::new(queue(source, function))];
    let queue_name = snake_case(ids.queue.as_str());
    parts.extend(iam::resource_policy(
        source,
        &ids.queue_policy,
        "aws_sqs_queue_policy",
        &format!("queue_url = aws_sqs_queue.{queue_name}[0].url"),
        &created,
    ));
    parts.push(Part::new(format!(
        "resource \"aws_cloudwatch_log_group\" \"{}\" {{
           count = {created} ? 1 : 0
           name = \"/aws/lambda/${{local.{function}_function_name}}\"
           retention_in_days = var.log_retention_days
           kms_key_id = var.kms_key_arn
           tags = local.tags
         }}",
        snake_case(ids.log_group.as_str())
    )));
    parts.extend(iam::role_of(source, function));
    parts.push(Part::with_comment(
        "An archive of a release is downloaded when its checksum changes.",
        download(function),
    ));
    parts.push(Part::with_comment(
        "A function that is created again needs the archive it had before.",
        upload(function),
    ));
    parts.push(Part::new(lambda(source, function)));
    parts.push(Part::new(mapping(source, function)));
    parts
}

fn queue(source: &Source, function: LambdaFunction) -> String {
    let id = function.ids().queue;
    let properties = source.properties(&id);
    format!(
        "resource \"aws_sqs_queue\" \"{}\" {{
           count = local.has_{function} ? 1 : 0
           name = {}
           message_retention_seconds = {}
           visibility_timeout_seconds = {}
           sqs_managed_sse_enabled = var.kms_key_arn == null ? true : null
           kms_master_key_id = var.kms_key_arn
           tags = local.tags
         }}",
        snake_case(id.as_str()),
        source.expression(&properties["QueueName"]),
        properties["MessageRetentionPeriod"],
        properties["VisibilityTimeout"],
    )
}

/// Neither `sha256sum` nor `shasum` is installed everywhere.
fn download(function: LambdaFunction) -> String {
    let file = format!("${{local.{function}_archive}}");
    let url = format!(
        "${{var.release.url}}/v${{var.release.version}}/zae-limiter-{function}-${{var.lambda_architecture}}.zip"
    );
    let fetch = format!(
        "mkdir -p '{DOWNLOADS}' && curl --fail --silent --show-error --location --output '{file}' '{url}'"
    );
    let verify = format!(
        "{{ sha256sum '{file}' 2>/dev/null || shasum -a 256 '{file}'; }} | grep --quiet '^${{var.release.sha256.{function}}} '"
    );
    format!(
        "resource \"terraform_data\" \"{function}_archive\" {{
           count = local.downloads_{function} ? 1 : 0
           triggers_replace = local.{function}_archive
           provisioner \"local-exec\" {{
             command = \"{fetch} && {verify}\"
           }}
         }}"
    )
}

fn upload(function: LambdaFunction) -> String {
    format!(
        "resource \"aws_s3_object\" \"{function}_archive\" {{
           count = local.uploads_{function} ? 1 : 0
           bucket = var.code_bucket
           key = var.release == null ? \"${{var.name}}/${{filesha256(local.{function}_archive)}}.zip\" : \"${{var.name}}/${{var.release.sha256.{function}}}.zip\"
           source = local.{function}_archive
           depends_on = [terraform_data.{function}_archive]
           lifecycle {{
             create_before_destroy = true
           }}
         }}"
    )
}

fn lambda(source: &Source, function: LambdaFunction) -> String {
    let ids = function.ids();
    let properties = source.properties(&ids.function);
    let plain = |pointer: &str| source.expression(properties.pointer(pointer).unwrap_or(&Value::Null));
    let (role, log_group) = (snake_case(ids.role.as_str()), plain("/LoggingConfig/LogGroup"));
    format!(
        "resource \"aws_lambda_function\" \"{name}\" {{
           count = local.has_{function} ? 1 : 0
           function_name = local.{function}_function_name
           description = {description}
           runtime = {runtime}
           architectures = [var.lambda_architecture]
           handler = {handler}
           filename = var.code_bucket == null ? local.{function}_archive : null
           source_code_hash = var.code_bucket == null && var.release == null ? filebase64sha256(local.{function}_archive) : null
           s3_bucket = var.code_bucket
           s3_key = var.code_bucket == null ? null : (var.{function}_code_key != null ? var.{function}_code_key : one(aws_s3_object.{function}_archive[*].key))
           role = {role_arn}
           memory_size = var.lambda_memory
           timeout = var.lambda_timeout
           reserved_concurrent_executions = var.lambda_reserved_concurrency
           kms_key_arn = var.kms_key_arn
           tags = local.tags
           depends_on = [aws_iam_role_policy.{role}, terraform_data.{function}_archive]
           environment {{
             variables = {variables}
           }}
           dead_letter_config {{
             target_arn = {queue}
           }}
           tracing_config {{
             mode = var.enable_tracing ? \"Active\" : \"PassThrough\"
           }}
           logging_config {{
             log_format = \"Text\"
             log_group = {log_group}
           }}
           lifecycle {{
             precondition {{
               condition = local.{function}_archive != null || var.{function}_code_key != null
               error_message = \"The {function} has no code: set code_directory or release, or code_bucket with {function}_code_key, or set {switch} to false.\"
             }}
           }}
         }}",
        name = snake_case(ids.function.as_str()),
        description = plain("/Description"),
        runtime = plain("/Runtime"),
        handler = plain("/Handler"),
        role_arn = plain("/Role"),
        variables = variables(source, &properties["Environment"]["Variables"]),
        queue = plain("/DeadLetterConfig/TargetArn"),
        switch = function.switch(),
    )
}

/// The environment, with options in place of the values of the template.
fn variables(source: &Source, variables: &Value) -> String {
    let fields = variables.as_object().into_iter().flatten();
    let fields = fields.map(|(name, value)| {
        let value = match name.as_str() {
            "SNAPSHOT_TTL_DAYS" => "tostring(var.usage_retention_days)".to_owned(),
            "SNAPSHOT_WINDOWS" => {
                "join(\",\", [for window in [\"hourly\", \"daily\", \"monthly\"] : window if contains(var.snapshot_windows, window)])"
                    .to_owned()
            }
            _ => source.expression(value),
        };
        format!("{name} = {value}")
    });
    format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
}

fn mapping(source: &Source, function: LambdaFunction) -> String {
    let ids = function.ids();
    let properties = source.properties(&ids.mapping);
    let plain = |pointer: &str| source.expression(properties.pointer(pointer).unwrap_or(&Value::Null));
    let parallelization = match function {
        LambdaFunction::Aggregator => "var.aggregator_parallelization".to_owned(),
        LambdaFunction::Archiver => plain("/ParallelizationFactor"),
    };
    let pattern = properties
        .pointer("/FilterCriteria/Filters/0/Pattern")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    format!(
        "resource \"aws_lambda_event_source_mapping\" \"{name}\" {{
           count = local.has_{function} ? 1 : 0
           event_source_arn = {stream}
           function_name = {function_arn}
           starting_position = upper(var.stream_start)
           batch_size = {batch}
           maximum_batching_window_in_seconds = {window}
           maximum_retry_attempts = {retries}
           maximum_record_age_in_seconds = {age}
           bisect_batch_on_function_error = {bisect}
           parallelization_factor = {parallelization}
           function_response_types = {responses}
           tags = local.tags
           depends_on = [aws_iam_role_policy.{role}]
           destination_config {{
             on_failure {{
               destination_arn = {destination}
             }}
           }}
           filter_criteria {{
             filter {{
               pattern = jsonencode({pattern})
             }}
           }}
           metrics_config {{
             metrics = {metrics}
           }}
         }}",
        name = snake_case(ids.mapping.as_str()),
        stream = plain("/EventSourceArn"),
        function_arn = plain("/FunctionName"),
        batch = plain("/BatchSize"),
        window = plain("/MaximumBatchingWindowInSeconds"),
        retries = plain("/MaximumRetryAttempts"),
        age = plain("/MaximumRecordAgeInSeconds"),
        bisect = plain("/BisectBatchOnFunctionError"),
        responses = plain("/FunctionResponseTypes"),
        role = snake_case(ids.role.as_str()),
        destination = plain("/DestinationConfig/OnFailure/Destination"),
        pattern = source.expression(&pattern),
        metrics = plain("/MetricsConfig/Metrics"),
    )
}
