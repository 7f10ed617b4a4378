//! The readers of the table's stream.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use zae_limiter_template::{LambdaFunction, Template};

use crate::patience::patiently;
use crate::{Error, Stack};

/// A Lambda function that reads the table's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamReader {
    /// The event source mapping.
    pub mapping: String,
    /// The function's ARN.
    pub function_arn: String,
    /// The mapping's state, such as `Enabled`.
    pub state: String,
    /// Whether the function belongs to the stack.
    pub own: bool,
}

impl Stack {
    /// The functions that read the table's stream. More than two are throttled by DynamoDB, and an aggregator of zae-limiter
    /// for Python counts usage twice. Of a table without a stack, only functions of the Terraform module are our own.
    pub async fn stream_readers(&self) -> Result<Vec<StreamReader>, Error> {
        let deadline = self.reading();
        let (stream, own) = if let Some(deployed) = self.observe(&deadline).await? {
            (
                deployed.stack.outputs.get("StreamArn").cloned(),
                deployed.template.as_ref().map(function_names).unwrap_or_default(),
            )
        } else {
            let table = patiently(&deadline, || self.cloud.table(self.name.as_str())).await?;
            let Some(table) = table else {
                return Err(self.missing().await);
            };
            let names = LambdaFunction::ALL.into_iter().flat_map(|function| {
                [function.as_str(), function.role().component()].map(|end| format!("{}-{end}", self.name))
            });
            let own = self.managed(&table).await?.then(|| names.collect());
            (table.latest_stream_arn, own.unwrap_or_default())
        };
        let Some(stream) = stream else {
            return Ok(vec![]);
        };
        let mappings = patiently(&deadline, || self.cloud.mappings(&stream)).await?;
        Ok(mappings
            .into_iter()
            .map(|mapping| StreamReader {
                own: own.contains(mapping.function()),
                mapping: mapping.uuid,
                function_arn: mapping.function_arn,
                state: mapping.state,
            })
            .collect())
    }
}

/// Whether a template has an event source mapping.
pub(crate) fn reads_stream(template: &Template) -> bool {
    let mapping = |resource: &Value| {
        resource.get("Type").and_then(Value::as_str) == Some("AWS::Lambda::EventSourceMapping")
    };
    template.resources().any(|(_, resource)| mapping(resource))
}

/// The names of the functions in a template.
pub(crate) fn function_names(template: &Template) -> BTreeSet<String> {
    let names = template.resources().filter_map(|(_, resource)| {
        (resource.get("Type")?.as_str()? == "AWS::Lambda::Function")
            .then(|| resource.pointer("/Properties/FunctionName")?.as_str())
            .flatten()
    });
    names.map(str::to_owned).collect()
}
