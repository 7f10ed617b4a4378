//! What a stream record says was consumed.

use zae_limiter_function::{Image, ItemChange, Value};
use zae_limiter_schema::bucket::Attr;
use zae_limiter_schema::keys::{attribute, prefix};
use zae_limiter_schema::{EntityId, LimitName, Resource, Timestamp};

use crate::known_buckets::KnownBuckets;
use crate::rules::Rules;
use crate::{Link, Position};

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
    /// True if there is something to add up, be it that it sums to zero.
    pub fn counts(&self) -> bool {
        self.events != 0 || self.refusals != 0 || !self.consumed.is_empty()
    }
}

impl Reading {
    const NOTHING: Self = Self {
        delta: None,
        at: None,
        reserved: 0,
    };

    /// Reads a record. Deletions and records of other items have no delta; the mapping's filter leaves them out anyway.
    pub fn of(change: &ItemChange<'_>) -> Result<Self, Malformed> {
        Self::by(Rules::default(), change, &mut KnownBuckets::default())
    }

    /// Reads a record after those that have shown these buckets.
    pub(crate) fn by<'a>(
        rules: Rules,
        change: &ItemChange<'a>,
        known: &mut KnownBuckets<'a>,
    ) -> Result<Self, Malformed> {
        let keys = Image::read(change.keys).map_err(|error| Malformed(format!("Keys: {error}")))?;
        let sort_key = text(&keys, attribute::SK)?;
        let Some(resource) = sort_key.strip_prefix(prefix::BUCKET) else {
            return Ok(Self::NOTHING);
        };
        if !["INSERT", "MODIFY"].contains(&&*change.event_name) {
            return Ok(Self::NOTHING);
        }
        let partition = text(&keys, attribute::PK)?;
        let entity = partition.strip_prefix(prefix::ENTITY).ok_or_else(|| {
            Malformed(format!(
                "key {partition:?} of a bucket does not start with {}",
                prefix::ENTITY
            ))
        })?;
        let entity = EntityId::parse(entity).map_err(|error| Malformed(error.to_string()))?;
        let resource = Resource::from_stored(resource).map_err(|error| Malformed(error.to_string()))?;
        let at = created(change)?;
        let stream = change.stream_arn.as_deref().unwrap_or_default();
        let number = change.sequence_number.as_deref().unwrap_or_default();
        let position = Position::by(rules, stream, number).map_err(Malformed)?;
        let (old, new) = known.before_and_after(change).map_err(Malformed)?;
        let link = Link {
            before: old.digest.clone(),
            after: new.digest.clone(),
        };

        let (consumed, reserved) = consumed(&old.image, &new.image)?;
        let events = events(&old.image, &new.image, &consumed)?;
        let refusals = refusals(&old.image, &new.image);
        let counts = events != 0 || refusals != 0 || !consumed.is_empty() || link.before != link.after;
        Ok(Self {
            delta: counts.then_some(UsageDelta {
                entity,
                resource,
                position,
                link,
                at,
                consumed,
                events,
                refusals,
            }),
            at: Some(at),
            reserved,
        })
    }
}

fn text<'a>(item: &'a Image<'_>, name: &str) -> Result<&'a str, Malformed> {
    match item.get(name) {
        Some(Value::S(text)) => Ok(text),
        Some(_) => Err(Malformed(format!("key attribute {name} is not a string"))),
        None => Err(Malformed(format!("key attribute {name} is missing"))),
    }
}

fn created(change: &ItemChange<'_>) -> Result<Timestamp, Malformed> {
    let millis = change.made_at_millis();
    let valid = millis.filter(|millis| (1..=Timestamp::MAX.millis()).contains(millis));
    valid
        .map(Timestamp::from_millis)
        .ok_or_else(|| Malformed("ApproximateCreationDateTime is missing or out of range".to_owned()))
}

/// The increase of each limit's counter in whole tokens, and how many limits were left out because of their names.
///
/// A limit that is not in the old image counts from zero: the bucket or the limit is new. One that is not in the new image
/// was dropped and returns nothing.
fn consumed(old: &Image<'_>, new: &Image<'_>) -> Result<(Vec<(LimitName, i128)>, u64), Malformed> {
    let (mut consumed, mut reserved) = (Vec::new(), 0);
    for (name, value) in new.iter() {
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
fn events(old: &Image<'_>, new: &Image<'_>, consumed: &[(LimitName, i128)]) -> Result<i128, Malformed> {
    let count = |item: &Image<'_>| {
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

/// How much the counter of refusals has grown. One that is smaller was set back by somebody else. One that cannot be read
/// counts as none: what the record consumed matters more.
fn refusals(old: &Image<'_>, new: &Image<'_>) -> i128 {
    let count = |item: &Image<'_>| {
        item.get(attribute::REFUSALS)
            .map_or(Ok(0), |value| number(attribute::REFUSALS, value))
    };
    match (count(old), count(new)) {
        (Ok(before), Ok(after)) => after.saturating_sub(before).max(0),
        _ => 0,
    }
}

/// No bucket holds a larger number, and no sum of a batch overflows below it.
const LARGEST: i128 = 1_000_000_000_000_000_000_000_000_000_000;

fn number(name: &str, value: &Value<'_>) -> Result<i128, Malformed> {
    match value {
        Value::N(digits) => digits
            .parse()
            .ok()
            .filter(|number| (-LARGEST..=LARGEST).contains(number))
            .ok_or_else(|| {
                Malformed(format!(
                    "{name} is {:.50}, which is not a usable whole number",
                    &**digits
                ))
            }),
        _ => Err(Malformed(format!("{name} is not a number"))),
    }
}
