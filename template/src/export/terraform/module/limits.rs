//! The Terraform module of the provisioner, from its CloudFormation template.

use serde_json::Value;

use super::print::{self, Part};
use crate::export::File;
use crate::{Error, Template};

/// The files of the module.
pub(in crate::export) fn files(template: &Template) -> Result<Vec<File>, Error> {
    let files = [
        ("versions.tf", vec![Part::new(super::VERSIONS)]),
        ("variables.tf", vec![Part::new(VARIABLES)]),
        ("outputs.tf", vec![Part::new(OUTPUTS)]),
        ("main.tf", main(template)),
    ];
    let mut written = Vec::new();
    for (path, parts) in files {
        written.push(File::new(path, print::file(&parts)?));
    }
    written.push(super::tests::of_limits()?);
    Ok(written)
}

const VARIABLES: &str = r#"variable "table_name" {
  description = "Name of the limiter's table: the name of its module or stack."
  type = string
  validation {
    condition = can(regex("^[a-zA-Z][a-zA-Z0-9-]{2,54}$", var.table_name))
    error_message = "The name must start with a letter and have 3 to 55 letters, digits and hyphens."
  }
}

variable "archive" {
  description = "Path of the provisioner's archive, provisioner.zip of a release or of make functions."
  type = string
}

variable "architecture" {
  description = "Processor that the archive was built for: x86_64 or arm64."
  type = string
  default = "x86_64"
  validation {
    condition = contains(["x86_64", "arm64"], var.architecture)
    error_message = "The architecture must be x86_64 or arm64."
  }
}

variable "limits" {
  description = "The limits file, such as file(\"limits.yaml\")."
  type = string
}

variable "tags" {
  description = "Tags for everything in the module."
  type = map(string)
  default = {}
}"#;

const OUTPUTS: &str = r#"output "function_arn" {
  description = "ARN of the provisioner."
  value = aws_lambda_function.provisioner_function.arn
}

output "result" {
  description = "What the last apply changed: Created, Updated, Deleted and Unchanged levels."
  value = jsondecode(aws_lambda_invocation.limits.result)
}"#;

fn main(template: &Template) -> Vec<Part> {
    let property = |resource: &str, pointer: &str| property(template, resource, pointer);
    let queue = |pointer: &str| property("ProvisionerDLQ", pointer);
    let data = "data \"aws_caller_identity\" \"current\" {}
                data \"aws_partition\" \"current\" {}
                data \"aws_region\" \"current\" {}";
    vec![
        Part::new(data),
        Part::new(format!(
            "resource \"aws_sqs_queue\" \"provisioner_dlq\" {{
               name = {}
               message_retention_seconds = {}
               visibility_timeout_seconds = {}
               sqs_managed_sse_enabled = {}
               tags = var.tags
             }}
             resource \"aws_sqs_queue_policy\" \"provisioner_dlq_policy\" {{
               queue_url = aws_sqs_queue.provisioner_dlq.url
               policy = jsonencode({})
             }}",
            queue("/QueueName"),
            queue("/MessageRetentionPeriod"),
            queue("/VisibilityTimeout"),
            queue("/SqsManagedSseEnabled"),
            property("ProvisionerDLQPolicy", "/PolicyDocument"),
        )),
        Part::new(format!(
            "resource \"aws_cloudwatch_log_group\" \"provisioner_log_group\" {{
               name = {}
               retention_in_days = {}
               tags = var.tags
             }}",
            property("ProvisionerLogGroup", "/LogGroupName"),
            property("ProvisionerLogGroup", "/RetentionInDays"),
        )),
        Part::new(format!(
            "resource \"aws_iam_role\" \"provisioner_role\" {{
               name = {}
               description = {}
               assume_role_policy = jsonencode({})
               tags = var.tags
             }}
             resource \"aws_iam_role_policy\" \"provisioner_role\" {{
               name = {}
               role = aws_iam_role.provisioner_role.name
               policy = jsonencode({})
             }}",
            property("ProvisionerRole", "/RoleName"),
            property("ProvisionerRole", "/Description"),
            property("ProvisionerRole", "/AssumeRolePolicyDocument"),
            property("ProvisionerRole", "/Policies/0/PolicyName"),
            property("ProvisionerRole", "/Policies/0/PolicyDocument"),
        )),
        function_part(template),
        Part::with_comment(
            "A retry could apply a file after a newer one.",
            format!(
                "resource \"aws_lambda_function_event_invoke_config\" \"provisioner_invocations\" {{
                   function_name = aws_lambda_function.provisioner_function.function_name
                   qualifier = {}
                   maximum_event_age_in_seconds = {}
                   maximum_retry_attempts = {}
                 }}",
                property("ProvisionerInvocations", "/Qualifier"),
                property("ProvisionerInvocations", "/MaximumEventAgeInSeconds"),
                property("ProvisionerInvocations", "/MaximumRetryAttempts"),
            ),
        ),
        Part::with_comment(
            "Its id tells this module from every other that applies limits to the table.",
            "resource \"terraform_data\" \"owner\" {}",
        ),
        Part::with_comment(
            "Applies the file when it changes. On destroy, deletes what the file declared, unless another owner has taken it over.",
            "resource \"aws_lambda_invocation\" \"limits\" {
               function_name = aws_lambda_function.provisioner_function.function_name
               lifecycle_scope = \"CRUD\"
               input = jsonencode({
                 Owner = \"terraform:${terraform_data.owner.id}\",
                 ResourceProperties = { Limits = var.limits },
               })
             }",
        ),
    ]
}

fn function_part(template: &Template) -> Part {
    let function = |pointer: &str| property(template, "ProvisionerFunction", pointer);
    Part::new(format!(
        "resource \"aws_lambda_function\" \"provisioner_function\" {{
               function_name = {}
               description = {}
               runtime = {}
               architectures = {}
               handler = {}
               filename = var.archive
               source_code_hash = filebase64sha256(var.archive)
               role = aws_iam_role.provisioner_role.arn
               memory_size = {}
               timeout = {}
               tags = merge(var.tags, {})
               depends_on = [aws_iam_role_policy.provisioner_role]
               environment {{
                 variables = {}
               }}
               dead_letter_config {{
                 target_arn = aws_sqs_queue.provisioner_dlq.arn
               }}
               tracing_config {{
                 mode = {}
               }}
               logging_config {{
                 log_format = \"Text\"
                 log_group = aws_cloudwatch_log_group.provisioner_log_group.name
               }}
             }}",
        function("/FunctionName"),
        function("/Description"),
        function("/Runtime"),
        function("/Architectures"),
        function("/Handler"),
        function("/MemorySize"),
        function("/Timeout"),
        tags(template),
        function("/Environment/Variables"),
        function("/TracingConfig/Mode"),
    ))
}

/// The tags of the function, by key.
fn tags(template: &Template) -> String {
    let function = &template.to_value()["Resources"]["ProvisionerFunction"]["Properties"];
    let tags = function["Tags"].as_array().into_iter().flatten();
    let tags = tags.map(|tag| format!("{} = {}", tag["Key"], expression(&tag["Value"])));
    format!("{{ {} }}", tags.collect::<Vec<_>>().join(", "))
}

/// A property of a resource, in Terraform's language.
fn property(template: &Template, resource: &str, pointer: &str) -> String {
    let resources = &template.to_value()["Resources"];
    let found = resources[resource]["Properties"].pointer(pointer);
    expression(found.unwrap_or(&Value::Null))
}

/// A value of the template in Terraform's language.
fn expression(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            if let Some(name) = fields.get("Ref").and_then(Value::as_str) {
                return reference(name);
            }
            if let Some(Value::String(id)) = fields.get("Fn::GetAtt").and_then(|parts| parts.get(0)) {
                return reference(&format!("{id}.Arn"));
            }
            if let Some(text) = fields.get("Fn::Sub").and_then(Value::as_str) {
                return substituted(text);
            }
            let fields = fields
                .iter()
                .map(|(name, value)| format!("\"{name}\" = {}", expression(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(expression).collect();
            format!("[{}]", items.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// What a name of the template is in the module. An unknown one is not valid Terraform, so that rendering fails.
fn reference(name: &str) -> String {
    match name {
        "TableName" => "var.table_name",
        "Architecture" => "var.architecture",
        "AWS::AccountId" => "data.aws_caller_identity.current.account_id",
        "AWS::Partition" => "data.aws_partition.current.partition",
        "AWS::Region" => "data.aws_region.current.id",
        "ProvisionerDLQ.Arn" => "aws_sqs_queue.provisioner_dlq.arn",
        // CloudFormation's ARN of a log group includes its streams.
        "ProvisionerLogGroup.Arn" => "\"${aws_cloudwatch_log_group.provisioner_log_group.arn}:*\"",
        unknown => return format!("({unknown} is unknown)"),
    }
    .to_owned()
}

fn substituted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        out.extend([before, "${", &reference(name), "}"]);
        rest = after;
    }
    out + rest + "\""
}
