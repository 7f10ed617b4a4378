//! From attributes to an image. Total: every item decodes to an image, a stub or an error.

use std::collections::BTreeMap;

use super::{
    Attr, Attributes, ConcurrencyImage, Etag, Field, Image, Params, PermitField, QuotaField, QuotaImage,
    RateImage, Scalar, TokenBucket,
};
use crate::item::Malformed;
use crate::{EntityId, LimitName, Thresholds, Timestamp};

/// What an item under a bucket's key is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "an item under a bucket's key is nearly always a bucket"
)]
pub enum Decoded {
    /// A bucket.
    Bucket(Image),
    /// Not a bucket: nothing but levels and counts. The Python peer leaves such an item when it adjusts a bucket that has
    /// expired.
    Stub,
}

/// The latest `rf` that makes sense, in milliseconds.
const MAX_REFILLED_AT: i128 = Timestamp::MAX.millis() as i128;
/// The largest counter that is read.
const MAX_COUNTER: i128 = 1_000_000_000_000_000_000_000_000_000_000_000_000;

impl Attributes {
    /// The bucket that these attributes are.
    ///
    /// A bucket that has lost an attribute is an error, because it would start full. Attributes may be missing only in
    /// the ways in which the Python peer leaves them out.
    pub fn decode(&self) -> Result<Decoded, Malformed> {
        let Some(refilled_at) = self.optional_number(&Attr::RefilledAt, 0..=MAX_REFILLED_AT)? else {
            return if self.iter().all(|(attr, _)| may_be_on_a_stub(attr)) {
                Ok(Decoded::Stub)
            } else {
                Err(missing(&Attr::RefilledAt))
            };
        };
        let mut image = Image {
            refilled_at: Timestamp::from_millis(narrow(refilled_at)),
            etag: self
                .optional_text(&Attr::Etag)?
                .map(|text| Etag::from_stored(text.clone())),
            limits: BTreeMap::new(),
            quotas: BTreeMap::new(),
            permits: BTreeMap::new(),
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
        let mut with_level = None;
        for (attr, value) in self.iter() {
            match (attr, value) {
                // The peer writes neither slots nor counts of acquires.
                (Attr::Slot(_) | Attr::LegacySlot(_) | Attr::Events, _) if image.etag.is_none() => {
                    return Err(missing(&Attr::Etag));
                }
                (Attr::Slot(index), Scalar::Number(number)) => drop(image.slots.insert(*index, *number)),
                (Attr::LegacySlot(client), Scalar::Number(number)) => {
                    image.legacy_slots.insert(*client, *number);
                }
                // The level comes first among the attributes of a limit.
                (Attr::Limit(name, Field::Tokens), _) => {
                    with_level = Some(name);
                    match self.limit(name)? {
                        Some(limit) => drop(image.limits.insert(name.clone(), limit)),
                        None => drop(image.broken.insert(name.clone())),
                    }
                }
                (Attr::Limit(name, _), _) if with_level != Some(name) => self.check_without_level(name)?,
                (Attr::Quota(name, _), _) if !image.quotas.contains_key(name) => {
                    image.quotas.insert(name.clone(), self.quota(name)?);
                }
                (Attr::Permits(name, _), _) if !image.permits.contains_key(name) => {
                    image.permits.insert(name.clone(), self.permits(name)?);
                }
                _ => {}
            }
        }
        Ok(Decoded::Bucket(image))
    }

    /// A limit with a level, or nothing where it has no parameters: an adjustment of the peer leaves that of a limit that
    /// has left the bucket.
    fn limit(&self, name: &LimitName) -> Result<Option<RateImage>, Malformed> {
        let attr = |field| Attr::Limit(name.clone(), field);
        let tokens = self.optional_number(
            &attr(Field::Tokens),
            -TokenBucket::MAX_TOKENS..=TokenBucket::MAX_TOKENS,
        )?;
        let (Some(tokens), Some(params)) = (tokens, self.params(name)?) else {
            return Ok(None);
        };
        let remainder = self
            .optional_number(&attr(Field::Remainder), 0..=Params::MAX_AMOUNT)?
            .unwrap_or(0);
        let consumed = self
            .optional_number(&attr(Field::Consumed), -MAX_COUNTER..=MAX_COUNTER)?
            .unwrap_or(0);
        Ok(Some(RateImage {
            token_bucket: TokenBucket {
                params,
                tokens,
                remainder,
            },
            consumed,
        }))
    }

    /// A quota. Nobody but us writes quotas: one that has lost an attribute would start with nothing used.
    fn quota(&self, name: &LimitName) -> Result<QuotaImage, Malformed> {
        let attr = |field| Attr::Quota(name.clone(), field);
        let required = |field, range| {
            let number = self.optional_number(&attr(field), range)?;
            number.ok_or_else(|| missing(&attr(field)))
        };
        let text = self.optional_text(&attr(QuotaField::Period))?;
        let text = text.ok_or_else(|| missing(&attr(QuotaField::Period)))?;
        let period = text
            .parse()
            .map_err(|error| malformed(&attr(QuotaField::Period), format!("is not usable: {error}")))?;
        // A list that cannot be read tells nobody. It differs from the configuration, so that the next write replaces it.
        let alerts = match self.get(&attr(QuotaField::Alerts)) {
            Some(Scalar::Text(text)) => Thresholds::from_stored(text),
            _ => Thresholds::NONE,
        };
        let most = TokenBucket::MAX_TOKENS;
        let used = required(QuotaField::Used, -most..=most)?;
        let period_end = self.optional_number(&attr(QuotaField::PeriodEnd), 0..=MAX_REFILLED_AT)?;
        // Before its first period nothing is used of a quota.
        if used != 0 && period_end.is_none() {
            return Err(missing(&attr(QuotaField::PeriodEnd)));
        }
        let topped_up = self
            .optional_number(&attr(QuotaField::ToppedUp), 0..=most)?
            .unwrap_or(0);
        let topped_up_until = self.optional_number(&attr(QuotaField::ToppedUpUntil), 0..=MAX_REFILLED_AT)?;
        Ok(QuotaImage {
            amount: required(QuotaField::Amount, 1..=Params::MAX_AMOUNT)?,
            period,
            alerts,
            used,
            period_end: period_end.map(|end| Timestamp::from_millis(narrow(end))),
            consumed: required(QuotaField::Consumed, -MAX_COUNTER..=MAX_COUNTER)?,
            topped_up,
            topped_up_until: topped_up_until.map(|end| Timestamp::from_millis(narrow(end))),
        })
    }

    /// A limit on calls in flight. Nobody but us writes them.
    fn permits(&self, name: &LimitName) -> Result<ConcurrencyImage, Malformed> {
        let attr = |field| Attr::Permits(name.clone(), field);
        let required = |field, range| {
            let number = self.optional_number(&attr(field), range)?;
            number.ok_or_else(|| missing(&attr(field)))
        };
        let most = TokenBucket::MAX_TOKENS;
        let mut epochs = BTreeMap::new();
        for (found, _) in self.iter() {
            if let Attr::Permits(owner, field @ PermitField::Epoch(epoch)) = found
                && owner == name
            {
                epochs.insert(*epoch, required(*field, -most..=most)?);
            }
        }
        Ok(ConcurrencyImage {
            permits: required(PermitField::Permits, 1..=Params::MAX_AMOUNT)?,
            expires_after_seconds: narrow(required(PermitField::Expiry, 1..=Params::MAX_PERIOD)?),
            held: required(PermitField::Held, -most..=most)?,
            epochs,
            consumed: required(PermitField::Consumed, -MAX_COUNTER..=MAX_COUNTER)?,
        })
    }

    /// The peer gives a bucket the parameters of a new limit without its level and count. A limit with a count had a level;
    /// a remainder proves nothing, since the peer leaves it when it removes a limit.
    fn check_without_level(&self, name: &LimitName) -> Result<(), Malformed> {
        let attr = |field| Attr::Limit(name.clone(), field);
        if self.params(name)?.is_some() && self.get(&attr(Field::Consumed)).is_some() {
            return Err(missing(&attr(Field::Tokens)));
        }
        Ok(())
    }

    /// The parameters of a limit: all or none.
    fn params(&self, name: &LimitName) -> Result<Option<Params>, Malformed> {
        let number = |field, most| {
            let attr = Attr::Limit(name.clone(), field);
            self.optional_number(&attr, 1..=most)
        };
        let amount = |field| number(field, Params::MAX_AMOUNT);
        let params = (
            amount(Field::Capacity)?,
            amount(Field::Burst)?,
            amount(Field::Amount)?,
            number(Field::Period, Params::MAX_PERIOD)?,
        );
        let lost = match params {
            (None, None, None, None) => return Ok(None),
            (Some(capacity), Some(burst), Some(amount), Some(period)) => {
                return Ok(Params::new(capacity, burst, amount, period));
            }
            (None, ..) => Field::Capacity,
            (_, None, ..) => Field::Burst,
            (_, _, None, _) => Field::Amount,
            (.., None) => Field::Period,
        };
        Err(missing(&Attr::Limit(name.clone(), lost)))
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

/// What the adjustments of the peer, and counts of refusals, leave where a bucket has expired.
fn may_be_on_a_stub(attr: &Attr) -> bool {
    matches!(
        attr,
        Attr::Limit(_, Field::Tokens | Field::Consumed) | Attr::Refusals | Attr::Observed | Attr::Other(_)
    )
}

fn missing(attr: &Attr) -> Malformed {
    malformed(attr, "is missing".to_owned())
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
