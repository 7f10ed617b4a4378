//! Rules for references.

use serde_json::Value;

use super::{Findings, Rule};
use crate::Template;

/// The functions that refer to something.
const FUNCTIONS: [&str; 3] = ["Ref", "Fn::GetAtt", "Fn::Sub"];

pub(super) fn check(template: &Template, findings: &mut Findings) {
    for section in ["Resources", "Outputs"] {
        let entries = template.to_value().get(section).and_then(Value::as_object);
        for (id, entry) in entries.into_iter().flatten() {
            let mut targets = Vec::new();
            collect(entry, &mut targets);
            for target in targets {
                let problem = format!("refers to {target}, which is not in the template");
                findings.require(is_known(template, &target), Rule::References, id, problem);
            }
        }
    }
}

fn is_known(template: &Template, target: &str) -> bool {
    let value = template.to_value();
    target.starts_with("AWS::")
        || value["Resources"].get(target).is_some()
        || value["Parameters"].get(target).is_some()
}

/// Collects the logical ids that a value refers to.
fn collect(value: &Value, targets: &mut Vec<String>) {
    match value {
        Value::Object(fields) => match fields.iter().next() {
            Some((key, argument)) if fields.len() == 1 && FUNCTIONS.contains(&key.as_str()) => {
                match key.as_str() {
                    "Fn::Sub" => substitutions(argument, targets),
                    _ => targets.extend(first_word(argument)),
                }
            }
            _ => fields.values().for_each(|value| collect(value, targets)),
        },
        Value::Array(items) => items.iter().for_each(|item| collect(item, targets)),
        _ => {}
    }
}

/// The id in `Id`, `Id.Attribute` and `[Id, Attribute]`.
fn first_word(argument: &Value) -> Option<String> {
    let text = argument.as_str().or_else(|| argument[0].as_str())?;
    text.split('.').next().map(str::to_owned)
}

fn substitutions(argument: &Value, targets: &mut Vec<String>) {
    let text = argument
        .as_str()
        .or_else(|| argument[0].as_str())
        .unwrap_or_default();
    let own = argument.get(1).and_then(Value::as_object);
    for rest in text.split("${").skip(1) {
        let name = rest.split('}').next().unwrap_or_default();
        let id = name.split('.').next().unwrap_or_default();
        let is_literal = name.starts_with('!');
        let is_own = own.is_some_and(|variables| variables.contains_key(name));
        if !is_literal && !is_own {
            targets.push(id.to_owned());
        }
    }
    own.into_iter()
        .flatten()
        .for_each(|(_, value)| collect(value, targets));
}
