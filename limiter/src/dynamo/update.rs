//! One conditional write, put together clause by clause.

use aws_sdk_dynamodb::types::Update as SdkUpdate;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use zae_limiter_schema::AttributeValue;
use zae_limiter_schema::keys::Key;

use super::convert::to_sdk_key;
use super::placeholders::{Names, Placeholders, Values};

/// An UpdateItem of one key.
#[derive(Debug)]
pub(crate) struct Update {
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
pub(crate) struct UpdateParts {
    pub(crate) key: Key,
    pub(crate) update: String,
    pub(crate) condition: Option<String>,
    pub(crate) names: Names,
    pub(crate) values: Values,
}

impl Update {
    pub(crate) fn of(key: Key) -> Self {
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

    fn pair(&mut self, attribute: &str, value: AttributeValue) -> (String, String) {
        (self.placeholders.name(attribute), self.placeholders.value(value))
    }

    pub(crate) fn set(mut self, attribute: &str, value: AttributeValue) -> Self {
        let (name, value) = self.pair(attribute, value);
        self.set.push(format!("{name} = {value}"));
        self
    }

    pub(crate) fn remove(mut self, attribute: &str) -> Self {
        let name = self.placeholders.name(attribute);
        self.remove.push(name);
        self
    }

    /// Adds to a number or a set.
    pub(crate) fn add(mut self, attribute: &str, value: AttributeValue) -> Self {
        let (name, value) = self.pair(attribute, value);
        self.add.push(format!("{name} {value}"));
        self
    }

    /// Takes members out of a set.
    pub(crate) fn delete(mut self, attribute: &str, members: AttributeValue) -> Self {
        let (name, value) = self.pair(attribute, members);
        self.delete.push(format!("{name} {value}"));
        self
    }

    pub(crate) fn when(mut self, condition: impl FnOnce(&mut Placeholders) -> String) -> Self {
        self.conditions.push(condition(&mut self.placeholders));
        self
    }

    pub(crate) fn when_exists(self, attribute: &str) -> Self {
        self.when(|p| format!("attribute_exists({})", p.name(attribute)))
    }

    pub(crate) fn when_absent(self, attribute: &str) -> Self {
        self.when(|p| format!("attribute_not_exists({})", p.name(attribute)))
    }

    /// Only while the attribute is what was seen, or still absent.
    pub(crate) fn when_still(self, attribute: &str, seen: Option<AttributeValue>) -> Self {
        match seen {
            Some(value) => self.when(|p| format!("{} = {}", p.name(attribute), p.value(value))),
            None => self.when_absent(attribute),
        }
    }

    pub(crate) fn into_parts(self) -> UpdateParts {
        let clause = |word: &str, parts: &[String]| {
            if parts.is_empty() {
                String::new()
            } else {
                format!("{word} {} ", parts.join(", "))
            }
        };
        let update = [
            clause("SET", &self.set),
            clause("REMOVE", &self.remove),
            clause("ADD", &self.add),
            clause("DELETE", &self.delete),
        ]
        .concat();
        let condition = (!self.conditions.is_empty()).then(|| self.conditions.join(" AND "));
        let (names, values) = self.placeholders.into_maps();
        UpdateParts {
            key: self.key,
            update: update.trim_end().to_owned(),
            condition,
            names,
            values,
        }
    }

    pub(super) fn into_sdk(self, table: &str) -> UpdateBuilder {
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
mod tests {
    use super::*;

    #[test]
    fn clauses_and_placeholders_are_by_index() {
        let key = Key {
            pk: "SYSTEM#".to_owned(),
            sk: "#CONFIG".to_owned(),
        };
        let parts = Update::of(key)
            .set("l_a-b.c_cp", AttributeValue::N("1".to_owned()))
            .remove("gone")
            .add("config_version", AttributeValue::N("1".to_owned()))
            .when_still("config_version", Some(AttributeValue::N("4".to_owned())))
            .when_exists("PK")
            .into_parts();
        assert_eq!(parts.update, "SET #a0 = :v0 REMOVE #a1 ADD #a2 :v1");
        assert_eq!(
            parts.condition.as_deref(),
            Some("#a2 = :v2 AND attribute_exists(#a3)")
        );
        assert_eq!(
            parts.names.map(|names| names["#a0"].clone()).as_deref(),
            Some("l_a-b.c_cp")
        );
    }
}
