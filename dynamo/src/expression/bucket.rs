//! A bucket write as an UpdateItem: the only place where its conditions become text.

use std::fmt::Write as _;

use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::bucket::{Action, Attr, BucketWrite, Condition, Statement};

use super::{Placeholders, Update};

impl From<&BucketWrite> for Update {
    fn from(write: &BucketWrite) -> Self {
        Self::of(write.key.key()).statement(&write.statement())
    }
}

impl Update {
    /// Adds the actions and conditions of a statement.
    pub fn statement(mut self, statement: &Statement) -> Self {
        let mut name = String::with_capacity(32);
        for action in &statement.actions {
            self = match action {
                Action::Set(attr, value) => self.set(written(&mut name, attr), value.into()),
                Action::Remove(attr) => self.remove(written(&mut name, attr)),
                Action::Add(attr, amount) => self.add(written(&mut name, attr), number(*amount)),
            };
        }
        for condition in &statement.conditions {
            self = self.when_text(|placeholders, text| {
                Writer {
                    placeholders,
                    text,
                    name: &mut name,
                }
                .condition(condition);
            });
        }
        self
    }
}

/// The attribute's name, in a buffer that is used again.
fn written<'a>(name: &'a mut String, attr: &Attr) -> &'a str {
    name.clear();
    // Writing to a string cannot fail.
    let _ = write!(name, "{attr}");
    name
}

fn number(number: i128) -> AttributeValue {
    // Formatting 128 bits takes several times as long, and few numbers need them.
    let digits = i64::try_from(number).map_or_else(|_| number.to_string(), |number| number.to_string());
    AttributeValue::N(digits)
}

/// Conditions as text.
struct Writer<'a> {
    placeholders: &'a mut Placeholders,
    text: &'a mut String,
    name: &'a mut String,
}

impl Writer<'_> {
    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Missing(attr) => {
                self.text.push_str("attribute_not_exists(");
                self.name(attr);
                self.text.push(')');
            }
            Condition::AnyOf(alternatives) => self.any(alternatives),
            Condition::Is(attr, value) => self.compare(attr, " = ", value.into()),
            Condition::IsNot(attr, value) => {
                self.text.push_str("(attribute_not_exists(");
                self.name(attr);
                self.text.push_str(") OR ");
                self.compare(attr, " <> ", value.into());
                self.text.push(')');
            }
            Condition::AtLeast(attr, bound) => self.compare(attr, " >= ", number(*bound)),
            Condition::AtMost(attr, bound) => self.compare(attr, " <= ", number(*bound)),
            Condition::Above(attr, bound) => self.compare(attr, " > ", number(*bound)),
        }
    }

    fn name(&mut self, attr: &Attr) {
        self.placeholders.write_name(self.text, written(self.name, attr));
    }

    fn compare(&mut self, attr: &Attr, operator: &str, value: AttributeValue) {
        self.name(attr);
        self.text.push_str(operator);
        self.placeholders.write_value(self.text, value);
    }

    fn all(&mut self, conditions: &[Condition]) {
        for (index, condition) in conditions.iter().enumerate() {
            if index > 0 {
                self.text.push_str(" AND ");
            }
            self.condition(condition);
        }
    }

    /// DynamoDB rejects redundant parentheses.
    fn any(&mut self, alternatives: &[Vec<Condition>]) {
        if let [only] = alternatives {
            return self.all(only);
        }
        for (index, conditions) in alternatives.iter().enumerate() {
            self.text.push_str(if index == 0 { "(" } else { " OR " });
            if let [one] = conditions.as_slice() {
                self.condition(one);
            } else {
                self.text.push('(');
                self.all(conditions);
                self.text.push(')');
            }
        }
        self.text.push(')');
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
