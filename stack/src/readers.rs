//! The readers of the table's stream.

use std::collections::BTreeSet;

use serde::Serialize;
use zae_limiter_template::Template;

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
    /// for Python counts usage twice.
    pub async fn stream_readers(&self) -> Result<Vec<StreamReader>, Error> {
        let deployed = self.observe().await?.ok_or_else(|| self.missing())?;
        let Some(stream) = deployed.stack.outputs.get("StreamArn") else {
            return Ok(vec![]);
        };
        let own = deployed.template.as_ref().map(function_names).unwrap_or_default();
        let mappings = self.cloud.mappings(stream).await?;
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

/// The names of the functions in a template.
pub(crate) fn function_names(template: &Template) -> BTreeSet<String> {
    let names = template.resources().filter_map(|(_, resource)| {
        (resource.get("Type")?.as_str()? == "AWS::Lambda::Function")
            .then(|| resource.pointer("/Properties/FunctionName")?.as_str())
            .flatten()
    });
    names.map(str::to_owned).collect()
}
