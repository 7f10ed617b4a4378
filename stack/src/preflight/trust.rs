//! Trust policies.

use serde_json::Value;

const LAMBDA: &str = "lambda.amazonaws.com";

/// Whether a trust policy, as IAM returns it, lets Lambda assume the role. A condition is taken to hold.
pub(super) fn lambda_may_assume(document: &str) -> bool {
    let Ok(document) = serde_json::from_str::<Value>(&decoded(document)) else {
        return false;
    };
    let statements = many(document.get("Statement"));
    statements.into_iter().any(|statement| {
        let says = |field: &str, words: &[&str]| {
            many(statement.get(field))
                .iter()
                .any(|value| value.as_str().is_some_and(|text| words.contains(&text)))
        };
        let principal = statement.get("Principal");
        let service = many(principal.and_then(|principal| principal.get("Service")));
        let lambda = service.iter().any(|service| service.as_str() == Some(LAMBDA));
        says("Effect", &["Allow"]) && says("Action", &["sts:AssumeRole", "sts:*", "*"]) && lambda
    })
}

/// A list, or a single value in its place.
fn many(value: Option<&Value>) -> Vec<&Value> {
    match value {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(one) => vec![one],
        None => vec![],
    }
}

/// IAM returns policies percent-encoded.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: u8| {
                    char::from(byte)
                        .to_digit(16)
                        .and_then(|digit| u8::try_from(digit).ok())
                };
                digit(*high).zip(digit(*low)).map(|(high, low)| high * 16 + low)
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_role_that_trusts_lambda_will_do() {
        let trust = |effect: &str, principal: &str, action: &str| {
            format!(r#"{{"Statement":[{{"Effect":"{effect}","Principal":{principal},"Action":{action}}}]}}"#)
        };
        let service = r#"{"Service":"lambda.amazonaws.com"}"#;
        assert!(lambda_may_assume(&trust("Allow", service, r#""sts:AssumeRole""#)));
        assert!(lambda_may_assume(&trust(
            "Allow",
            r#"{"Service":["x","lambda.amazonaws.com"]}"#,
            r#"["sts:AssumeRole"]"#
        )));
        assert!(!lambda_may_assume(&trust("Deny", service, r#""sts:AssumeRole""#)));
        assert!(!lambda_may_assume(&trust(
            "Allow",
            r#"{"Service":"ec2.amazonaws.com"}"#,
            r#""sts:AssumeRole""#
        )));
        assert!(!lambda_may_assume(&trust(
            "Allow",
            r#"{"AWS":"lambda.amazonaws.com"}"#,
            r#""sts:AssumeRole""#
        )));
        assert!(!lambda_may_assume("no policy"));
    }

    #[test]
    fn a_policy_is_read_percent_encoded_too() {
        let encoded = "%7B%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22Principal%22%3A%7B%22Service%22%3A%22\
                       lambda.amazonaws.com%22%7D%2C%22Action%22%3A%22sts%3AAssumeRole%22%7D%5D%7D";
        assert!(lambda_may_assume(encoded));
        assert_eq!(decoded("100%"), "100%");
    }
}
