//! A bucket write as an UpdateItem: the only place where its conditions become text.

use std::collections::HashMap;
use std::fmt::Write as _;

use aws_sdk_dynamodb::types::AttributeValue;
use zae_limiter_schema::bucket::{Action, Attr, Condition, Scalar, Statement};

/// The expressions of an UpdateItem and what they refer to, by index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compiled {
    pub(crate) update: String,
    pub(crate) condition: Option<String>,
    pub(crate) names: HashMap<String, String>,
    pub(crate) values: HashMap<String, AttributeValue>,
}

/// The statement as expressions. Attribute names never become part of the text.
pub(crate) fn compile(statement: &Statement) -> Compiled {
    let mut writer = Writer::default();
    let mut clauses = [
        ("SET", String::new()),
        ("REMOVE", String::new()),
        ("ADD", String::new()),
    ];
    for action in &statement.actions {
        let (clause, text) = match action {
            Action::Set(attr, value) => (0, format!("{} = {}", writer.name(attr), writer.scalar(value))),
            Action::Remove(attr) => (1, writer.name(attr)),
            Action::Add(attr, amount) => (2, format!("{} {}", writer.name(attr), writer.number(*amount))),
        };
        let parts = &mut clauses[clause].1;
        if !parts.is_empty() {
            parts.push_str(", ");
        }
        parts.push_str(&text);
    }
    let mut update = String::new();
    for (word, parts) in clauses.iter().filter(|(_, parts)| !parts.is_empty()) {
        let gap = if update.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(update, "{gap}{word} {parts}");
    }
    let condition = (!statement.conditions.is_empty()).then(|| writer.all(&statement.conditions));
    Compiled {
        update,
        condition,
        names: writer.names_map(),
        values: writer.values,
    }
}

#[derive(Default)]
struct Writer<'a> {
    names: Vec<&'a Attr>,
    values: HashMap<String, AttributeValue>,
}

impl<'a> Writer<'a> {
    fn name(&mut self, attr: &'a Attr) -> String {
        let index = self
            .names
            .iter()
            .position(|known| *known == attr)
            .unwrap_or_else(|| {
                self.names.push(attr);
                self.names.len() - 1
            });
        format!("#a{index}")
    }

    fn value(&mut self, value: AttributeValue) -> String {
        let name = format!(":v{}", self.values.len());
        self.values.insert(name.clone(), value);
        name
    }

    fn number(&mut self, number: i128) -> String {
        self.value(AttributeValue::N(number.to_string()))
    }

    fn scalar(&mut self, scalar: &Scalar) -> String {
        let value = match scalar {
            Scalar::Number(number) => AttributeValue::N(number.to_string()),
            Scalar::Text(text) => AttributeValue::S(text.to_string()),
            Scalar::Flag(flag) => AttributeValue::Bool(*flag),
            Scalar::Other(other) => crate::dynamo::to_sdk_value(other.clone()),
        };
        self.value(value)
    }

    fn all(&mut self, conditions: &'a [Condition]) -> String {
        let parts: Vec<_> = conditions
            .iter()
            .map(|condition| self.condition(condition))
            .collect();
        parts.join(" AND ")
    }

    fn condition(&mut self, condition: &'a Condition) -> String {
        match condition {
            Condition::Missing(attr) => format!("attribute_not_exists({})", self.name(attr)),
            Condition::Is(attr, value) => format!("{} = {}", self.name(attr), self.scalar(value)),
            Condition::AtLeast(attr, bound) => format!("{} >= {}", self.name(attr), self.number(*bound)),
            Condition::AtMost(attr, bound) => format!("{} <= {}", self.name(attr), self.number(*bound)),
            Condition::Above(attr, bound) => format!("{} > {}", self.name(attr), self.number(*bound)),
            Condition::AnyOf(alternatives) => self.any(alternatives),
        }
    }

    /// DynamoDB refuses parentheses that are not needed.
    fn any(&mut self, alternatives: &'a [Vec<Condition>]) -> String {
        if let [only] = alternatives {
            return self.all(only);
        }
        let parts: Vec<_> = alternatives
            .iter()
            .map(|all| match all.as_slice() {
                [one] => self.condition(one),
                several => format!("({})", self.all(several)),
            })
            .collect();
        format!("({})", parts.join(" OR "))
    }

    fn names_map(&self) -> HashMap<String, String> {
        self.names
            .iter()
            .enumerate()
            .map(|(index, attr)| (format!("#a{index}"), attr.to_string()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
