//! The limits file in the properties of a resource.

use serde_json::Value;
use zae_limiter_limits::InvalidField;

/// The properties that CloudFormation itself reads.
const CLOUDFORMATIONS: [&str; 2] = ["ServiceToken", "ServiceTimeout"];

/// The limits file in the properties of a resource: `Limits`, as text or as a map.
///
/// CloudFormation sends every number and boolean of a map as text, so texts that are numbers or booleans are read as such. A
/// number is one if it is printed the same way: `007` remains text.
///
/// ```
/// use zae_limiter_provisioner::limits_file;
///
/// let properties = serde_json::json!({"Limits": {"resources": {"a": {"limits": {"rpm": {"capacity": "5"}}}}}});
/// let file = limits_file(&properties).unwrap();
/// assert_eq!(file, r#"{"resources":{"a":{"limits":{"rpm":{"capacity":5}}}}}"#);
/// ```
pub fn limits_file(properties: &Value) -> Result<String, InvalidField> {
    let invalid = |path: &str, problem: String| InvalidField {
        path: path.to_owned(),
        problem,
    };
    let Value::Object(fields) = properties else {
        return Err(invalid(
            "ResourceProperties",
            "must be a map with Limits".to_owned(),
        ));
    };
    let known = |name: &str| name == "Limits" || CLOUDFORMATIONS.contains(&name);
    if let Some(unknown) = fields.keys().find(|name| !known(name)) {
        let problem = format!("unknown property {unknown:?}; the only property is Limits");
        return Err(invalid("ResourceProperties", problem));
    }
    match fields.get("Limits") {
        Some(Value::String(file)) => Ok(file.clone()),
        Some(map @ Value::Object(_)) => Ok(unquoted(map).to_string()),
        _ => Err(invalid(
            "Limits",
            "must be a limits file, as text or as a map".to_owned(),
        )),
    }
}

fn unquoted(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            // Only what CloudFormation makes of a number: `007` and `+7` were texts.
            digits => match digits.parse::<u64>() {
                Ok(number) if number.to_string() == digits => Value::from(number),
                _ => value.clone(),
            },
        },
        Value::Array(list) => list.iter().map(unquoted).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name.clone(), unquoted(value)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use zae_limiter_limits::Manifest;

    #[test]
    fn a_map_as_cloudformation_sends_it_means_what_the_file_means() {
        let file = "{system: {audit_retention_days: 30, auto_update: true, limits: [\"rpm:100\"]}, \
                    resources: {gpt-4: {limits: {rpm: 500, tpd: {capacity: 1000000, period: day}}}}}";
        let sent = json!({"ServiceToken": "arn", "Limits": {
            "system": {"audit_retention_days": "30", "auto_update": "true", "limits": ["rpm:100"]},
            "resources": {"gpt-4": {"limits": {"rpm": "500", "tpd": {"capacity": "1000000", "period": "day"}}}},
        }});
        let of_map = Manifest::parse(&limits_file(&sent).unwrap()).unwrap();
        assert_eq!(of_map, Manifest::parse(file).unwrap());
        let of_text = limits_file(&json!({"Limits": file, "ServiceTimeout": "300"})).unwrap();
        assert_eq!(of_text, file);
    }

    #[test]
    fn a_text_that_no_number_is_printed_as_remains_text() {
        for text in ["007", "+7", "00", "7.0", " 7", "18446744073709551616"] {
            let file = limits_file(&json!({"Limits": {"value": text}})).unwrap();
            assert_eq!(file, json!({"value": text}).to_string());
        }
        for (text, number) in [("0", 0), ("7", 7), ("18446744073709551615", u64::MAX)] {
            let file = limits_file(&json!({"Limits": {"value": text}})).unwrap();
            assert_eq!(file, json!({"value": number}).to_string());
        }
    }

    #[test]
    fn other_properties_are_refused_by_name() {
        for (properties, expected) in [
            (json!({"Limits": "", "Limit": ""}), "unknown property \"Limit\""),
            (json!({"Limits": 7}), "Limits: must be a limits file"),
            (json!({}), "Limits: must be a limits file"),
            (json!(null), "must be a map with Limits"),
        ] {
            let error = limits_file(&properties).unwrap_err().to_string();
            assert!(error.contains(expected), "{properties}: {error}");
        }
    }
}
