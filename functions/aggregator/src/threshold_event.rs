//! What is sent when a quota reaches a threshold.

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use zae_limiter_schema::keys::{self, Key, attribute};
use zae_limiter_schema::{
    AttributeValue, EntityId, LimitName, Resource, Timestamp, usage_attribute as usage,
};

use crate::{Crossing, Position, UsageDelta};

/// That a quota has reached a threshold: the detail of an event.
///
/// The `id` is the same whenever the same threshold of the same amount is reached in the same period: receivers that get an
/// event twice tell by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThresholdEvent {
    /// 32 hexadecimal digits.
    pub id: String,
    /// The table.
    pub table: String,
    /// The entity whose quota it is.
    pub entity: EntityId,
    /// The resource.
    pub resource: Resource,
    /// The quota.
    pub limit: LimitName,
    /// The threshold, in percent of the cap.
    pub threshold: u8,
    /// What is used, in whole tokens.
    pub used: i128,
    /// What may be used in the period.
    pub cap: i128,
    /// When the period ends.
    pub period_end: Timestamp,
    /// When the threshold was reached.
    pub at: Timestamp,
    /// The ARN of the table.
    #[serde(skip)]
    pub table_arn: String,
}

impl ThresholdEvent {
    /// The source of the events.
    pub const SOURCE: &'static str = "zae-limiter";
    /// The detail type of the events.
    pub const DETAIL_TYPE: &'static str = "Quota threshold crossed";

    pub(crate) fn new(delta: &UsageDelta, crossing: &Crossing) -> Self {
        let Crossing {
            table_arn,
            limit,
            percent,
            used,
            amount,
            period_end,
        } = crossing;
        let (entity, resource) = (&delta.entity, &delta.resource);
        // None of the parts has a space. The end is in seconds, as in the key of the mark.
        let identity = format!(
            "{table_arn} {entity} {resource} {limit} {} {amount} {percent}",
            period_end.seconds()
        );
        let mut id = String::with_capacity(32);
        for byte in Sha256::digest(identity).iter().take(16) {
            // Appending to a string cannot fail.
            let _ = write!(id, "{byte:02x}");
        }
        let table = table_arn
            .split_once(":table/")
            .map_or(table_arn.as_str(), |(_, name)| name);
        Self {
            id,
            table: table.to_owned(),
            entity: entity.clone(),
            resource: resource.clone(),
            limit: limit.clone(),
            threshold: *percent,
            used: *used,
            cap: *amount,
            period_end: *period_end,
            at: delta.at,
            table_arn: table_arn.clone(),
        }
    }

    /// The detail as JSON.
    pub fn to_json(&self) -> String {
        // Text and numbers: serializing them cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The table's record that a threshold was reached. The first record of the stream that reaches it makes the mark, and only
/// that one sends the event: what is used goes up and down around a threshold when leases refund what they did not need.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdMark {
    /// Where it is.
    pub key: Key,
    /// The record that reached the threshold.
    pub position: Position,
    /// Its other attributes.
    pub set: Vec<(String, AttributeValue)>,
}

impl ThresholdMark {
    /// The mark of an event. It is kept for this many days after the period.
    pub(crate) fn new(event: &ThresholdEvent, position: &Position, retention_days: u32) -> Self {
        let text = |text: &dyn std::fmt::Display| AttributeValue::S(text.to_string());
        let number = |number: i128| AttributeValue::N(number.to_string());
        let of_period = (event.period_end, event.threshold, event.cap);
        let expires = event.period_end.seconds() + i64::from(retention_days) * 86_400;
        let set = [
            (attribute::ENTITY_ID, text(&event.entity)),
            (attribute::RESOURCE, text(&event.resource)),
            (attribute::EVENT_ID, text(&event.id)),
            (attribute::TIMESTAMP, text(&event.at)),
            (attribute::USED, number(event.used)),
            (attribute::TTL, number(expires.into())),
            (usage::SEQUENCE, text(position)),
        ];
        Self {
            key: keys::threshold(&event.entity, &event.resource, &event.limit, of_period),
            position: position.clone(),
            set: set.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        }
    }
}
