//! The outputs: those of the CloudFormation stack, null for what does not exist.

use super::super::text::{escape, snake_case};
use super::print::Part;
use super::source::Source;
use crate::resources::AUDIT_RETENTION_DAYS;

/// An output of the module.
pub(super) struct Output {
    pub(super) name: String,
    pub(super) description: String,
    value: String,
}

pub(super) fn all(source: &Source) -> Vec<Output> {
    let output = |(name, output): (&str, &serde_json::Value)| Output {
        name: snake_case(name),
        description: format!("{}.", output["Description"].as_str().unwrap_or_default()),
        value: if name == AUDIT_RETENTION_DAYS {
            "tostring(var.audit_retention_days)".to_owned()
        } else {
            source.expression_or_null(&output["Value"])
        },
    };
    source.outputs().map(output).collect()
}

pub(super) fn parts(outputs: &[Output]) -> Vec<Part> {
    let part = |output: &Output| {
        Part::new(format!(
            "output \"{}\" {{\n description = \"{}\"\n value = {}\n }}",
            output.name,
            escape(&output.description),
            output.value
        ))
    };
    outputs.iter().map(part).collect()
}
