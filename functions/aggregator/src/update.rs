//! The one conditional write that counts a group.

use zae_limiter_schema::keys::{self, Key, attribute};
use zae_limiter_schema::usage_attribute as usage;

use crate::{Group, Rules};

/// What a snapshot must be for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It has counted nothing from this token on: the whole group is new to it.
    Before(String),
    /// It has counted exactly up to this token.
    CountedTo(String),
    /// Anything. No correct write has this.
    #[doc(hidden)]
    Any,
}

/// How far a snapshot has counted, as an update found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The token of the last counted record.
    pub sequence: String,
    /// When the newest counted record was made, in epoch seconds.
    pub newest: Option<i64>,
}

/// The value of an attribute of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Number(i128),
}

/// A write that adds a group to its snapshot and moves the snapshot's progress on, both or neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotUpdate {
    /// The snapshot.
    pub key: Key,
    /// What it must be.
    pub condition: Condition,
    /// Attributes that get a value.
    pub set: Vec<(String, Value)>,
    /// Counters that are added to.
    pub add: Vec<(String, i128)>,
}

impl SnapshotUpdate {
    /// Counts the whole group, for a snapshot that has counted none of it.
    pub fn whole(group: &Group<'_>, retention_days: u32) -> Self {
        Self::by(Rules::default(), group, retention_days, None)
    }

    /// Counts what is left of a group, for a snapshot that has got so far.
    pub fn rest(group: &Group<'_>, retention_days: u32, progress: &Seen) -> Self {
        Self::by(Rules::default(), group, retention_days, Some(progress))
    }

    pub(crate) fn by(rules: Rules, group: &Group<'_>, retention_days: u32, seen: Option<&Seen>) -> Self {
        let condition = match seen {
            None if rules.from_first => Condition::Before(group.first().to_string()),
            None => Condition::Before(group.last().to_string()),
            Some(seen) if rules.compare_and_set => Condition::CountedTo(seen.sequence.clone()),
            Some(_) => Condition::Any,
        };
        let newest = group
            .newest()
            .max(seen.and_then(|seen| seen.newest).unwrap_or_default());
        let counters = group
            .consumed()
            .into_iter()
            .map(|(limit, tokens)| (limit.to_string(), tokens));
        Self {
            key: keys::usage(group.entity(), group.resource(), group.window),
            condition,
            set: set(group, newest, retention_days),
            add: counters
                .chain([(usage::TOTAL_EVENTS.to_owned(), group.events())])
                .collect(),
        }
    }
}

fn set(group: &Group<'_>, newest: i64, retention_days: u32) -> Vec<(String, Value)> {
    let index = keys::gsi2_usage(group.resource(), group.window, group.entity());
    // From the window's end, not from now: a row must outlive every delivery of its records, or its total and its
    // progress would start again in the middle of the window.
    let expires = group.window.end().seconds() + i64::from(retention_days) * 86_400;
    let texts = [
        (usage::ENTITY_ID, group.entity().to_string()),
        (usage::RESOURCE, group.resource().to_string()),
        (usage::WINDOW, group.window.kind().to_string()),
        (usage::WINDOW_START, group.window.start().to_string()),
        (attribute::GSI2PK, index.pk),
        (attribute::GSI2SK, index.sk),
        (usage::SEQUENCE, group.last().to_string()),
        (usage::NEWEST, newest.to_string()),
    ];
    let texts = texts
        .into_iter()
        .map(|(name, text)| (name.to_owned(), Value::Text(text)));
    texts
        .chain([(attribute::TTL.to_owned(), Value::Number(expires.into()))])
        .collect()
}
