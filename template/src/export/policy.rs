//! A policy as Terraform's data source.

use std::fmt::Write as _;

use serde_json::Value;

/// `data "aws_iam_policy_document"` with the statements of a policy document that is attached to a user or role.
///
/// ```
/// use serde_json::json;
/// use zae_limiter_template::export::policy_data_source;
///
/// let document = json!({ "Statement": [{ "Sid": "Read", "Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["*"] }] });
/// assert!(policy_data_source("read", &document).starts_with("data \"aws_iam_policy_document\" \"read\" {\n"));
/// ```
pub fn policy_data_source(name: &str, document: &Value) -> String {
    let statements: Vec<_> = list(&document["Statement"]).iter().map(statement).collect();
    format!(
        "data \"aws_iam_policy_document\" \"{name}\" {{\n{}}}\n",
        statements.join("\n")
    )
}

fn statement(statement: &Value) -> String {
    let mut text = String::from("  statement {\n");
    if let Some(sid) = statement["Sid"].as_str() {
        let _ = write!(text, "    sid = {}\n\n", quoted(sid));
    }
    if statement["Effect"] == "Deny" {
        text.push_str("    effect = \"Deny\"\n\n");
    }
    text.push_str(&block_list("actions", &statement["Action"]));
    text.push('\n');
    text.push_str(&block_list("resources", &statement["Resource"]));
    for (operator, tests) in statement["Condition"].as_object().into_iter().flatten() {
        for (variable, values) in tests.as_object().into_iter().flatten() {
            let values: Vec<_> = list(values)
                .iter()
                .filter_map(Value::as_str)
                .map(quoted)
                .collect();
            let (operator, variable, values) = (quoted(operator), quoted(variable), values.join(", "));
            let _ = write!(
                text,
                "\n    condition {{\n      test     = {operator}\n      variable = {variable}\n      values   = [{values}]\n    }}\n"
            );
        }
    }
    text.push_str("  }\n");
    text
}

fn block_list(name: &str, values: &Value) -> String {
    let lines = list(values).iter().filter_map(Value::as_str);
    let lines: Vec<_> = lines.map(|value| format!("      {},\n", quoted(value))).collect();
    format!("    {name} = [\n{}    ]\n", lines.concat())
}

fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace("${", "$${")
        .replace("%{", "%%{");
    format!("\"{escaped}\"")
}

fn list(value: &Value) -> &[Value] {
    match value {
        Value::Array(items) => items,
        Value::Null => &[],
        single => std::slice::from_ref(single),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn templates_and_quotes_are_escaped() {
        assert_eq!(quoted(r#"a "b" ${c} %{d}"#), r#""a \"b\" $${c} %%{d}""#);
    }
}
