//! A model of the table: fast, and shown to do what DynamoDB's expressions do.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use zae_limiter_aggregator::{Answer, Condition, Seen, SnapshotUpdate, Value};
use zae_limiter_function::CallFailure;
use zae_limiter_schema::keys::Key;
use zae_limiter_schema::{AttributeValue, Item, UsageSnapshot};

use super::Backend;

#[derive(Default)]
pub(crate) struct Memory(RefCell<BTreeMap<Key, HashMap<String, Value>>>);

impl Backend for Memory {
    fn update(&self, update: &SnapshotUpdate) -> Result<Answer, CallFailure> {
        let mut rows = self.0.borrow_mut();
        let text = |name: &str| match rows.get(&update.key)?.get(name)? {
            Value::Text(text) => Some(text.clone()),
            Value::Number(_) => None,
        };
        let counted = text("_sq");
        let holds = match &update.condition {
            Condition::Any => true,
            Condition::Before(first) => counted.as_ref().is_none_or(|counted| counted < first),
            Condition::CountedTo(token) => counted.as_ref() == Some(token),
        };
        if !holds {
            let newest = text("_sa").and_then(|seconds| seconds.parse().ok());
            return Ok(Answer::Refused(counted.map(|sequence| Seen { sequence, newest })));
        }
        let row = rows.entry(update.key.clone()).or_default();
        row.extend(update.set.iter().cloned());
        for (name, amount) in &update.add {
            let before = match row.get(name) {
                Some(Value::Number(number)) => *number,
                Some(Value::Text(_)) => return Err(CallFailure::Rejected("not a number".to_owned())),
                None => 0,
            };
            row.insert(name.clone(), Value::Number(before + amount));
        }
        Ok(Answer::Done)
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
