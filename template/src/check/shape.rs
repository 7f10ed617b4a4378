//! Rules for the template as a whole.

use serde_json::Value;

use super::{Facts, Findings, Rule};
use crate::Template;

/// How many resources, parameters and outputs CloudFormation takes.
const LIMITS: [(&str, usize); 3] = [("Resources", 500), ("Parameters", 200), ("Outputs", 200)];

pub(super) fn check(template: &Template, facts: &Facts, findings: &mut Findings) {
    let size = template.to_json().len();
    let problem = format!(
        "must have at most {} bytes as compact JSON, not {size}",
        Template::LONGEST_BODY
    );
    findings.require(size <= Template::LONGEST_BODY, Rule::Shape, "Template", problem);
    for (section, most) in LIMITS {
        let count = template
            .to_value()
            .get(section)
            .and_then(Value::as_object)
            .map_or(0, serde_json::Map::len);
        let problem = format!("must have at most {most} {section}, not {count}");
        findings.require(count <= most, Rule::Shape, "Template", problem);
    }
    let outputs = template.to_value().get("Outputs").and_then(Value::as_object);
    for (id, output) in outputs.into_iter().flatten() {
        let name = &output["Export"]["Name"];
        let problem = "must be exported under a name that starts with the stack's";
        findings.require(starts_with_stack(name, facts), Rule::OutputExport, id, problem);
    }
}

fn starts_with_stack(name: &Value, facts: &Facts) -> bool {
    // What the stack's name followed by anything renders to, without that anything.
    let start = facts.stack.clone().then("-").to_value();
    let (name, start) = match &start {
        Value::String(start) => (name.as_str(), Some(start.as_str())),
        start => (name["Fn::Sub"].as_str(), start["Fn::Sub"].as_str()),
    };
    matches!((name, start), (Some(name), Some(start)) if name.starts_with(start))
}
