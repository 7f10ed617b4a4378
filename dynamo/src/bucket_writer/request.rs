//! A bucket write as the body of an UpdateItem: the only place where its conditions become text.
//!
//! The body is written in one pass, without the maps and strings of the SDK's input. An attribute's name never becomes part of an
//! expression's text.

use std::ops::Range;

use zae_limiter_schema::bucket::{Action, Attr, BucketWrite, Condition, Scalar, Statement};
use zae_limiter_schema::keys::Key;

use super::json::{push_digits, push_number, push_scalar, push_text};

/// An UpdateItem of a bucket, ready to be sent.
#[derive(Debug, Clone)]
#[must_use = "a request does nothing until it is sent"]
pub struct BucketRequest {
    body: String,
    update: Range<usize>,
    condition: Range<usize>,
}

impl BucketRequest {
    /// The request of a write.
    pub fn new(table: &str, write: &BucketWrite) -> Self {
        Self::of_statement(table, &write.key.key(), &write.statement())
    }

    /// The request of a statement.
    pub fn of_statement(table: &str, key: &Key, statement: &Statement) -> Self {
        let mut writer = Writer::new();
        writer.body.push_str("{\"TableName\":");
        push_text(&mut writer.body, table);
        writer.body.push_str(",\"Key\":{\"PK\":{\"S\":");
        push_text(&mut writer.body, &key.pk);
        writer.body.push_str("},\"SK\":{\"S\":");
        push_text(&mut writer.body, &key.sk);
        writer.body.push_str("}},\"UpdateExpression\":\"");
        let update = writer.part(|writer| writer.actions(&statement.actions));
        writer.body.push('"');
        let mut condition = 0..0;
        if !statement.conditions.is_empty() {
            writer.body.push_str(",\"ConditionExpression\":\"");
            condition = writer.part(|writer| writer.all(&statement.conditions));
            writer.body.push('"');
        }
        Self {
            body: writer.finish(),
            update,
            condition,
        }
    }

    /// The update expression.
    pub fn update(&self) -> &str {
        self.body.get(self.update.clone()).unwrap_or_default()
    }

    /// The condition expression; empty if there is none.
    pub fn condition(&self) -> &str {
        self.body.get(self.condition.clone()).unwrap_or_default()
    }

    /// The whole body.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The whole body; a metered one asks for the consumed capacity too.
    pub(super) fn into_body(mut self, metered: bool) -> String {
        if metered {
            // In front of the brace that ends it.
            self.body.pop();
            self.body.push_str(",\"ReturnConsumedCapacity\":\"TOTAL\"}");
        }
        self.body
    }
}

/// A body that is being written, and what its expressions refer to.
struct Writer<'a> {
    body: String,
    /// By placeholder, `#0` and so on.
    attrs: Vec<&'a Attr>,
    /// The members of both maps.
    names: String,
    values: String,
    value_count: usize,
}

impl<'a> Writer<'a> {
    /// With room for a write of two limits.
    fn new() -> Self {
        Self {
            body: String::with_capacity(1_280),
            attrs: Vec::with_capacity(12),
            names: String::with_capacity(256),
            values: String::with_capacity(512),
            value_count: 0,
        }
    }

    /// Where in the body the part is.
    fn part(&mut self, write: impl FnOnce(&mut Self)) -> Range<usize> {
        let start = self.body.len();
        write(self);
        start..self.body.len()
    }

    fn finish(mut self) -> String {
        for (field, members) in [
            ("ExpressionAttributeNames", &self.names),
            ("ExpressionAttributeValues", &self.values),
        ] {
            if !members.is_empty() {
                self.body.push_str(",\"");
                self.body.push_str(field);
                self.body.push_str("\":{");
                self.body.push_str(members);
                self.body.push('}');
            }
        }
        self.body
            .push_str(",\"ReturnValues\":\"ALL_NEW\",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}");
        self.body
    }

    /// One clause for each kind of action.
    fn actions(&mut self, actions: &'a [Action]) {
        let sets = actions.iter().filter_map(|action| match action {
            Action::Set(attr, value) => Some((attr, value)),
            _ => None,
        });
        self.clause("SET ", sets, |writer, (attr, value)| {
            writer.name(attr);
            writer.body.push('=');
            writer.value(value);
        });
        let removes = actions.iter().filter_map(|action| match action {
            Action::Remove(attr) => Some(attr),
            _ => None,
        });
        self.clause("REMOVE ", removes, Self::name);
        let adds = actions.iter().filter_map(|action| match action {
            Action::Add(attr, amount) => Some((attr, *amount)),
            _ => None,
        });
        self.clause("ADD ", adds, |writer, (attr, amount)| {
            writer.name(attr);
            writer.body.push(' ');
            writer.number(amount);
        });
    }

    fn clause<T>(&mut self, word: &str, parts: impl Iterator<Item = T>, write: impl Fn(&mut Self, T)) {
        for (index, part) in parts.enumerate() {
            if index > 0 {
                self.body.push(',');
            } else {
                if !self.body.ends_with('"') {
                    self.body.push(' ');
                }
                self.body.push_str(word);
            }
            write(self, part);
        }
    }

    fn all(&mut self, mut conditions: &'a [Condition]) {
        while let [condition, rest @ ..] = conditions {
            conditions = rest;
            match (condition, rest) {
                (Condition::AtLeast(attr, least), [Condition::AtMost(same, most), rest @ ..])
                    // DynamoDB rejects a range without an inside.
                    if attr == same && least <= most =>
                {
                    conditions = rest;
                    self.range(attr, *least, *most);
                }
                _ => self.condition(condition),
            }
            if !conditions.is_empty() {
                self.body.push_str(" AND ");
            }
        }
    }

    fn range(&mut self, attr: &'a Attr, least: i128, most: i128) {
        self.name(attr);
        self.body.push_str(" BETWEEN ");
        self.number(least);
        self.body.push_str(" AND ");
        self.number(most);
    }

    fn condition(&mut self, condition: &'a Condition) {
        match condition {
            Condition::Missing(attr) => self.missing(attr),
            Condition::AnyOf(alternatives) => self.any(alternatives),
            Condition::Is(attr, value) => {
                self.name(attr);
                self.body.push('=');
                self.value(value);
            }
            Condition::IsNot(attr, value) => {
                self.body.push('(');
                self.missing(attr);
                self.body.push_str(" OR ");
                self.name(attr);
                self.body.push_str("<>");
                self.value(value);
                self.body.push(')');
            }
            Condition::AtLeast(attr, bound) => self.compare(attr, ">=", *bound),
            Condition::AtMost(attr, bound) => self.compare(attr, "<=", *bound),
            Condition::Above(attr, bound) => self.compare(attr, ">", *bound),
        }
    }

    fn missing(&mut self, attr: &'a Attr) {
        self.body.push_str("attribute_not_exists(");
        self.name(attr);
        self.body.push(')');
    }

    fn compare(&mut self, attr: &'a Attr, operator: &str, bound: i128) {
        self.name(attr);
        self.body.push_str(operator);
        self.number(bound);
    }

    /// DynamoDB rejects redundant parentheses.
    fn any(&mut self, alternatives: &'a [Vec<Condition>]) {
        if let [only] = alternatives {
            return self.all(only);
        }
        for (index, conditions) in alternatives.iter().enumerate() {
            self.body.push_str(if index == 0 { "(" } else { " OR " });
            if let [one] = conditions.as_slice() {
                self.condition(one);
            } else {
                self.body.push('(');
                self.all(conditions);
                self.body.push(')');
            }
        }
        self.body.push(')');
    }

    /// The placeholder of an attribute; the same one each time.
    fn name(&mut self, attr: &'a Attr) {
        let known = self.attrs.iter().position(|known| *known == attr);
        let index = known.unwrap_or_else(|| self.new_name(attr));
        self.body.push('#');
        push_index(&mut self.body, index);
    }

    fn new_name(&mut self, attr: &'a Attr) -> usize {
        let index = self.attrs.len();
        self.attrs.push(attr);
        if index > 0 {
            self.names.push(',');
        }
        self.names.push_str("\"#");
        push_index(&mut self.names, index);
        self.names.push_str("\":");
        if let Attr::Other(name) = attr {
            push_text(&mut self.names, name);
        } else {
            // All other names consist of letters, digits and a few signs.
            self.names.push('"');
            attr.push_name(&mut self.names);
            self.names.push('"');
        }
        index
    }

    fn value(&mut self, value: &Scalar) {
        self.placeholder();
        push_scalar(&mut self.values, value);
    }

    fn number(&mut self, number: i128) {
        self.placeholder();
        push_number(&mut self.values, number);
    }

    /// The placeholder of the value that comes next.
    fn placeholder(&mut self) {
        self.body.push(':');
        push_index(&mut self.body, self.value_count);
        self.values
            .push_str(if self.value_count == 0 { "\":" } else { ",\":" });
        push_index(&mut self.values, self.value_count);
        self.values.push_str("\":");
        self.value_count += 1;
    }
}

fn push_index(text: &mut String, index: usize) {
    match u8::try_from(index) {
        Ok(digit @ 0..=9) => text.push(char::from(b'0' + digit)),
        _ => push_digits(text, i128::try_from(index).unwrap_or(i128::MAX)),
    }
}
