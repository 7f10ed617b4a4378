//! Rules for functions.

use serde_json::Value;

use super::properties::{list, of_type, target};
use super::{Findings, Rule};
use crate::Template;

/// Parts of a variable's name that suggest a secret.
const SECRET_NAMES: [&str; 6] = [
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "TOKEN",
    "ACCESS_KEY",
    "PRIVATE_KEY",
];
/// Prefixes of AWS access key ids.
const SECRET_VALUES: [&str; 2] = ["AKIA", "ASIA"];

pub(super) fn check(template: &Template, findings: &mut Findings) {
    for (id, function) in of_type(template, "AWS::Lambda::Function") {
        let properties = &function["Properties"];
        let architectures = list(&properties["Architectures"]);
        let known = matches!(architectures, [one] if is_architecture(template, one));
        let native = properties["Runtime"] == "provided.al2023" && known;
        let problem = "must run on provided.al2023, on x86_64 or arm64";
        findings.require(native, Rule::FunctionRuntime, id, problem);
        let log_group = target(&properties["LoggingConfig"]["LogGroup"]);
        let declared = of_type(template, "AWS::Logs::LogGroup").any(|(group, _)| Some(group) == log_group);
        findings.require(
            declared,
            Rule::FunctionLogs,
            id,
            "must log to a log group of the template (LoggingConfig)",
        );
        let variables = properties["Environment"]["Variables"].as_object();
        for (name, value) in variables.into_iter().flatten() {
            let problem = format!("must not have a secret in the environment variable {name}");
            findings.require_of(!is_secret(name, value), Rule::FunctionSecrets, id, name, problem);
        }
    }
    for (id, mapping) in of_type(template, "AWS::Lambda::EventSourceMapping") {
        let destination = &mapping["Properties"]["DestinationConfig"]["OnFailure"]["Destination"];
        let problem = "must say where failures go (DestinationConfig.OnFailure)";
        findings.require(!destination.is_null(), Rule::MappingFailures, id, problem);
    }
}

/// A processor that Lambda has, or a parameter that accepts nothing else.
fn is_architecture(template: &Template, value: &Value) -> bool {
    let is_known = |word: &Value| *word == "x86_64" || *word == "arm64";
    let parameter = target(value).map(|name| &template.to_value()["Parameters"][name]["AllowedValues"]);
    match parameter.map(list) {
        Some(words) => !words.is_empty() && words.iter().all(is_known),
        None => is_known(value),
    }
}

fn is_secret(name: &str, value: &Value) -> bool {
    let name = name.to_ascii_uppercase();
    // A reference to a secret is not a secret.
    let literal = value.as_str();
    let telling = SECRET_NAMES.iter().any(|part| name.contains(part));
    literal.is_some_and(|text| telling || SECRET_VALUES.iter().any(|start| text.starts_with(start)))
}
