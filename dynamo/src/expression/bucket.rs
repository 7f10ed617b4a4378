//! A bucket write as an UpdateItem: the only place where its conditions become text.

use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::bucket::{Action, BucketWrite, Condition, Statement};

use super::{Placeholders, Update};

impl From<&BucketWrite> for Update {
    fn from(write: &BucketWrite) -> Self {
        Self::of(write.key.key()).statement(&write.statement())
    }
}

impl Update {
    /// Adds the actions and conditions of a statement.
    pub fn statement(mut self, statement: &Statement) -> Self {
        for action in &statement.actions {
            self = match action {
                Action::Set(attr, value) => self.set(&attr.to_string(), value.into()),
                Action::Remove(attr) => self.remove(&attr.to_string()),
                Action::Add(attr, amount) => self.add(&attr.to_string(), number(*amount)),
            };
        }
        for condition in &statement.conditions {
            self = self.when(|placeholders| text(placeholders, condition));
        }
        self
    }
}

fn number(number: i128) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn text(placeholders: &mut Placeholders, condition: &Condition) -> String {
    let (attr, operator, value) = match condition {
        Condition::Missing(attr) => {
            return format!("attribute_not_exists({})", placeholders.name(&attr.to_string()));
        }
        Condition::AnyOf(alternatives) => return any(placeholders, alternatives),
        Condition::Is(attr, value) => (attr, "=", value.into()),
        Condition::IsNot(attr, value) => {
            let (name, value) = (
                placeholders.name(&attr.to_string()),
                placeholders.value(value.into()),
            );
            return format!("(attribute_not_exists({name}) OR {name} <> {value})");
        }
        Condition::AtLeast(attr, bound) => (attr, ">=", number(*bound)),
        Condition::AtMost(attr, bound) => (attr, "<=", number(*bound)),
        Condition::Above(attr, bound) => (attr, ">", number(*bound)),
    };
    let name = placeholders.name(&attr.to_string());
    format!("{name} {operator} {}", placeholders.value(value))
}

fn all(placeholders: &mut Placeholders, conditions: &[Condition]) -> String {
    let parts: Vec<_> = conditions
        .iter()
        .map(|condition| text(placeholders, condition))
        .collect();
    parts.join(" AND ")
}

/// DynamoDB rejects redundant parentheses.
fn any(placeholders: &mut Placeholders, alternatives: &[Vec<Condition>]) -> String {
    if let [only] = alternatives {
        return all(placeholders, only);
    }
    let parts: Vec<_> = alternatives
        .iter()
        .map(|conditions| match conditions.as_slice() {
            [one] => text(placeholders, one),
            several => format!("({})", all(placeholders, several)),
        })
        .collect();
    format!("({})", parts.join(" OR "))
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
