//! A model of the table: fast, and shown to do what DynamoDB's expressions do.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use zae_limiter_function::CallError;
use zae_limiter_schema::keys::{Key, prefix};
use zae_limiter_schema::{AttributeValue, Item, UsageSnapshot};

use super::Backend;
use crate::{Condition, Progress, SnapshotUpdate, ThresholdMark, UpdateOutcome};

#[derive(Default)]
pub(crate) struct Memory(RefCell<BTreeMap<Key, HashMap<String, AttributeValue>>>);

impl Backend for Memory {
    fn update(&self, update: &SnapshotUpdate) -> Result<UpdateOutcome, CallError> {
        let mut rows = self.0.borrow_mut();
        let text = |name: &str| match rows.get(&update.key)?.get(name)? {
            AttributeValue::S(text) => Some(text.as_str()),
            _ => None,
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
                Some(AttributeValue::N(number)) => number.parse::<i128>().unwrap(),
                Some(_) => return Err(CallError::Invalid("not a number".to_owned())),
                None => 0,
            };
            row.insert(name.clone(), AttributeValue::N((before + amount).to_string()));
        }
        for (name, members) in &update.add_members {
            let all = row
                .entry(name.clone())
                .or_insert_with(|| AttributeValue::Ss(vec![]));
            if let AttributeValue::Ss(all) = all {
                all.extend(members.iter().cloned());
                all.sort();
                all.dedup();
            }
        }
        Ok(UpdateOutcome::Applied)
    }

    fn mark(&self, mark: &ThresholdMark) -> Result<bool, CallError> {
        let mut rows = self.0.borrow_mut();
        let by = rows.get(&mark.key).and_then(|row| row.get("_sq"));
        let own = AttributeValue::S(mark.position.to_string());
        let marks = by.is_none_or(|by| *by == own);
        if marks {
            rows.entry(mark.key.clone())
                .or_default()
                .extend(mark.set.iter().cloned());
        }
        Ok(marks)
    }

    fn snapshots(&self) -> Vec<UsageSnapshot> {
        let rows = self.0.borrow();
        let item = |(key, row): (&Key, &HashMap<String, AttributeValue>)| {
            let keys = [("PK", &key.pk), ("SK", &key.sk)];
            let keys = keys.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.clone())));
            let attributes = row.iter().map(|(name, value)| (name.clone(), value.clone()));
            let item: HashMap<_, _> = attributes.chain(keys).collect();
            UsageSnapshot::from_item(&Item::from(item)).unwrap()
        };
        let snapshots = rows.iter().filter(|(key, _)| key.sk.starts_with(prefix::USAGE));
        snapshots.map(item).collect()
    }
}
