//! The attributes and blocks of a resource, and its rules.

use hcl::eval::{Context, Evaluate};
use hcl::{Block, Body};
use serde_json::{Map, Value, json};

use super::syntax::{attribute, evaluated, to_hcl, to_json};

/// The message of a rule whose condition does not hold.
pub(super) fn broken_rule(block: &Block, context: &Context<'_>) -> Option<String> {
    let holds = evaluated(attribute(block.body(), "condition").unwrap(), context);
    let message = attribute(block.body(), "error_message").unwrap();
    (holds != json!(true)).then(|| evaluated(message, context).as_str().unwrap().to_owned())
}

pub(super) fn preconditions(body: &Body, context: &Context<'_>) -> Vec<String> {
    let lifecycle = body.blocks().filter(|block| block.identifier() == "lifecycle");
    let rules = lifecycle.flat_map(|block| block.body().blocks());
    rules.filter_map(|rule| broken_rule(rule, context)).collect()
}

/// Arguments of Terraform itself.
const META: [&str; 3] = ["count", "depends_on", "provider"];

pub(super) fn evaluate_body(body: &Body, context: &Context<'_>) -> Value {
    try_evaluate_body(body, context).unwrap_or_else(|error| panic!("{error}"))
}

/// Attributes that are not null, and blocks as lists under their name. `lifecycle` and provisioners stay as they are.
pub(super) fn try_evaluate_body(body: &Body, context: &Context<'_>) -> Result<Value, String> {
    let mut result = Map::new();
    for attribute in body
        .attributes()
        .filter(|attribute| !META.contains(&attribute.key()))
    {
        let value = attribute
            .expr()
            .evaluate(context)
            .map_err(|error| error.to_string())?;
        if !value.is_null() {
            result.insert(attribute.key().to_owned(), to_json(&value));
        }
    }
    let mut add = |name: &str, value: Value| {
        let list = result.entry(name.to_owned()).or_insert_with(|| json!([]));
        list.as_array_mut().unwrap().push(value);
    };
    for block in body.blocks() {
        match block.identifier() {
            "lifecycle" => {
                let fixed = |name: &str| attribute(block.body(), name).map(ToString::to_string);
                add(
                    "lifecycle",
                    json!({ "prevent_destroy": fixed("prevent_destroy"), "ignore_changes": fixed("ignore_changes") }),
                );
            }
            "dynamic" => {
                let name = block.labels()[0].as_str();
                let each = attribute(block.body(), "for_each").unwrap();
                let each = to_json(&each.evaluate(context).map_err(|error| error.to_string())?);
                let content = block.body().blocks().next().unwrap();
                for item in each.as_array().unwrap() {
                    let mut inner = context.clone();
                    inner.declare_var(name, to_hcl(&json!({ "value": item })));
                    add(name, try_evaluate_body(content.body(), &inner)?);
                }
            }
            name => add(name, try_evaluate_body(block.body(), context)?),
        }
    }
    Ok(Value::Object(result))
}
