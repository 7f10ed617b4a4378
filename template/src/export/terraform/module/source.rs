//! The CloudFormation template that the module is made from, and its values as Terraform expressions.

use serde_json::Value;

use super::super::text::{escape, snake_case};
use crate::model::{LogicalId, ids};
use crate::resources::LambdaFunction;
use crate::{Error, StackOptions, Template, export};

/// The template with everything that options can add. Where a value depends on an option, the module has a variable instead.
pub(super) struct Source {
    template: Template,
}

/// A resource type of CloudFormation: Terraform's type, and Terraform's attribute for `Ref` and for each `Fn::GetAtt`.
struct Kind {
    terraform: &'static str,
    reference: &'static str,
    attributes: &'static [(&'static str, &'static str)],
}

impl Source {
    pub(super) fn new() -> Result<Self, Error> {
        let account = "123456789012";
        let widest = StackOptions::builder()
            .pitr_recovery_days(35)
            .enable_contributor_insights(true)
            .kms_key_arn(format!("arn:aws:kms:us-east-1:{account}:key/id"))
            .lambda_reserved_concurrency(1)
            .enable_tracing(true)
            .alarm_sns_topic(format!("arn:aws:sns:us-east-1:{account}:topic"))
            .enable_dashboard(true)
            .create_iam_roles(true)
            .permission_boundary("boundary")
            .acquire_policy("attributes")
            .audit_archive_object_lock_days(1)
            .build()?;
        let template = export::cloudformation(&widest)?;
        Ok(Self { template })
    }

    pub(super) fn properties(&self, id: &LogicalId) -> &Value {
        self.template
            .resource(id)
            .map_or(&Value::Null, |resource| &resource["Properties"])
    }

    pub(super) fn outputs(&self) -> impl Iterator<Item = (&str, &Value)> {
        let outputs = self.template.to_value()["Outputs"].as_object();
        outputs
            .into_iter()
            .flatten()
            .map(|(name, output)| (name.as_str(), output))
    }

    /// The alarms, with the function that each watches; none for the table's.
    pub(super) fn alarms(&self) -> impl Iterator<Item = (LogicalId, Option<LambdaFunction>)> {
        let alarms = self
            .template
            .resources()
            .filter(|(_, resource)| resource["Type"] == "AWS::CloudWatch::Alarm");
        alarms.filter_map(|(id, _)| {
            let of = |function: &LambdaFunction| {
                let ids = function.ids();
                let alarms = [
                    ids.queue_alarm,
                    ids.error_alarm,
                    ids.duration_alarm,
                    ids.age_alarm,
                    ids.stopped_alarm,
                    ids.failed_events_alarm,
                    ids.throttle_alarm,
                    ids.destination_alarm,
                ];
                alarms.iter().any(|alarm| alarm.as_str() == id)
            };
            Some((
                LogicalId::parse(id).ok()?,
                LambdaFunction::ALL.into_iter().find(of),
            ))
        })
    }

    /// A value in a resource that exists only together with what it refers to.
    pub(super) fn expression(&self, value: &Value) -> String {
        self.write(value, |address, attribute| {
            if address == Self::address_of_table() {
                format!("{address}.{attribute}")
            } else {
                format!("{address}[0].{attribute}")
            }
        })
    }

    /// A value that is null if what it refers to does not exist.
    pub(super) fn expression_or_null(&self, value: &Value) -> String {
        self.write(value, |address, attribute| {
            if address == Self::address_of_table() {
                format!("{address}.{attribute}")
            } else {
                format!("one({address}[*].{attribute})")
            }
        })
    }

    fn address_of_table() -> String {
        format!("aws_dynamodb_table.{}", snake_case(ids::TABLE.as_str()))
    }

    fn write(&self, value: &Value, access: impl Fn(&str, &str) -> String + Copy) -> String {
        match value {
            Value::Object(fields) if fields.len() == 1 => {
                if let Some(name) = fields.get("Ref").and_then(Value::as_str) {
                    return self.reference(name, None, access);
                }
                if let Some([Value::String(id), Value::String(attribute)]) = fields
                    .get("Fn::GetAtt")
                    .and_then(Value::as_array)
                    .map(Vec::as_slice)
                {
                    return self.reference(id, Some(attribute), access);
                }
                if let Some(text) = fields.get("Fn::Sub").and_then(Value::as_str) {
                    return self.substituted(text, access);
                }
                self.object(fields, access)
            }
            Value::Object(fields) => self.object(fields, access),
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| self.write(item, access)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::String(text) => format!("\"{}\"", escape(text)),
            plain => plain.to_string(),
        }
    }

    fn object(
        &self,
        fields: &serde_json::Map<String, Value>,
        access: impl Fn(&str, &str) -> String + Copy,
    ) -> String {
        let fields = fields
            .iter()
            .map(|(key, value)| format!("\"{key}\" = {}", self.write(value, access)));
        format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
    }

    fn substituted(&self, text: &str, access: impl Fn(&str, &str) -> String + Copy) -> String {
        let mut out = String::from("\"");
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            out += &escape(before);
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            let (id, attribute) = match name.split_once('.') {
                Some((id, attribute)) => (id, Some(attribute)),
                None => (name, None),
            };
            let reference = self.reference(id, attribute, access);
            match reference
                .strip_prefix('"')
                .and_then(|inner| inner.strip_suffix('"'))
            {
                Some(inner) => out += inner,
                None => out.extend(["${", &reference, "}"]),
            }
            rest = after;
        }
        out + &escape(rest) + "\""
    }

    fn reference(
        &self,
        name: &str,
        attribute: Option<&str>,
        access: impl Fn(&str, &str) -> String,
    ) -> String {
        if let Some(known) = known(name, attribute) {
            return known.to_owned();
        }
        let kind = self
            .template
            .to_value()
            .pointer(&format!("/Resources/{name}/Type"))
            .and_then(Value::as_str)
            .and_then(kind);
        let Some(kind) = kind else {
            // Not valid Terraform, so that rendering fails.
            return format!("({name} is unknown)");
        };
        let found = match attribute {
            None => Some(kind.reference),
            Some(attribute) => kind
                .attributes
                .iter()
                .find(|(cloudformation, _)| *cloudformation == attribute)
                .map(|(_, terraform)| *terraform),
        };
        let value = access(
            &format!("{}.{}", kind.terraform, snake_case(name)),
            found.unwrap_or("?"),
        );
        // CloudFormation's ARN of a log group includes its streams.
        if kind.terraform == "aws_cloudwatch_log_group" && attribute == Some("Arn") {
            format!("\"${{{value}}}:*\"")
        } else {
            value
        }
    }
}

/// Pseudo parameters, and resources that may exist already.
fn known(name: &str, attribute: Option<&str>) -> Option<&'static str> {
    Some(match (name, attribute) {
        ("AWS::StackName", None) => "var.name",
        ("AWS::Region", None) => "data.aws_region.current.id",
        ("AWS::AccountId", None) => "data.aws_caller_identity.current.account_id",
        ("AWS::Partition", None) => "data.aws_partition.current.partition",
        ("AWS::URLSuffix", None) => "data.aws_partition.current.dns_suffix",
        ("AuditArchiveBucket", None) => "local.archive_bucket_name",
        ("AuditArchiveBucket", Some("Arn")) => "local.archive_bucket_arn",
        ("AggregatorRole", Some("Arn")) => "local.aggregator_role_arn",
        ("ArchiverRole", Some("Arn")) => "local.archiver_role_arn",
        _ => return None,
    })
}

fn kind(cloudformation: &str) -> Option<Kind> {
    let (terraform, reference, attributes): (_, _, &'static [_]) = match cloudformation {
        "AWS::CloudWatch::Alarm" => ("aws_cloudwatch_metric_alarm", "alarm_name", &[]),
        "AWS::CloudWatch::Dashboard" => ("aws_cloudwatch_dashboard", "dashboard_name", &[]),
        "AWS::DynamoDB::Table" => (
            "aws_dynamodb_table",
            "name",
            &[("Arn", "arn"), ("StreamArn", "stream_arn")],
        ),
        "AWS::IAM::ManagedPolicy" => ("aws_iam_policy", "arn", &[]),
        "AWS::IAM::Role" => ("aws_iam_role", "name", &[("Arn", "arn")]),
        "AWS::Lambda::EventSourceMapping" => ("aws_lambda_event_source_mapping", "uuid", &[]),
        "AWS::Lambda::Function" => ("aws_lambda_function", "function_name", &[("Arn", "arn")]),
        "AWS::Logs::LogGroup" => ("aws_cloudwatch_log_group", "name", &[("Arn", "arn")]),
        "AWS::SQS::Queue" => ("aws_sqs_queue", "url", &[("Arn", "arn"), ("QueueName", "name")]),
        _ => return None,
    };
    Some(Kind {
        terraform,
        reference,
        attributes,
    })
}
