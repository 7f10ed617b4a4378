//! A snapshot update in DynamoDB's expression language.

use zae_limiter_schema::usage_attribute as usage;

use crate::{Condition, SnapshotUpdate, Value};

/// The expressions and what their placeholders stand for. Placeholders are numbered: limits may have any name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The update expression.
    pub update: String,
    /// The condition expression, unless anything goes.
    pub condition: Option<String>,
    /// `#a0` and so on, and the attributes they stand for.
    pub names: Vec<(String, String)>,
    /// `:v0` and so on, and the values they stand for.
    pub values: Vec<(String, Value)>,
}

impl From<&SnapshotUpdate> for Expression {
    fn from(update: &SnapshotUpdate) -> Self {
        let mut places = Placeholders::default();
        let set: Vec<_> = update
            .set
            .iter()
            .map(|(name, value)| format!("{} = {}", places.name(name), places.value(value.clone())))
            .collect();
        let add: Vec<_> = update
            .add
            .iter()
            .map(|(name, amount)| format!("{} {}", places.name(name), places.value(Value::Number(*amount))))
            .collect();
        let condition = match &update.condition {
            Condition::Any => None,
            Condition::Before(first) => {
                let (name, first) = (
                    places.name(usage::SEQUENCE),
                    places.value(Value::Text(first.clone())),
                );
                Some(format!("attribute_not_exists({name}) OR {name} < {first}"))
            }
            Condition::CountedTo(token) => {
                let (name, token) = (
                    places.name(usage::SEQUENCE),
                    places.value(Value::Text(token.clone())),
                );
                Some(format!("{name} = {token}"))
            }
        };
        Self {
            update: format!("SET {} ADD {}", set.join(", "), add.join(", ")),
            condition,
            names: places.names,
            values: places.values,
        }
    }
}

#[derive(Default)]
struct Placeholders {
    names: Vec<(String, String)>,
    values: Vec<(String, Value)>,
}

impl Placeholders {
    fn name(&mut self, attribute: &str) -> String {
        if let Some((placeholder, _)) = self.names.iter().find(|(_, known)| known == attribute) {
            return placeholder.clone();
        }
        let placeholder = format!("#a{}", self.names.len());
        self.names.push((placeholder.clone(), attribute.to_owned()));
        placeholder
    }

    fn value(&mut self, value: Value) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.push((placeholder.clone(), value));
        placeholder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zae_limiter_schema::keys::Key;

    #[test]
    fn placeholders_are_numbers_whatever_a_limit_is_called() {
        let update = SnapshotUpdate {
            key: Key {
                pk: "p".to_owned(),
                sk: "s".to_owned(),
            },
            condition: Condition::Before("x/1".to_owned()),
            set: vec![("_sq".to_owned(), Value::Text("x/2".to_owned()))],
            add: vec![("in-put.tokens".to_owned(), -3), ("total_events".to_owned(), 2)],
        };
        let expression = Expression::from(&update);
        assert_eq!(expression.update, "SET #a0 = :v0 ADD #a1 :v1, #a2 :v2");
        assert_eq!(
            expression.condition.as_deref(),
            Some("attribute_not_exists(#a0) OR #a0 < :v3")
        );
        assert_eq!(
            expression.names[1],
            ("#a1".to_owned(), "in-put.tokens".to_owned())
        );
        assert_eq!(
            expression.values[3],
            (":v3".to_owned(), Value::Text("x/1".to_owned()))
        );
    }
}
