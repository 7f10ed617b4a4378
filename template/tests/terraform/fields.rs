//! Attributes, each taken once.

use serde_json::{Map, Value, json};

/// Attributes of a resource or a block, to be taken one by one.
pub(crate) struct Fields {
    of: String,
    pub(crate) left: Map<String, Value>,
}

impl Fields {
    pub(crate) fn new(of: &str, value: &Value) -> Self {
        Self {
            of: of.to_owned(),
            left: value
                .as_object()
                .unwrap_or_else(|| panic!("{of}: {value}"))
                .clone(),
        }
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    /// The only block of this name.
    pub(crate) fn block(&mut self, name: &str) -> Option<Fields> {
        let blocks = self.left.remove(name)?;
        let [block] = blocks.as_array().unwrap().as_slice() else {
            panic!("{}: several {name}", self.of)
        };
        Some(Fields::new(&format!("{}.{name}", self.of), block))
    }

    pub(crate) fn blocks(&mut self, name: &str) -> Vec<Fields> {
        let of = format!("{}.{name}", self.of);
        let blocks = self.left.remove(name).unwrap_or_else(|| json!([]));
        blocks
            .as_array()
            .unwrap()
            .iter()
            .map(|block| Fields::new(&of, block))
            .collect()
    }

    /// The rest under other names; nothing may be left.
    pub(crate) fn renamed(mut self, names: &[(&str, &str)]) -> Value {
        let mut result = Map::new();
        for (terraform, cloudformation) in names {
            result.extend(
                self.take(terraform)
                    .map(|value| ((*cloudformation).to_owned(), value)),
            );
        }
        self.done();
        Value::Object(result)
    }

    pub(crate) fn done(self) {
        assert!(
            self.left.is_empty(),
            "{} has {:?}, which CloudFormation does not",
            self.of,
            self.left
        );
    }

    pub(crate) fn expect(&mut self, name: &str, expected: &Value) {
        assert_eq!(self.take(name).as_ref(), Some(expected), "{}.{name}", self.of);
    }
}
