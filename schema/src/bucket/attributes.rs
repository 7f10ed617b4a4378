//! A bucket's item as typed attributes: what writes are interpreted on.

use std::fmt;
use std::sync::Arc;

use super::{Action, Condition, Epoch, LegacyClient, SlotIndex, Statement};
use crate::LimitName;
use crate::item::{AttributeValue, Item, integer};
use crate::keys::attribute;

/// The attributes that a limit has on a bucket: `b_{limit}_{field}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// `tk`: level.
    Tokens,
    /// `cp`: capacity.
    Capacity,
    /// `bx`: burst.
    Burst,
    /// `ra`: refill amount.
    Amount,
    /// `rp`: refill period.
    Period,
    /// `tc`: net total consumed.
    Consumed,
    /// `rr`: remainder of the refill division.
    Remainder,
}

impl Field {
    /// Every field.
    pub const ALL: [Self; 7] = [
        Self::Tokens,
        Self::Capacity,
        Self::Burst,
        Self::Amount,
        Self::Period,
        Self::Consumed,
        Self::Remainder,
    ];

    /// The suffix of the attribute.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Tokens => "tk",
            Self::Capacity => "cp",
            Self::Burst => "bx",
            Self::Amount => "ra",
            Self::Period => "rp",
            Self::Consumed => "tc",
            Self::Remainder => "rr",
        }
    }
}

/// The attributes that a quota has on a bucket: `q_{limit}_{field}`. The Python package ignores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotaField {
    /// `us`: used in the period.
    Used,
    /// `pe`: end of the period, in epoch milliseconds.
    PeriodEnd,
    /// `cp`: what may be used in a period.
    Amount,
    /// `sc`: the period, as text.
    Period,
    /// `tc`: net total consumed.
    Consumed,
    /// `tu`: topped up: what may be used beyond the amount in one period.
    ToppedUp,
    /// `te`: the end of that period, in epoch milliseconds.
    ToppedUpUntil,
    /// `al`: the percentages of the amount at which an event is sent, as text. Most quotas have none.
    Alerts,
}

impl QuotaField {
    /// Every field.
    pub const ALL: [Self; 8] = [
        Self::Used,
        Self::PeriodEnd,
        Self::Amount,
        Self::Period,
        Self::Consumed,
        Self::ToppedUp,
        Self::ToppedUpUntil,
        Self::Alerts,
    ];
    /// The fields that a quota always has once it is used.
    pub const REQUIRED: [Self; 5] = [
        Self::Used,
        Self::PeriodEnd,
        Self::Amount,
        Self::Period,
        Self::Consumed,
    ];

    /// The suffix of the attribute.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Used => "us",
            Self::PeriodEnd => "pe",
            Self::Amount => "cp",
            Self::Period => "sc",
            Self::Consumed => "tc",
            Self::ToppedUp => "tu",
            Self::ToppedUpUntil => "te",
            Self::Alerts => "al",
        }
    }
}

/// The attributes that a limit on calls in flight has on a bucket: `c_{limit}_{field}`. The Python package ignores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PermitField {
    /// `n`: permits held.
    Held,
    /// `cp`: how many may be held.
    Permits,
    /// `xp`: how long a permit lasts, in seconds.
    Expiry,
    /// `tc`: permits taken so far.
    Consumed,
    /// `e{seconds}`: permits held that expire then.
    Epoch(Epoch),
}

impl PermitField {
    /// Every field but the epochs.
    pub const FIXED: [Self; 4] = [Self::Held, Self::Permits, Self::Expiry, Self::Consumed];
    /// What the names of epochs start with.
    const EPOCH_PREFIX: char = 'e';

    fn parse(suffix: &str) -> Option<Self> {
        let seconds = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        };
        match suffix {
            "n" => Some(Self::Held),
            "cp" => Some(Self::Permits),
            "xp" => Some(Self::Expiry),
            "tc" => Some(Self::Consumed),
            _ => {
                let epoch = suffix.strip_prefix(Self::EPOCH_PREFIX).and_then(seconds)?;
                Some(Self::Epoch(Epoch::from_seconds(epoch)))
            }
        }
    }

    fn write_suffix(self, write: &mut impl FnMut(&str) -> fmt::Result) -> fmt::Result {
        match self {
            Self::Held => write("n"),
            Self::Permits => write("cp"),
            Self::Expiry => write("xp"),
            Self::Consumed => write("tc"),
            Self::Epoch(epoch) => write(&format!("{}{}", Self::EPOCH_PREFIX, epoch.seconds())),
        }
    }
}

/// The name of an attribute of a bucket's item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attr {
    /// `rf`: time of the last refill.
    RefilledAt,
    /// `cf`: etag.
    Etag,
    /// `ev`: acquires counted.
    Events,
    /// `rj`: acquires refused, as far as clients have written them.
    Refusals,
    /// `ro`: acquires that passed though the limits did not allow them, as far as clients have written them.
    Observed,
    /// `ttl`: when it may be deleted.
    ExpiresAt,
    /// `entity_id`.
    Entity,
    /// `resource`.
    Resource,
    /// `cascade`.
    Cascade,
    /// `parent_id`.
    Parent,
    /// `GSI2PK`.
    Gsi2Pk,
    /// `GSI2SK`.
    Gsi2Sk,
    /// `o_0` to `o_f`: a slot.
    Slot(SlotIndex),
    /// `o_{client}`: a slot of an earlier release.
    LegacySlot(LegacyClient),
    /// `b_{limit}_{field}`.
    Limit(LimitName, Field),
    /// `q_{limit}_{field}`.
    Quota(LimitName, QuotaField),
    /// `c_{limit}_{field}`.
    Permits(LimitName, PermitField),
    /// Anything else.
    Other(Arc<str>),
}

impl Attr {
    /// The attributes with one fixed name, by that name: every attribute but slots and those of limits.
    pub const FIXED: [(&'static str, Self); 12] = [
        (attribute::ENTITY_ID, Self::Entity),
        (attribute::RESOURCE, Self::Resource),
        (attribute::REFILLED_AT, Self::RefilledAt),
        (attribute::CASCADE, Self::Cascade),
        (attribute::PARENT_ID, Self::Parent),
        (attribute::TTL, Self::ExpiresAt),
        (attribute::GSI2PK, Self::Gsi2Pk),
        (attribute::GSI2SK, Self::Gsi2Sk),
        (attribute::ETAG, Self::Etag),
        (attribute::EVENTS, Self::Events),
        (attribute::REFUSALS, Self::Refusals),
        (attribute::OBSERVED, Self::Observed),
    ];

    /// What the names of slots start with.
    pub const SLOT_PREFIX: &'static str = "o_";
    /// What the names of a limit's attributes start with.
    pub const LIMIT_PREFIX: &'static str = "b_";
    /// What the names of a quota's attributes start with.
    pub const QUOTA_PREFIX: &'static str = "q_";
    /// What the names of the attributes of a limit on calls in flight start with.
    pub const PERMITS_PREFIX: &'static str = "c_";

    /// The names of all attributes of a bucket's item, its key included. `*` stands for the rest of a name.
    ///
    /// ```
    /// use zae_limiter_schema::bucket::Attr;
    ///
    /// let patterns = Attr::patterns();
    /// assert!(["PK", "rf", "o_*", "b_*"].iter().all(|name| patterns.iter().any(|pattern| pattern == name)));
    /// ```
    pub fn patterns() -> Vec<String> {
        let key = [attribute::PK, attribute::SK].map(str::to_owned);
        let fixed = Self::FIXED.iter().map(|(name, _)| (*name).to_owned());
        let prefixes = [
            Self::SLOT_PREFIX,
            Self::LIMIT_PREFIX,
            Self::QUOTA_PREFIX,
            Self::PERMITS_PREFIX,
        ]
        .map(|prefix| format!("{prefix}*"));
        key.into_iter().chain(fixed).chain(prefixes).collect()
    }

    /// True for the name of a slot.
    pub fn is_slot(name: &str) -> bool {
        name.starts_with(Self::SLOT_PREFIX)
    }

    /// The limit whose consumption an attribute counts.
    ///
    /// ```
    /// use zae_limiter_schema::bucket::Attr;
    ///
    /// assert_eq!(Attr::counted_limit("b_rpm_tc"), Some("rpm"));
    /// assert_eq!(Attr::counted_limit("q_spend_tc"), Some("spend"));
    /// assert_eq!(Attr::counted_limit("b_rpm_tk"), None);
    /// ```
    pub fn counted_limit(name: &str) -> Option<&str> {
        let prefixes = [Self::LIMIT_PREFIX, Self::QUOTA_PREFIX, Self::PERMITS_PREFIX];
        let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
        let (limit, suffix) = rest.rsplit_once('_')?;
        (suffix == Field::Consumed.suffix()).then_some(limit)
    }

    /// The quota whose thresholds an attribute holds.
    ///
    /// ```
    /// use zae_limiter_schema::bucket::Attr;
    ///
    /// assert_eq!(Attr::limit_with_alerts("q_spend_al"), Some("spend"));
    /// assert_eq!(Attr::limit_with_alerts("q_spend_us"), None);
    /// ```
    pub fn limit_with_alerts(name: &str) -> Option<&str> {
        let (limit, suffix) = name.strip_prefix(Self::QUOTA_PREFIX)?.rsplit_once('_')?;
        (suffix == QuotaField::Alerts.suffix()).then_some(limit)
    }

    /// The attribute of that name.
    pub fn parse(name: &str) -> Self {
        Self::parse_with(name, &mut Vec::new())
    }

    /// The same for several attributes of one item, which share the names of limits.
    fn parse_with(name: &str, limits: &mut Vec<LimitName>) -> Self {
        if let Some((_, fixed)) = Self::FIXED.iter().find(|(fixed, _)| *fixed == name) {
            return fixed.clone();
        }
        Self::parse_slot(name)
            .or_else(|| Self::parse_limit(name, limits))
            .unwrap_or_else(|| Self::Other(name.into()))
    }

    fn parse_slot(name: &str) -> Option<Self> {
        let id = name.strip_prefix(Self::SLOT_PREFIX)?;
        let slot = SlotIndex::parse(id).map(Self::Slot);
        slot.or_else(|| LegacyClient::parse(id).map(Self::LegacySlot))
    }

    fn parse_limit(name: &str, limits: &mut Vec<LimitName>) -> Option<Self> {
        let prefixes = [Self::LIMIT_PREFIX, Self::QUOTA_PREFIX, Self::PERMITS_PREFIX];
        let (prefix, rest) = prefixes
            .into_iter()
            .find_map(|prefix| Some((prefix, name.strip_prefix(prefix)?)))?;
        let (limit, suffix) = rest.rsplit_once('_')?;
        let mut named = || {
            if let Some(known) = limits.iter().find(|known| known.as_str() == limit) {
                return Some(known.clone());
            }
            let limit = LimitName::from_stored(limit).ok()?;
            limits.push(limit.clone());
            Some(limit)
        };
        match prefix {
            Self::QUOTA_PREFIX => {
                let field = QuotaField::ALL
                    .into_iter()
                    .find(|field| field.suffix() == suffix)?;
                Some(Self::Quota(named()?, field))
            }
            Self::PERMITS_PREFIX => {
                let field = PermitField::parse(suffix)?;
                Some(Self::Permits(named()?, field))
            }
            _ => {
                let field = Field::ALL.into_iter().find(|field| field.suffix() == suffix)?;
                Some(Self::Limit(named()?, field))
            }
        }
    }
}

/// The attribute's name in the table.
impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_name(&mut |part| f.write_str(part))
    }
}

impl Attr {
    /// Appends the attribute's name. Every write names dozens of attributes, so this goes without the formatting machinery.
    pub fn push_name(&self, text: &mut String) {
        // Appending to a string cannot fail.
        let _ = self.write_name(&mut |part| {
            text.push_str(part);
            Ok(())
        });
    }

    fn write_name(&self, write: &mut impl FnMut(&str) -> fmt::Result) -> fmt::Result {
        match self {
            Self::Slot(index) => {
                write(Self::SLOT_PREFIX)?;
                write(index.digit())
            }
            Self::LegacySlot(client) => {
                write(Self::SLOT_PREFIX)?;
                write(client.as_str())
            }
            Self::Limit(limit, field) => {
                write(Self::LIMIT_PREFIX)?;
                write(limit.as_str())?;
                write("_")?;
                write(field.suffix())
            }
            Self::Quota(limit, field) => {
                write(Self::QUOTA_PREFIX)?;
                write(limit.as_str())?;
                write("_")?;
                write(field.suffix())
            }
            Self::Permits(limit, field) => {
                write(Self::PERMITS_PREFIX)?;
                write(limit.as_str())?;
                write("_")?;
                field.write_suffix(write)
            }
            Self::Other(name) => write(name),
            fixed => {
                let named = Self::FIXED.iter().find(|(_, attr)| attr == fixed);
                write(named.map_or("", |(name, _)| name))
            }
        }
    }
}

/// The value of an attribute of a bucket's item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// A whole number.
    Number(i128),
    /// Text.
    Text(Arc<str>),
    /// True or false.
    Flag(bool),
    /// Anything that no attribute of ours holds.
    Other(AttributeValue),
}

impl Scalar {
    /// The value of a number attribute, whose digits these are.
    pub fn from_digits(digits: &str) -> Self {
        integer(digits).map_or_else(|| Self::Other(AttributeValue::N(digits.to_owned())), Self::Number)
    }
}

impl From<&AttributeValue> for Scalar {
    fn from(value: &AttributeValue) -> Self {
        match value {
            AttributeValue::N(digits) => Self::from_digits(digits),
            AttributeValue::S(text) => Self::Text(text.as_str().into()),
            AttributeValue::Bool(flag) => Self::Flag(*flag),
            other => Self::Other(other.clone()),
        }
    }
}

impl From<&Scalar> for AttributeValue {
    fn from(value: &Scalar) -> Self {
        match value {
            Scalar::Number(number) => Self::N(number.to_string()),
            Scalar::Text(text) => Self::S(text.to_string()),
            Scalar::Flag(flag) => Self::Bool(*flag),
            Scalar::Other(other) => other.clone(),
        }
    }
}

/// A bucket's item as typed attributes, its key aside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// In order, each once.
    sorted: Vec<(Attr, Scalar)>,
}

/// Attributes by name. The names of an item are all different.
impl<N: AsRef<str>> FromIterator<(N, Scalar)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (N, Scalar)>>(named: I) -> Self {
        let named = named.into_iter();
        let mut limits = Vec::new();
        let mut sorted = Vec::with_capacity(named.size_hint().1.unwrap_or_default());
        sorted.extend(named.map(|(name, value)| (Attr::parse_with(name.as_ref(), &mut limits), value)));
        sorted.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Self { sorted }
    }
}

/// Why a write was not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A condition did not hold; nothing was changed.
    Condition,
    /// DynamoDB would have called the request invalid: something that is not a number was added to.
    NotANumber,
}

impl Attributes {
    /// The attributes of an item, its key aside.
    pub fn from_item(item: &Item) -> Self {
        let attributes = item
            .iter()
            .filter(|(name, _)| ![attribute::PK, attribute::SK].contains(&name.as_str()));
        attributes
            .map(|(name, value)| (name, Scalar::from(value)))
            .collect()
    }

    fn place(&self, attr: &Attr) -> Result<usize, usize> {
        self.sorted.binary_search_by(|(present, _)| present.cmp(attr))
    }

    /// The item, its key aside.
    pub fn to_item(&self) -> Item {
        let map: std::collections::HashMap<String, AttributeValue> = self
            .iter()
            .map(|(attr, value)| (attr.to_string(), AttributeValue::from(value)))
            .collect();
        Item::from(map)
    }

    /// The value of an attribute.
    pub fn get(&self, attr: &Attr) -> Option<&Scalar> {
        let place = self.place(attr).ok()?;
        Some(&self.sorted[place].1)
    }

    /// The value of an attribute, if it is a number.
    pub fn number(&self, attr: &Attr) -> Option<i128> {
        match self.get(attr) {
            Some(Scalar::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// All attributes in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Attr, &Scalar)> {
        self.sorted.iter().map(|(attr, value)| (attr, value))
    }

    /// Sets an attribute.
    pub fn insert(&mut self, attr: Attr, value: Scalar) {
        match self.place(&attr) {
            Ok(place) => self.sorted[place].1 = value,
            Err(place) => self.sorted.insert(place, (attr, value)),
        }
    }

    /// Removes an attribute.
    pub fn remove(&mut self, attr: &Attr) {
        if let Ok(place) = self.place(attr) {
            self.sorted.remove(place);
        }
    }

    /// What the item is after the write, or why it stays as it is. An absent item is an item without attributes.
    pub fn apply(&self, statement: &Statement) -> Result<Self, Refused> {
        if !statement
            .conditions
            .iter()
            .all(|condition| self.satisfies(condition))
        {
            return Err(Refused::Condition);
        }
        let mut after = self.clone();
        for action in &statement.actions {
            match action {
                Action::Set(attr, value) => after.insert(attr.clone(), value.clone()),
                Action::Remove(attr) => after.remove(attr),
                Action::Add(attr, amount) => {
                    let before = match self.get(attr) {
                        None => 0,
                        Some(Scalar::Number(number)) => *number,
                        Some(_) => return Err(Refused::NotANumber),
                    };
                    after.insert(attr.clone(), Scalar::Number(before.saturating_add(*amount)));
                }
            }
        }
        Ok(after)
    }

    fn satisfies(&self, condition: &Condition) -> bool {
        let compare = |attr: &Attr, holds: &dyn Fn(i128) -> bool| self.number(attr).is_some_and(holds);
        match condition {
            Condition::Missing(attr) => self.get(attr).is_none(),
            Condition::Is(attr, value) => self.get(attr) == Some(value),
            Condition::IsNot(attr, value) => self.get(attr) != Some(value),
            Condition::AtLeast(attr, bound) => compare(attr, &|number| number >= *bound),
            Condition::AtMost(attr, bound) => compare(attr, &|number| number <= *bound),
            Condition::Above(attr, bound) => compare(attr, &|number| number > *bound),
            Condition::AnyOf(alternatives) => alternatives
                .iter()
                .any(|all| all.iter().all(|condition| self.satisfies(condition))),
        }
    }
}
