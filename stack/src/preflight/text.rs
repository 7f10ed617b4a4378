//! Resolving names in a template.

use serde_json::Value;
use zae_limiter_template::deployer::Place;

/// The text that CloudFormation resolves a value to; `None` if it depends on the stack.
pub(super) fn resolve(value: &Value, place: &Place) -> Option<String> {
    let text = match value {
        Value::String(text) => return Some(text.clone()),
        Value::Object(fields) => match (fields.get("Fn::Sub"), fields.get("Ref")) {
            (Some(Value::String(text)), None) => text.clone(),
            (None, Some(Value::String(name))) => format!("${{{name}}}"),
            _ => return None,
        },
        _ => return None,
    };
    let text = text
        .replace("${AWS::Region}", &place.region)
        .replace("${AWS::AccountId}", &place.account);
    let text = text.replace("${AWS::Partition}", &place.partition);
    (!text.contains("${")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_known_beforehand_is_resolved() {
        let place = Place {
            partition: "aws".into(),
            region: "eu-west-1".into(),
            account: "1".into(),
        };
        let resolved = |value: Value| resolve(&value, &place);
        assert_eq!(resolved(json!("a")), Some("a".into()));
        assert_eq!(
            resolved(json!({ "Fn::Sub": "demo-${AWS::Region}-acq" })),
            Some("demo-eu-west-1-acq".into())
        );
        assert_eq!(
            resolved(json!({ "Ref": "AWS::Region" })),
            Some("eu-west-1".into())
        );
        assert_eq!(resolved(json!({ "Fn::Sub": "${RateLimitsTable}-x" })), None);
        assert_eq!(resolved(json!(["a"])), None);
    }
}
