//! A snapshot update in DynamoDB's expression language.

use zae_limiter_schema::usage_attribute as usage;

use crate::{Condition, SnapshotUpdate, Value};

/// The expressions and what their placeholders stand for. Placeholders are numbered, since limits may have any name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The update expression.
    pub update: String,
    /// The condition expression.
    pub condition: String,
    /// Placeholders such as `#a0`, and the attributes they stand for.
    pub names: Vec<(String, String)>,
    /// Placeholders such as `:v0`, and the values they stand for.
    pub values: Vec<(String, Value)>,
}

impl From<&SnapshotUpdate> for Expression {
    fn from(update: &SnapshotUpdate) -> Self {
        let mut places = Placeholders::default();
        let mut set: Vec<_> = update
            .set
            .iter()
            .map(|(name, value)| format!("{} = {}", places.name(name), places.value(value.clone())))
            .collect();
        set.extend(update.set_if_absent.iter().map(|(name, value)| {
            let (name, value) = (places.name(name), places.value(value.clone()));
            format!("{name} = if_not_exists({name}, {value})")
        }));
        let add: Vec<_> = update
            .add
            .iter()
            .map(|(name, amount)| format!("{} {}", places.name(name), places.value(Value::Number(*amount))))
            .collect();
        let condition = condition(&update.condition, &mut places);
        Self {
            update: format!("SET {} ADD {}", set.join(", "), add.join(", ")),
            condition,
            names: places.names,
            values: places.values,
        }
    }
}

fn condition(condition: &Condition, places: &mut Placeholders) -> String {
    let last = places.name(usage::SEQUENCE);
    match condition {
        Condition::New => format!("attribute_not_exists({last})"),
        Condition::Follows { first, link } => {
            let (first, link) = (places.text(first.as_str()), places.text(link.as_str()));
            let counters = places.name(usage::LINK);
            format!("attribute_not_exists({last}) OR ({last} < {first} AND {counters} = {link})")
        }
        Condition::Unchanged { last: seen, gaps } => {
            let seen = places.text(seen.as_str());
            let stored = places.name(usage::GAPS);
            match gaps {
                Some(gaps) => format!("{last} = {seen} AND {stored} = {}", places.text(gaps)),
                None => format!("{last} = {seen} AND attribute_not_exists({stored})"),
            }
        }
        #[cfg(test)]
        Condition::Before(first) => {
            let first = places.text(first.as_str());
            format!("attribute_not_exists({last}) OR {last} < {first}")
        }
        #[cfg(test)]
        Condition::Always => format!("attribute_exists({last}) OR attribute_not_exists({last})"),
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

    fn text(&mut self, text: &str) -> String {
        self.value(Value::Text(text.to_owned()))
    }

    fn value(&mut self, value: Value) -> String {
        let placeholder = format!(":v{}", self.values.len());
        self.values.push((placeholder.clone(), value));
        placeholder
    }
}

#[cfg(test)]
mod tests {
    use zae_limiter_schema::keys::Key;

    use super::*;
    use crate::{Digest, Position};

    #[test]
    fn placeholders_are_numbers_whatever_a_limit_is_called() {
        let update = SnapshotUpdate {
            key: Key {
                pk: "p".to_owned(),
                sk: "s".to_owned(),
            },
            condition: Condition::Follows {
                first: Position::stored("x/1"),
                link: Digest::stored("ab"),
            },
            set: vec![("_sq".to_owned(), Value::Text("x/2".to_owned()))],
            set_if_absent: vec![("_gp".to_owned(), Value::Text(String::new()))],
            add: vec![("in-put.tokens".to_owned(), -3), ("total_events".to_owned(), 2)],
            forgotten_gaps: 0,
        };
        let expression = Expression::from(&update);
        assert_eq!(
            expression.update,
            "SET #a0 = :v0, #a1 = if_not_exists(#a1, :v1) ADD #a2 :v2, #a3 :v3"
        );
        assert_eq!(
            expression.condition,
            "attribute_not_exists(#a0) OR (#a0 < :v4 AND #a4 = :v5)"
        );
        assert_eq!(
            expression.names[2],
            ("#a2".to_owned(), "in-put.tokens".to_owned())
        );
        assert_eq!(
            expression.values[4],
            (":v4".to_owned(), Value::Text("x/1".to_owned()))
        );
    }
}
