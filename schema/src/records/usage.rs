//! Usage snapshots: what one entity used of one resource in one hour, day or month.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use super::{Unknown, unknown};
use crate::item::{AttributeValue, Builder, Item, Malformed, Reader, integer, n, s};
use crate::{EntityId, LimitName, Resource, Timestamp, Window, WindowKind, keys};

/// Attribute names of a usage snapshot besides one counter per limit.
pub mod attribute {
    pub use crate::keys::attribute::ENTITY_ID;
    pub use crate::keys::attribute::RESOURCE;
    /// `hourly`, `daily` or `monthly`.
    pub const WINDOW: &str = "window";
    /// When the window starts.
    pub const WINDOW_START: &str = "window_start";
    /// How many acquires were counted.
    pub const TOTAL_EVENTS: &str = "total_events";
    /// How many acquires were refused, as text: the Python peer takes every number for the counter of a limit.
    pub const REFUSALS: &str = "_rf";
    /// How many acquires passed though the limits did not allow them, as text.
    pub const OBSERVED: &str = "_ro";
    /// Which thresholds of quotas were reached: a set of texts such as `spend 80`.
    pub const THRESHOLDS: &str = "_th";
    /// Up to which record of which stream it has counted.
    pub const SEQUENCE: &str = "_sq";
    /// The creation time of the newest counted record.
    pub const NEWEST: &str = "_sa";
    /// A digest of the bucket after the last counted record.
    pub const LINK: &str = "_ln";
    /// Where records before the last counted one are not counted.
    pub const GAPS: &str = "_gp";
}

/// How far a snapshot has counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    /// Stream label, `/`, and the sequence number padded to 40 digits: sorts like the stream.
    pub sequence: String,
    /// The creation time of the newest counted record, as epoch seconds in text.
    pub newest: Option<String>,
    /// A digest of the bucket after the last counted record.
    pub link: Option<String>,
    /// Where records before the last counted one are not counted.
    pub gaps: Option<String>,
}

/// What one entity used of one resource in one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSnapshot {
    /// Who.
    pub entity: EntityId,
    /// Of what.
    pub resource: Resource,
    /// When.
    pub window: Window,
    /// Whole tokens per limit; below zero where more was refunded than taken in this window.
    pub counters: BTreeMap<LimitName, i64>,
    /// How many acquires were counted.
    pub total_events: i64,
    /// How many acquires of the entity were refused.
    pub refusals: i64,
    /// How many acquires of the entity passed though the limits did not allow them, because they are only observed.
    pub observed: i64,
    /// Thresholds of quotas that were reached in the window, in percent.
    pub thresholds: BTreeMap<LimitName, BTreeSet<u8>>,
    /// When the table may forget it, in epoch seconds.
    pub ttl: Option<i64>,
    /// How far it has counted; the Python peer's snapshots have none.
    pub progress: Option<Progress>,
    /// Attributes that this version does not know.
    pub unknown: Unknown,
}

const KNOWN: [&str; 17] = [
    keys::attribute::PK,
    keys::attribute::SK,
    keys::attribute::GSI2PK,
    keys::attribute::GSI2SK,
    keys::attribute::TTL,
    attribute::ENTITY_ID,
    attribute::RESOURCE,
    attribute::WINDOW,
    attribute::WINDOW_START,
    attribute::TOTAL_EVENTS,
    attribute::REFUSALS,
    attribute::OBSERVED,
    attribute::THRESHOLDS,
    attribute::SEQUENCE,
    attribute::NEWEST,
    attribute::LINK,
    attribute::GAPS,
];

impl UsageSnapshot {
    /// The item as it is stored.
    pub fn to_item(&self) -> Item {
        let index = keys::gsi2_usage(&self.resource, self.window, &self.entity);
        let mut item = Builder::new(&keys::usage(&self.entity, &self.resource, self.window))
            .with(attribute::ENTITY_ID, s(&self.entity))
            .with(attribute::RESOURCE, s(&self.resource))
            .with(attribute::WINDOW, s(self.window.kind()))
            .with(attribute::WINDOW_START, s(self.window.start()))
            .with(attribute::TOTAL_EVENTS, n(self.total_events))
            .with(keys::attribute::GSI2PK, s(index.pk))
            .with(keys::attribute::GSI2SK, s(index.sk))
            .with_some(keys::attribute::TTL, self.ttl.map(n))
            .with_some(
                attribute::REFUSALS,
                (self.refusals != 0).then(|| s(self.refusals)),
            )
            .with_some(attribute::THRESHOLDS, self.threshold_texts())
            .with_some(
                attribute::OBSERVED,
                (self.observed != 0).then(|| s(self.observed)),
            )
            .with_some(
                attribute::SEQUENCE,
                self.progress.as_ref().map(|p| s(&p.sequence)),
            );
        if let Some(progress) = &self.progress {
            item = item
                .with_some(attribute::NEWEST, progress.newest.as_ref().map(s))
                .with_some(attribute::LINK, progress.link.as_ref().map(s))
                .with_some(attribute::GAPS, progress.gaps.as_ref().map(s));
        }
        for (name, count) in &self.counters {
            item = item.with(name.as_str(), n(*count));
        }
        for (name, value) in &self.unknown {
            item = item.with(name, value.clone());
        }
        item.build()
    }

    fn threshold_texts(&self) -> Option<AttributeValue> {
        let all = self.thresholds.iter().flat_map(|(limit, percentages)| {
            percentages.iter().map(|percent| threshold_text(limit, *percent))
        });
        let texts: Vec<_> = all.collect();
        (!texts.is_empty()).then_some(AttributeValue::Ss(texts))
    }

    /// Reads the item. Which window it is stands in its attributes: the peer writes days under the key of
    /// their first hour.
    pub fn from_item(item: &Item) -> Result<Self, Malformed> {
        let reader = Reader::new("usage snapshot", item);
        let start = reader.parsed(attribute::WINDOW_START, Timestamp::parse)?;
        let window = reader
            .parsed(attribute::WINDOW, WindowKind::from_str)?
            .window_at(start);
        if window.start() != start {
            return Err(reader.malformed(attribute::WINDOW_START, "is not the start of such a window"));
        }
        let counters = counters(&reader, item)?;
        Ok(Self {
            entity: reader.parsed(attribute::ENTITY_ID, EntityId::parse)?,
            resource: reader.parsed(attribute::RESOURCE, Resource::from_stored)?,
            window,
            unknown: unknown(item, |name| KNOWN.contains(&name) || counters.contains_key(name)),
            counters,
            total_events: reader.optional_number(attribute::TOTAL_EVENTS)?.unwrap_or(0),
            refusals: count_in_text(&reader, attribute::REFUSALS)?,
            observed: count_in_text(&reader, attribute::OBSERVED)?,
            thresholds: thresholds(item),
            ttl: reader.optional_number(keys::attribute::TTL)?,
            progress: reader
                .optional_text(attribute::SEQUENCE)?
                .map(|sequence| {
                    let text = |name| Ok(reader.optional_text(name)?.map(str::to_owned));
                    Ok(Progress {
                        sequence: sequence.to_owned(),
                        newest: text(attribute::NEWEST)?,
                        link: text(attribute::LINK)?,
                        gaps: text(attribute::GAPS)?,
                    })
                })
                .transpose()?,
        })
    }
}

/// How a set of thresholds names one of them.
pub fn threshold_text(limit: &LimitName, percent: u8) -> String {
    format!("{limit} {percent}")
}

/// The thresholds that can be read: what was used matters more than those that cannot.
fn thresholds(item: &Item) -> BTreeMap<LimitName, BTreeSet<u8>> {
    let Some(AttributeValue::Ss(texts)) = item.get(attribute::THRESHOLDS) else {
        return BTreeMap::new();
    };
    let mut thresholds: BTreeMap<_, BTreeSet<u8>> = BTreeMap::new();
    for text in texts {
        let named = text.split_once(' ');
        let parsed = named
            .and_then(|(limit, percent)| Some((LimitName::from_stored(limit).ok()?, percent.parse().ok()?)));
        if let Some((limit, percent)) = parsed {
            thresholds.entry(limit).or_default().insert(percent);
        }
    }
    thresholds
}

fn count_in_text(reader: &Reader<'_>, attribute: &str) -> Result<i64, Malformed> {
    let Some(text) = reader.optional_text(attribute)? else {
        return Ok(0);
    };
    text.parse()
        .map_err(|_| reader.malformed(attribute, "must be a whole number of 64 bits, as text"))
}

/// Every number under the name of a limit is a counter.
fn counters(reader: &Reader<'_>, item: &Item) -> Result<BTreeMap<LimitName, i64>, Malformed> {
    let mut counters = BTreeMap::new();
    for (attribute, value) in item.iter() {
        let (AttributeValue::N(digits), Ok(name)) = (value, LimitName::parse(attribute)) else {
            continue;
        };
        let count = integer(digits)
            .and_then(|count| i64::try_from(count).ok())
            .ok_or_else(|| reader.malformed(attribute, "must be a whole number of 64 bits"))?;
        counters.insert(name, count);
    }
    Ok(counters)
}
