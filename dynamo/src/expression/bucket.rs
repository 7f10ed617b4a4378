//! Bucket writes as updates: the only place where their conditions become expressions.

use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::bucket::{Action, Attr, BucketWrite, Condition, Statement};
use zae_limiter_schema::keys::Key;

use super::{Placeholders, Update};

impl From<&BucketWrite> for Update {
    fn from(write: &BucketWrite) -> Self {
        Self::of_statement(write.key.key(), &write.statement())
    }
}

impl Update {
    /// The update that carries out a statement on the item with this key.
    pub fn of_statement(key: Key, statement: &Statement) -> Self {
        let update = statement
            .actions
            .iter()
            .fold(Self::of(key), |update, action| match action {
                Action::Set(attr, value) => update.set(&attr.to_string(), value.into()),
                Action::Add(attr, amount) => update.add(&attr.to_string(), number(*amount)),
                Action::Remove(attr) => update.remove(&attr.to_string()),
            });
        if statement.conditions.is_empty() {
            return update;
        }
        update.when(|placeholders| all(placeholders, &statement.conditions))
    }
}

fn number(number: i128) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn all(p: &mut Placeholders, mut conditions: &[Condition]) -> String {
    let mut texts = Vec::with_capacity(conditions.len());
    while let [condition, rest @ ..] = conditions {
        conditions = rest;
        texts.push(match (condition, rest) {
            // DynamoDB rejects a range whose bounds are in the wrong order.
            (Condition::AtLeast(attr, least), [Condition::AtMost(same, most), rest @ ..])
                if attr == same && least <= most =>
            {
                conditions = rest;
                let name = p.name(&attr.to_string());
                format!(
                    "{name} BETWEEN {} AND {}",
                    p.value(number(*least)),
                    p.value(number(*most))
                )
            }
            _ => one(p, condition),
        });
    }
    texts.join(" AND ")
}

fn one(p: &mut Placeholders, condition: &Condition) -> String {
    match condition {
        Condition::Missing(attr) => format!("attribute_not_exists({})", p.name(&attr.to_string())),
        Condition::Is(attr, value) => compare(p, attr, "=", value.into()),
        Condition::IsNot(attr, value) => {
            let name = p.name(&attr.to_string());
            format!(
                "(attribute_not_exists({name}) OR {name}<>{})",
                p.value(value.into())
            )
        }
        Condition::AtLeast(attr, bound) => compare(p, attr, ">=", number(*bound)),
        Condition::AtMost(attr, bound) => compare(p, attr, "<=", number(*bound)),
        Condition::Above(attr, bound) => compare(p, attr, ">", number(*bound)),
        Condition::AnyOf(alternatives) => any(p, alternatives),
    }
}

fn compare(p: &mut Placeholders, attr: &Attr, operator: &str, bound: AttributeValue) -> String {
    format!("{}{operator}{}", p.name(&attr.to_string()), p.value(bound))
}

/// DynamoDB rejects redundant parentheses.
fn any(p: &mut Placeholders, alternatives: &[Vec<Condition>]) -> String {
    if let [only] = alternatives {
        return all(p, only);
    }
    let texts = alternatives.iter().map(|conditions| match conditions.as_slice() {
        [condition] => one(p, condition),
        several => format!("({})", all(p, several)),
    });
    format!("({})", texts.collect::<Vec<_>>().join(" OR "))
}

#[cfg(test)]
mod tests;
