//! IAM's rules.

use serde_json::Value;

/// IAM's rules, as far as these policies use them: a statement counts if action, resource and all conditions match.
pub(crate) fn permits(policies: &[Value], action: &str, resource: &str, keys: &Value) -> bool {
    let statements = policies
        .iter()
        .flat_map(|policy| policy["Statement"].as_array().unwrap());
    statements.into_iter().any(|statement| {
        let any = |field: &str, text: &str| {
            let patterns = statement[field].as_array().unwrap().iter();
            patterns
                .into_iter()
                .any(|pattern| like(pattern.as_str().unwrap(), text))
        };
        let conditions = statement.get("Condition").and_then(Value::as_object);
        let holds = conditions.into_iter().flatten().all(|(operator, tests)| {
            tests.as_object().unwrap().iter().all(|(key, expected)| {
                let given = keys.get(key).and_then(Value::as_str);
                match (operator.as_str(), expected.as_str()) {
                    ("StringEquals", Some(expected)) => given == Some(expected),
                    ("StringEqualsIfExists", Some(expected)) => given.is_none_or(|given| given == expected),
                    ("ArnLike", Some(expected)) => given.is_some_and(|given| like(expected, given)),
                    ("ForAllValues:StringLike", _) => given.is_none(),
                    other => panic!("{other:?} is not known here"),
                }
            })
        });
        statement["Effect"] == "Allow" && any("Action", action) && any("Resource", resource) && holds
    })
}

/// Whether text matches a pattern in which `*` stands for anything.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    (0..=text.len()).any(|at| text.is_char_boundary(at) && like(rest, &text[at..]))
}
