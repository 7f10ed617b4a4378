//! What a change of a bucket consumed, read from its stream record.

use std::collections::BTreeMap;

use serde_dynamo::{AttributeValue, Item};
use zae_limiter_function::EventRecord;
use zae_limiter_schema::bucket::Attr;
use zae_limiter_schema::keys::{attribute, prefix};
use zae_limiter_schema::{EntityId, LimitName, Resource, Timestamp};

use crate::crossing::crossings;
use crate::rules::Rules;
use crate::{Crossing, Digest, Link, Position};

/// What one change of a bucket consumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageDelta {
    /// The bucket's entity.
    pub entity: EntityId,
    /// The bucket's resource.
    pub resource: Resource,
    /// Where in the stream the record is.
    pub position: Position,
    /// How it joins the changes before and after it.
    pub link: Link,
    /// When it was made, which determines the windows.
    pub at: Timestamp,
    /// Whole tokens consumed per limit: negative where tokens were returned, never zero.
    pub consumed: Vec<(LimitName, i128)>,
    /// The number of acquires.
    pub events: i128,
    /// The number of refused acquires. A client writes them to the bucket from time to time.
    pub refusals: i128,
    /// The number of acquires that passed though the limits did not allow them. Written like refusals.
    pub observed: i128,
    /// The thresholds of quotas that it reached.
    pub crossings: Vec<Crossing>,
}

/// A stream record, as far as it matters for usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What was consumed, possibly nothing; absent if it is no change of a bucket.
    pub delta: Option<UsageDelta>,
    /// When the record was made.
    pub at: Option<Timestamp>,
    /// The number of limits left out because they are named like an attribute of the snapshot. Only the Python peer
    /// creates such limits.
    pub reserved: u64,
}

/// Why a record cannot be counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl UsageDelta {
    /// True if there is something to add up, even if it sums to zero.
    pub fn counts(&self) -> bool {
        self.events != 0
            || self.refusals != 0
            || self.observed != 0
            || !self.consumed.is_empty()
            || !self.crossings.is_empty()
    }
}

impl Reading {
    const NOTHING: Self = Self {
        delta: None,
        at: None,
        reserved: 0,
    };

    /// Reads a record. Deletions and records of other items have no delta; the mapping's filter leaves them out anyway.
    pub fn of(record: &EventRecord) -> Result<Self, Malformed> {
        Self::by(Rules::default(), record)
    }

    pub(crate) fn by(rules: Rules, record: &EventRecord) -> Result<Self, Malformed> {
        let change = &record.change;
        let sort_key = text(&change.keys, attribute::SK)?;
        let Some(resource) = sort_key.strip_prefix(prefix::BUCKET) else {
            return Ok(Self::NOTHING);
        };
        if !["INSERT", "MODIFY"].contains(&record.event_name.as_str()) {
            return Ok(Self::NOTHING);
        }
        let partition = text(&change.keys, attribute::PK)?;
        let entity = partition.strip_prefix(prefix::ENTITY).ok_or_else(|| {
            Malformed(format!(
                "key {partition:?} of a bucket does not start with {}",
                prefix::ENTITY
            ))
        })?;
        let entity = EntityId::parse(entity).map_err(|error| Malformed(error.to_string()))?;
        let resource = Resource::from_stored(resource).map_err(|error| Malformed(error.to_string()))?;
        let at = created(change.approximate_creation_date_time.timestamp_millis())?;
        let stream = record.event_source_arn.as_deref().unwrap_or_default();
        let number = change.sequence_number.as_deref().unwrap_or_default();
        let position = Position::by(rules, stream, number).map_err(Malformed)?;
        let (old, new) = (by_name(&change.old_image), by_name(&change.new_image));
        let link = Link {
            before: Digest::of(&old),
            after: Digest::of(&new),
        };

        let (consumed, reserved) = consumed(&old, &new)?;
        let events = events(&old, &new, &consumed)?;
        let delta = UsageDelta {
            entity,
            resource,
            position,
            at,
            consumed,
            events,
            refusals: growth(attribute::REFUSALS, &old, &new),
            observed: growth(attribute::OBSERVED, &old, &new),
            crossings: crossings(stream, &old, &new, at),
            link,
        };
        Ok(Self {
            delta: Some(delta).filter(|delta| delta.counts() || delta.link.before != delta.link.after),
            at: Some(at),
            reserved,
        })
    }
}

/// The attributes of an item, sorted by name.
pub(crate) type Attributes<'a> = BTreeMap<&'a str, &'a AttributeValue>;

fn by_name(item: &Item) -> Attributes<'_> {
    item.iter().map(|(name, value)| (name.as_str(), value)).collect()
}

fn text<'a>(item: &'a Item, name: &str) -> Result<&'a str, Malformed> {
    match item.get(name) {
        Some(AttributeValue::S(text)) => Ok(text),
        Some(_) => Err(Malformed(format!("key attribute {name} is not a string"))),
        None => Err(Malformed(format!("key attribute {name} is missing"))),
    }
}

/// The time of a record. A record without one has time zero.
fn created(millis: i64) -> Result<Timestamp, Malformed> {
    if (1..=Timestamp::MAX.millis()).contains(&millis) {
        return Ok(Timestamp::from_millis(millis));
    }
    let problem = "ApproximateCreationDateTime is missing or out of range";
    Err(Malformed(problem.to_owned()))
}

/// The increase of each limit's counter in whole tokens, and how many limits were left out because of their names.
///
/// A limit that is not in the old image counts from zero: the bucket or the limit is new. One that is not in the new image
/// was dropped and returns nothing.
fn consumed(old: &Attributes<'_>, new: &Attributes<'_>) -> Result<(Vec<(LimitName, i128)>, u64), Malformed> {
    let (mut consumed, mut reserved) = (Vec::new(), 0);
    for (name, value) in new {
        let Some(limit) = Attr::counted_limit(name) else {
            continue;
        };
        let before = old.get(name).map_or(Ok(0), |value| number(name, value))?;
        let millis = number(name, value)?
            .checked_sub(before)
            .filter(|millis| millis % 1000 == 0)
            .ok_or_else(|| Malformed(format!("{name} did not change by a whole number of tokens")))?;
        let limit = LimitName::from_stored(limit).map_err(|error| Malformed(error.to_string()))?;
        if limit.is_reserved() {
            reserved += 1;
        } else if millis != 0 {
            consumed.push((limit, millis / 1000));
        }
    }
    // Attributes sort differently: `b_a.b_tc` comes before `b_a_tc`.
    consumed.sort();
    Ok((consumed, reserved))
}

/// The number of acquires in a write. Our client counts them in `ev`. The Python peer does not: a write that consumes and
/// changes no slot of ours is one acquire.
fn events(
    old: &Attributes<'_>,
    new: &Attributes<'_>,
    consumed: &[(LimitName, i128)],
) -> Result<i128, Malformed> {
    let count = |item: &Attributes<'_>| {
        item.get(attribute::EVENTS)
            .map_or(Ok(0), |value| number(attribute::EVENTS, value))
    };
    let counted = count(new)?.saturating_sub(count(old)?);
    if counted > 0 {
        return Ok(counted);
    }
    let ours = new
        .iter()
        .any(|(name, value)| Attr::is_slot(name) && old.get(name) != Some(value));
    let peers = !ours && consumed.iter().any(|(_, tokens)| *tokens > 0);
    Ok(i128::from(peers))
}

/// How much a counter of refusals has grown. A smaller counter was reset by another program. A counter that cannot be read
/// counts as zero: what the record consumed matters more.
fn growth(counter: &str, old: &Attributes<'_>, new: &Attributes<'_>) -> i128 {
    let count = |item: &Attributes<'_>| item.get(counter).map_or(Ok(0), |value| number(counter, value));
    match (count(old), count(new)) {
        (Ok(before), Ok(after)) => after.saturating_sub(before).max(0),
        _ => 0,
    }
}

/// No bucket holds a larger number, and no sum of a batch overflows below it.
const LARGEST: i128 = 1_000_000_000_000_000_000_000_000_000_000;

/// The text of an attribute, if it is one.
pub(crate) fn text_of(value: &AttributeValue) -> Option<&str> {
    match value {
        AttributeValue::S(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn number(name: &str, value: &AttributeValue) -> Result<i128, Malformed> {
    match value {
        AttributeValue::N(digits) => digits
            .parse()
            .ok()
            .filter(|number| (-LARGEST..=LARGEST).contains(number))
            .ok_or_else(|| {
                Malformed(format!(
                    "{name} is {digits:.50}, which is not a usable whole number"
                ))
            }),
        _ => Err(Malformed(format!("{name} is not a number"))),
    }
}
