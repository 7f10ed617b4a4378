//! One conditional write, built clause by clause.

use aws_sdk_dynamodb::types::Update as SdkUpdate;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::keys::Key;

use super::{Names, Placeholders, Values};
use crate::to_sdk_key;

/// An UpdateItem of one key. Its expressions are short, because DynamoDB accepts at most 4 KB of each.
///
/// ```
/// use zae_limiter_dynamo::Update;
/// use zae_limiter_schema::AttributeValue;
/// use zae_limiter_schema::keys;
///
/// let parts = Update::of(keys::version())
///     .set("schema_version", AttributeValue::S("1.0.0".into()))
///     .when_exists("PK")
///     .into_parts();
/// assert_eq!(parts.update, "SET #0=:0");
/// assert_eq!(parts.condition.as_deref(), Some("attribute_exists(#1)"));
/// ```
#[derive(Debug)]
#[must_use = "an update does nothing until it is sent"]
pub struct Update {
    key: Key,
    placeholders: Placeholders,
    set: Vec<String>,
    remove: Vec<String>,
    add: Vec<String>,
    delete: Vec<String>,
    conditions: Vec<String>,
}

/// The texts and maps of an update.
#[derive(Debug)]
pub struct UpdateParts {
    /// The item to write.
    pub key: Key,
    /// The update expression.
    pub update: String,
    /// The condition expression, if there is a condition.
    pub condition: Option<String>,
    /// `#0` and so on.
    pub names: Names,
    /// `:0` and so on.
    pub values: Values,
}

impl Update {
    /// An update that changes nothing yet.
    pub fn of(key: Key) -> Self {
        Self {
            key,
            placeholders: Placeholders::default(),
            set: vec![],
            remove: vec![],
            add: vec![],
            delete: vec![],
            conditions: vec![],
        }
    }

    /// Sets an attribute.
    pub fn set(mut self, attribute: &str, value: AttributeValue) -> Self {
        let p = &mut self.placeholders;
        self.set.push(format!("{}={}", p.name(attribute), p.value(value)));
        self
    }

    /// Sets an attribute unless the item has it.
    pub fn set_if_absent(mut self, attribute: &str, value: AttributeValue) -> Self {
        let (name, value) = (self.placeholders.name(attribute), self.placeholders.value(value));
        self.set.push(format!("{name}=if_not_exists({name},{value})"));
        self
    }

    /// Removes an attribute.
    pub fn remove(mut self, attribute: &str) -> Self {
        self.remove.push(self.placeholders.name(attribute));
        self
    }

    /// Adds to a number or a set.
    pub fn add(mut self, attribute: &str, value: AttributeValue) -> Self {
        let p = &mut self.placeholders;
        self.add.push(format!("{} {}", p.name(attribute), p.value(value)));
        self
    }

    /// Removes members of a set.
    pub fn delete(mut self, attribute: &str, members: AttributeValue) -> Self {
        let p = &mut self.placeholders;
        self.delete
            .push(format!("{} {}", p.name(attribute), p.value(members)));
        self
    }

    /// Adds a condition. All conditions must be true.
    pub fn when(mut self, condition: impl FnOnce(&mut Placeholders) -> String) -> Self {
        self.conditions.push(condition(&mut self.placeholders));
        self
    }

    /// Only if the item has the attribute.
    pub fn when_exists(self, attribute: &str) -> Self {
        self.when(|p| format!("attribute_exists({})", p.name(attribute)))
    }

    /// Only if the item does not have the attribute.
    pub fn when_absent(self, attribute: &str) -> Self {
        self.when(|p| format!("attribute_not_exists({})", p.name(attribute)))
    }

    /// Only if the attribute still has the value that was read, or is still absent.
    pub fn when_still(self, attribute: &str, seen: Option<AttributeValue>) -> Self {
        match seen {
            Some(value) => self.when(|p| format!("{}={}", p.name(attribute), p.value(value))),
            None => self.when_absent(attribute),
        }
    }

    /// The texts and maps for a request.
    pub fn into_parts(self) -> UpdateParts {
        let clauses = [
            ("SET", self.set),
            ("REMOVE", self.remove),
            ("ADD", self.add),
            ("DELETE", self.delete),
        ];
        let clauses = clauses.into_iter().filter(|(_, parts)| !parts.is_empty());
        let clauses: Vec<_> = clauses
            .map(|(word, parts)| format!("{word} {}", parts.join(",")))
            .collect();
        let condition = (!self.conditions.is_empty()).then(|| self.conditions.join(" AND "));
        let (names, values) = self.placeholders.into_maps();
        UpdateParts {
            key: self.key,
            update: clauses.join(" "),
            condition,
            names,
            values,
        }
    }

    pub(crate) fn into_sdk(self, table: &str) -> UpdateBuilder {
        let parts = self.into_parts();
        SdkUpdate::builder()
            .table_name(table)
            .set_key(Some(to_sdk_key(&parts.key)))
            .update_expression(parts.update)
            .set_condition_expression(parts.condition)
            .set_expression_attribute_names(parts.names)
            .set_expression_attribute_values(parts.values)
    }
}

#[cfg(test)]
mod tests;
