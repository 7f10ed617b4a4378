//! The AWS provider's schema, from `tests/provider-schema.json`; `scripts/provider-schema` writes it.

use std::sync::OnceLock;

use serde_json::Value;

pub(crate) struct Schema(Value);

impl Schema {
    /// The schema, parsed once.
    pub(crate) fn read() -> &'static Self {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| Self(serde_json::from_str(include_str!("../provider-schema.json")).unwrap()))
    }

    /// What is wrong with a resource or data source, evaluated.
    pub(crate) fn findings(&self, section: &str, kind: &str, value: &Value) -> Vec<String> {
        let block = &self.0[section][kind]["block"];
        if block.is_null() {
            return vec![format!(
                "{kind} is not in the schema; add it to scripts/provider-schema"
            )];
        }
        findings(kind, block, value)
    }

    pub(crate) fn has_tags(&self, kind: &str) -> bool {
        self.0["resource_schemas"][kind]["block"]["attributes"]["tags"].is_object()
    }
}

fn findings(path: &str, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let fields = value.as_object().unwrap();
    for (name, value) in fields.iter().filter(|(name, _)| *name != "lifecycle") {
        let path = format!("{path}.{name}");
        let nested = &schema["block_types"][name];
        if let Some(blocks) = value.as_array().filter(|_| nested.is_object()) {
            let most = nested["max_items"].as_u64().unwrap_or(u64::MAX);
            if u64::try_from(blocks.len()).unwrap() > most {
                found.push(format!(
                    "{path} occurs {} times, at most {most} is allowed",
                    blocks.len()
                ));
            }
            found.extend(
                blocks
                    .iter()
                    .flat_map(|block| findings(&path, &nested["block"], block)),
            );
            continue;
        }
        let attribute = &schema["attributes"][name];
        if attribute["optional"] != true && attribute["required"] != true {
            found.push(format!("{path} cannot be set"));
        } else if !fits(&attribute["type"], value) {
            found.push(format!("{path} must be {} and is {value}", attribute["type"]));
        }
    }
    let attributes = schema["attributes"].as_object().into_iter().flatten();
    for (name, _) in
        attributes.filter(|(name, attribute)| attribute["required"] == true && !fields.contains_key(*name))
    {
        found.push(format!("{path}.{name} is required"));
    }
    let blocks = schema["block_types"].as_object().into_iter().flatten();
    for (name, _) in
        blocks.filter(|(name, block)| block["min_items"].as_u64() > Some(0) && !fields.contains_key(*name))
    {
        found.push(format!("{path}.{name} is a required block"));
    }
    found
}

fn fits(kind: &Value, value: &Value) -> bool {
    match (kind, value) {
        (Value::String(kind), _) => match kind.as_str() {
            "string" => value.is_string(),
            "number" => value.is_number(),
            "bool" => value.is_boolean(),
            _ => true,
        },
        (Value::Array(of), Value::Array(items)) => {
            of[0] != "map" && items.iter().all(|item| fits(&of[1], item))
        }
        (Value::Array(of), Value::Object(fields)) => {
            of[0] == "map" && fields.values().all(|value| fits(&of[1], value))
        }
        _ => false,
    }
}
