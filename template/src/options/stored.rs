//! Options as stored in a template's metadata, for later deployments.

use serde_json::{Map, Value};

use super::StackOptions;

/// Options that are not stored: a stack has its own tags, and a directory belongs to one machine.
const LEFT_OUT: [&str; 2] = ["tags", "code_directory"];

impl StackOptions {
    /// Every option that has a value, as one line of JSON. It is a string, so CloudFormation does not interpret it.
    pub(crate) fn stored(&self) -> String {
        let given = serde_json::to_value(&self.given).unwrap_or_default();
        let Value::Object(given) = given else {
            return String::new();
        };
        let mut fields: Map<String, Value> = given
            .into_iter()
            .filter(|(name, value)| !value.is_null() && !LEFT_OUT.contains(&name.as_str()))
            .collect();
        // The only option that can be written in two ways.
        let windows: Vec<_> = self.snapshot_windows().iter().map(ToString::to_string).collect();
        fields.insert("snapshot_windows".to_owned(), windows.join(",").into());
        Value::Object(fields).to_string()
    }
}
