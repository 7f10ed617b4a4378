//! Templates with known values in place of references.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

const STACK_NAME: &str = "AWS::StackName";

/// The value with everything resolved that is known: the stack's name, and values by the name that `Ref` or `Fn::Sub` has.
pub(crate) fn resolve(stack: &str, known: &BTreeMap<String, String>, value: &Value) -> Value {
    let values = Values {
        stack,
        parameters: known,
    };
    values.put_into(value)
}

/// The values that a stack gives to references: its name, and its parameters.
pub(super) struct Values<'a> {
    pub(super) stack: &'a str,
    pub(super) parameters: &'a BTreeMap<String, String>,
}

impl Values<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        if name == STACK_NAME {
            Some(self.stack)
        } else {
            self.parameters.get(name).map(String::as_str)
        }
    }

    /// The value with everything resolved that is known.
    pub(super) fn put_into(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => self.put_into_object(fields),
            Value::Array(items) => items.iter().map(|item| self.put_into(item)).collect(),
            leaf => leaf.clone(),
        }
    }

    fn put_into_object(&self, fields: &Map<String, Value>) -> Value {
        if fields.len() == 1 {
            if let Some(known) = fields
                .get("Ref")
                .and_then(Value::as_str)
                .and_then(|name| self.get(name))
            {
                return known.into();
            }
            if let Some([Value::String(id), Value::String(attribute)]) = fields
                .get("Fn::GetAtt")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                && let Some(known) = self.get(&format!("{id}.{attribute}"))
            {
                return known.into();
            }
            if let Some(text) = fields.get("Fn::Sub").and_then(Value::as_str) {
                return self.substituted(text);
            }
        }
        let fields = fields.iter();
        fields
            .map(|(key, value)| (key.clone(), self.put_into(value)))
            .collect()
    }

    /// The shortest form of a text with references, as a template rendered for a name has it.
    fn substituted(&self, text: &str) -> Value {
        let (mut plain, mut spelled, mut references) = (String::new(), String::new(), Vec::new());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            plain.push_str(before);
            spelled.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                // Never closed, so no reference.
                plain.extend(["${", after]);
                spelled.extend(["${", after]);
                rest = "";
                break;
            };
            if let Some(literal) = name.strip_prefix('!') {
                plain.extend(["${", literal, "}"]);
                spelled.extend(["${!", literal, "}"]);
            } else if let Some(known) = self.get(name) {
                plain.push_str(known);
                spelled.push_str(&known.replace("${", "${!"));
            } else {
                references.push(name);
                spelled.extend(["${", name, "}"]);
            }
            rest = after;
        }
        plain.push_str(rest);
        spelled.push_str(rest);
        match references.as_slice() {
            [] => plain.into(),
            [name] if spelled == format!("${{{name}}}") => match name.split_once('.') {
                Some((resource, attribute)) => json!({ "Fn::GetAtt": [resource, attribute] }),
                None => json!({ "Ref": name }),
            },
            _ => json!({ "Fn::Sub": spelled }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(value: &Value) -> Value {
        let parameters = BTreeMap::from([("Bucket".to_owned(), "mine".to_owned())]);
        let values = Values {
            stack: "demo",
            parameters: &parameters,
        };
        values.put_into(value)
    }

    #[test]
    fn the_stacks_name_and_its_parameters_are_put_in_everywhere() {
        let cases = [
            (json!({ "Ref": "AWS::StackName" }), json!("demo")),
            (json!([{ "Ref": "Bucket" }]), json!(["mine"])),
            (json!({ "Fn::Sub": "${AWS::StackName}-acq" }), json!("demo-acq")),
            (
                json!({ "Fn::Sub": "a-${Bucket}/${AWS::StackName}" }),
                json!("a-mine/demo"),
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(resolved(&json!({ "a": given })), json!({ "a": expected }));
        }
    }

    #[test]
    fn what_only_cloudformation_knows_stays_in_its_shortest_form() {
        let cases = [
            (json!({ "Ref": "Table" }), json!({ "Ref": "Table" })),
            (
                json!({ "Ref": "Bucket", "x": 1 }),
                json!({ "Ref": "Bucket", "x": 1 }),
            ),
            (
                json!({ "Fn::Sub": "${AWS::StackName}-${AWS::Region}" }),
                json!({ "Fn::Sub": "demo-${AWS::Region}" }),
            ),
            (json!({ "Fn::Sub": "${Table}" }), json!({ "Ref": "Table" })),
            (
                json!({ "Fn::Sub": "${Table.Arn}" }),
                json!({ "Fn::GetAtt": ["Table", "Arn"] }),
            ),
            (json!({ "Fn::Sub": "${!literal}" }), json!("${literal}")),
            (
                json!({ "Fn::Sub": "${Table}${!x}" }),
                json!({ "Fn::Sub": "${Table}${!x}" }),
            ),
            (json!({ "Fn::Sub": "cut ${short" }), json!("cut ${short")),
        ];
        for (given, expected) in cases {
            assert_eq!(resolved(&given), expected);
        }
    }
}
