//! The data source `aws_iam_policy_document`.

use serde_json::{Map, Value, json};

/// What the data source `aws_iam_policy_document` makes of its blocks, in the form that a template has.
pub(super) fn policy_document(body: &Value) -> Value {
    let one_or_list = |list: &Value| match list.as_array().map(Vec::as_slice) {
        Some([one]) => one.clone(),
        _ => list.clone(),
    };
    let blocks = |body: &Value, name: &str| {
        body.get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let statement = |block: Value| {
        let mut statement = Map::new();
        for (from, to) in [
            ("sid", "Sid"),
            ("effect", "Effect"),
            ("actions", "Action"),
            ("resources", "Resource"),
        ] {
            statement.extend(block.get(from).map(|value| (to.to_owned(), value.clone())));
        }
        for principals in blocks(&block, "principals") {
            let kind = principals["type"].as_str().unwrap();
            let principal = statement.entry("Principal").or_insert_with(|| json!({}));
            principal[kind] = one_or_list(&principals["identifiers"]);
        }
        for condition in blocks(&block, "condition") {
            let (test, key) = (
                condition["test"].as_str().unwrap(),
                condition["variable"].as_str().unwrap(),
            );
            let tests = statement.entry("Condition").or_insert_with(|| json!({}));
            if tests.get(test).is_none() {
                tests[test] = json!({});
            }
            tests[test][key] = one_or_list(&condition["values"]);
        }
        Value::Object(statement)
    };
    let statements: Vec<_> = blocks(body, "statement").into_iter().map(statement).collect();
    json!({ "Version": "2012-10-17", "Statement": statements })
}
