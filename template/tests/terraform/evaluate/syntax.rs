//! Blocks, attributes and values of Terraform's language.

use hcl::eval::{Context, Evaluate};
use hcl::{Block, Body, Expression};
use serde_json::Value;

pub(crate) fn labels(block: &Block) -> (String, String) {
    let label = |place: usize| block.labels()[place].as_str().to_owned();
    (label(0), label(1))
}

pub(crate) fn attribute<'a>(body: &'a Body, name: &str) -> Option<&'a Expression> {
    let mut attributes = body.attributes();
    attributes
        .find(|attribute| attribute.key() == name)
        .map(hcl::Attribute::expr)
}

pub(super) fn evaluated(expression: &Expression, context: &Context<'_>) -> Value {
    let value = expression.evaluate(context);
    to_json(&value.unwrap_or_else(|error| panic!("{expression}: {error}")))
}

pub(crate) fn to_json(value: &hcl::Value) -> Value {
    serde_json::to_value(value).unwrap()
}

pub(crate) fn to_hcl(value: &Value) -> hcl::Value {
    match value {
        Value::Null => hcl::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => hcl::Value::Array(items.iter().map(to_hcl).collect()),
        Value::Object(fields) => hcl::Value::Object(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), to_hcl(value)))
                .collect(),
        ),
    }
}
