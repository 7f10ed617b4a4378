//! A model of the table: fast, and shown to do what DynamoDB's expressions do.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use zae_limiter_function::CallFailure;
use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{AttributeValue, Item, UsageSnapshot};

use super::Backend;
use crate::{Condition, Progress, SnapshotUpdate, UpdateOutcome, Value};

#[derive(Default)]
pub(crate) struct Memory(RefCell<BTreeMap<Key, HashMap<String, Value>>>);

impl Backend for Memory {
    fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallFailure> {
        let mut rows = self.0.borrow_mut();
        let text = |name: &str| match rows.get(&update.key)?.get(name)? {
            Value::Text(text) => Some(text.as_str()),
            Value::Number(_) => None,
        };
        let counted = text("_sq");
        let holds = match &update.condition {
            Condition::New => counted.is_none(),
            Condition::Follows { first, link } => {
                counted.is_none_or(|counted| counted < first.as_str() && text("_ln") == Some(link.as_str()))
            }
            Condition::Unchanged { last, gaps } => {
                counted == Some(last.as_str()) && text("_gp") == gaps.as_deref()
            }
            Condition::Before(first) => counted.is_none_or(|counted| counted < first.as_str()),
            Condition::Always => true,
        };
        if !holds {
            return Ok(UpdateOutcome::Refused(Progress::from_attributes(text)));
        }
        let row = rows.entry(update.key.clone()).or_default();
        row.extend(update.set.iter().cloned());
        for (name, value) in &update.set_if_absent {
            row.entry(name.clone()).or_insert_with(|| value.clone());
        }
        for (name, amount) in &update.add {
            let before = match row.get(name) {
                Some(Value::Number(number)) => *number,
                Some(Value::Text(_)) => return Err(CallFailure::Rejected("not a number".to_owned())),
                None => 0,
            };
            row.insert(name.clone(), Value::Number(before + amount));
        }
        Ok(UpdateOutcome::Applied)
    }

    fn snapshots(&self) -> Vec<UsageSnapshot> {
        let rows = self.0.borrow();
        let item = |(key, row): (&Key, &HashMap<String, Value>)| {
            let convert = |value: &Value| match value {
                Value::Text(text) => AttributeValue::S(text.clone()),
                Value::Number(number) => AttributeValue::N(number.to_string()),
            };
            let keys = [("PK", &key.pk), ("SK", &key.sk)];
            let keys = keys.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.clone())));
            let attributes = row.iter().map(|(name, value)| (name.clone(), convert(value)));
            let item: HashMap<_, _> = attributes.chain(keys).collect();
            UsageSnapshot::from_item(&Item::from(item)).unwrap()
        };
        rows.iter().map(item).collect()
    }
}
