//! From attributes to an image. Total: whatever the item holds, the answer is an image, a stub or an error.

use std::collections::BTreeMap;

use super::{Attr, Attributes, Etag, Field, Image, LimitImage, Params, Scalar, TokenBucket};
use crate::item::Malformed;
use crate::{EntityId, LimitName, Timestamp};

/// What an item under a bucket's key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// A bucket.
    Bucket(Image),
    /// Not a bucket yet: there is no moment of refill. The Python peer leaves such an item when it adjusts a bucket
    /// that has expired.
    Stub,
}

/// The latest `rf` that makes sense, in milliseconds.
const MAX_REFILLED_AT: i128 = Timestamp::MAX.millis() as i128;
/// The largest counter that is read.
const MAX_COUNTER: i128 = 1_000_000_000_000_000_000_000_000_000_000_000_000;

impl Attributes {
    /// The bucket that these attributes are.
    pub fn decode(&self) -> Result<Decoded, Malformed> {
        let Some(refilled_at) = self.optional_number(&Attr::RefilledAt, 0..=MAX_REFILLED_AT)? else {
            return Ok(Decoded::Stub);
        };
        let mut image = Image {
            refilled_at: Timestamp::from_millis(narrow(refilled_at)),
            etag: self
                .optional_text(&Attr::Etag)?
                .map(|text| Etag::from_stored(text.clone())),
            limits: BTreeMap::new(),
            broken: std::collections::BTreeSet::new(),
            slots: BTreeMap::new(),
            legacy_slots: BTreeMap::new(),
            events: self
                .optional_number(&Attr::Events, -MAX_COUNTER..=MAX_COUNTER)?
                .unwrap_or(0),
            expires_at: self
                .optional_number(&Attr::ExpiresAt, 0..=MAX_REFILLED_AT)?
                .map(narrow),
            cascade: matches!(self.get(&Attr::Cascade), Some(Scalar::Flag(true))),
            parent: self.parent()?,
        };
        for (attr, value) in self.iter() {
            match (attr, value) {
                (Attr::Slot(index), Scalar::Number(number)) => drop(image.slots.insert(*index, *number)),
                (Attr::LegacySlot(client), Scalar::Number(number)) => {
                    image.legacy_slots.insert(*client, *number);
                }
                (Attr::Limit(name, Field::Tokens), _) => match self.limit(name)? {
                    Some(limit) => drop(image.limits.insert(name.clone(), limit)),
                    None => drop(image.broken.insert(name.clone())),
                },
                _ => {}
            }
        }
        Ok(Decoded::Bucket(image))
    }

    /// A limit, or nothing where a parameter is missing or has no sense (the peer makes such limits).
    fn limit(&self, name: &LimitName) -> Result<Option<LimitImage>, Malformed> {
        let attr = |field| Attr::Limit(name.clone(), field);
        let param = |field| self.optional_number(&attr(field), 0..=Params::MAX_AMOUNT);
        let tokens = self.optional_number(
            &attr(Field::Tokens),
            -TokenBucket::MAX_TOKENS..=TokenBucket::MAX_TOKENS,
        )?;
        let params = match (
            param(Field::Capacity)?,
            param(Field::Burst)?,
            param(Field::Amount)?,
            self.optional_number(&attr(Field::Period), 0..=Params::MAX_PERIOD)?,
        ) {
            (Some(capacity), Some(burst), Some(amount), Some(period)) => {
                Params::new(capacity, burst, amount, period)
            }
            _ => None,
        };
        let (Some(tokens), Some(params)) = (tokens, params) else {
            return Ok(None);
        };
        let remainder = self
            .optional_number(&attr(Field::Remainder), 0..=Params::MAX_AMOUNT)?
            .unwrap_or(0);
        let consumed = self
            .optional_number(&attr(Field::Consumed), -MAX_COUNTER..=MAX_COUNTER)?
            .unwrap_or(0);
        Ok(Some(LimitImage {
            token_bucket: TokenBucket {
                params,
                tokens,
                remainder,
            },
            consumed,
        }))
    }

    fn parent(&self) -> Result<Option<EntityId>, Malformed> {
        let Some(text) = self.optional_text(&Attr::Parent)? else {
            return Ok(None);
        };
        EntityId::parse(text)
            .map(Some)
            .map_err(|error| malformed(&Attr::Parent, format!("is not usable: {error}")))
    }

    fn optional_number(
        &self,
        attr: &Attr,
        range: std::ops::RangeInclusive<i128>,
    ) -> Result<Option<i128>, Malformed> {
        match self.get(attr) {
            None => Ok(None),
            Some(Scalar::Number(number)) if range.contains(number) => Ok(Some(*number)),
            Some(Scalar::Number(number)) => Err(malformed(attr, format!("is out of range: {number}"))),
            Some(_) => Err(malformed(attr, "must be a whole number".to_owned())),
        }
    }

    fn optional_text(&self, attr: &Attr) -> Result<Option<&std::sync::Arc<str>>, Malformed> {
        match self.get(attr) {
            None => Ok(None),
            Some(Scalar::Text(text)) => Ok(Some(text)),
            Some(_) => Err(malformed(attr, "must be a string".to_owned())),
        }
    }
}

fn malformed(attr: &Attr, reason: String) -> Malformed {
    Malformed {
        record: "bucket",
        attribute: attr.to_string(),
        reason,
    }
}

/// For numbers that were just checked to be in a range that fits.
fn narrow(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
