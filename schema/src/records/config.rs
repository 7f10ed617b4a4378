//! Stored configuration: the limits of one level and how it behaves when the table cannot be reached.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{Unknown, prices, unknown};
use crate::item::{AttributeValue, Builder, Item, Malformed, Reader, n, s};
use crate::keys::attribute;
use crate::money::Prices;
use crate::{
    ConfigLevel, EntityId, InvalidLimit, Limit, LimitKind, LimitName, LimitSet, Mode, Resource, Timestamp,
    keys,
};

/// What happens to a call while the table cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUnavailable {
    /// The call goes ahead, uncounted (fail open).
    Allow,
    /// The call gets an error (fail closed).
    Block,
}

/// Text that is neither `allow` nor `block`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("on_unavailable {value:?} is invalid: it must be allow or block")]
pub struct InvalidPolicy {
    value: String,
}

impl OnUnavailable {
    /// `allow` or `block`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block => "block",
        }
    }
}

impl fmt::Display for OnUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OnUnavailable {
    type Err = InvalidPolicy;

    fn from_str(value: &str) -> Result<Self, InvalidPolicy> {
        match value {
            "allow" => Ok(Self::Allow),
            "block" => Ok(Self::Block),
            _ => Err(InvalidPolicy {
                value: value.chars().take(50).collect(),
            }),
        }
    }
}

/// Settings that exist for the whole system only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SystemSettings {
    /// How long audit events are kept, in days.
    pub audit_retention_days: Option<u32>,
    /// Whether a newer client may update the stack's functions.
    pub auto_update: Option<bool>,
    /// Whether a version mismatch is an error.
    pub strict_version: Option<bool>,
}

/// Limits that a level has until a time, in place of those that it had before and has again afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TemporaryLimits {
    /// The limits.
    pub limits: LimitSet,
    /// When they end.
    pub until: Timestamp,
}

/// The configuration that one level stores.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigRecord {
    /// The level.
    pub level: ConfigLevel,
    /// Its limits; none means that the level does not decide about limits.
    pub limits: LimitSet,
    /// Limits that apply in place of these until they end. They are stored apart: a client that does not know them has the
    /// limits that last.
    pub temporary: Option<TemporaryLimits>,
    /// Its policy, if it has one.
    pub on_unavailable: Option<OnUnavailable>,
    /// Its mode, if it has one.
    pub mode: Option<Mode>,
    /// Its prices, if it has any. Levels of entities have none.
    pub prices: Option<Prices>,
    /// How often it was written.
    pub config_version: u64,
    /// What only the system level has.
    pub system: SystemSettings,
    /// Attributes that this version does not know.
    pub unknown: Unknown,
}

const KNOWN: [&str; 14] = [
    attribute::PK,
    attribute::SK,
    attribute::GSI3PK,
    attribute::GSI3SK,
    attribute::ENTITY_ID,
    attribute::RESOURCE,
    attribute::ON_UNAVAILABLE,
    attribute::MODE,
    attribute::CONFIG_VERSION,
    attribute::LIMITS_FORMAT,
    attribute::LIMITS_VERSION,
    attribute::AUDIT_RETENTION_DAYS,
    attribute::AUTO_UPDATE,
    attribute::STRICT_VERSION,
];

const LIMIT_FIELDS: [&str; 4] = ["cp", "bx", "ra", "rp"];

/// What the names of the attributes of quotas and of limits on calls in flight start with. The Python package
/// ignores them, and no policy that lets a client write buckets covers them.
const OTHER_KINDS: [&str; 2] = ["lq_", "lc_"];

/// The parts of the attribute of limits that end.
const UNTIL: &str = "until";
const LIMITS: &str = "limits";

/// The format of levels that have other limits than rates.
const FORMAT_OF_KINDS: u32 = 2;
/// The format of levels whose limits are not enforced. A client that ignored the mode would refuse or admit calls wrongly.
const FORMAT_OF_MODES: u32 = 3;
/// The first version that knows both, for the error of those that do not.
const LIMITS_VERSION: &str = "0.1.0";

/// The name in `l_{name}_{field}`, for one of the four fields of a rate.
fn rate_attribute(attribute: &str) -> Option<(&str, &str)> {
    let (name, field) = attribute.strip_prefix("l_")?.rsplit_once('_')?;
    LIMIT_FIELDS.contains(&field).then_some((name, field))
}

/// The attribute of a limit that is stored as text. None for a rate, which has four.
fn text_attribute(limit: &Limit) -> Option<String> {
    let [quota, concurrency] = OTHER_KINDS;
    let prefix = match limit.kind() {
        LimitKind::Rate(_) => return None,
        LimitKind::Quota(_) => quota,
        LimitKind::Concurrency(_) => concurrency,
    };
    Some(format!("{prefix}{}", limit.name()))
}

/// The name in `lq_{name}` and `lc_{name}`.
fn other_kind_attribute(attribute: &str) -> Option<&str> {
    OTHER_KINDS
        .iter()
        .find_map(|prefix| attribute.strip_prefix(prefix))
}

impl ConfigRecord {
    /// A record with limits and nothing else, as first written.
    pub fn new(level: ConfigLevel, limits: LimitSet) -> Self {
        Self {
            level,
            limits,
            temporary: None,
            on_unavailable: None,
            mode: None,
            prices: None,
            config_version: 1,
            system: SystemSettings::default(),
            unknown: Unknown::new(),
        }
    }

    /// The attributes that hold limits: whole tokens and seconds for a rate, text for other kinds.
    pub fn limit_attributes(limits: &LimitSet) -> Vec<(String, AttributeValue)> {
        let mut attributes = Vec::with_capacity(4 * limits.len());
        for limit in limits {
            let name = limit.name();
            if let Some(rate) = limit.rate() {
                attributes.extend([
                    (format!("l_{name}_cp"), n(rate.capacity().get())),
                    (format!("l_{name}_bx"), n(rate.burst().get())),
                    (format!("l_{name}_ra"), n(rate.refill_amount().get())),
                    (format!("l_{name}_rp"), n(rate.refill_period_seconds())),
                ]);
            }
            attributes.extend(text_attribute(limit).map(|attribute| (attribute, s(limit.kind()))));
        }
        attributes
    }

    /// The format that a client must know to follow the level. None if every client does.
    fn format(&self) -> Option<u32> {
        let is_enforced = matches!(self.mode, None | Some(Mode::Enforce));
        let has_kinds = self.limits.iter().any(|limit| limit.rate().is_none());
        match (is_enforced, has_kinds) {
            (false, _) => Some(FORMAT_OF_MODES),
            (true, true) => Some(FORMAT_OF_KINDS),
            (true, false) => None,
        }
    }

    /// The limits that apply at this time.
    ///
    /// ```
    /// use zae_limiter_schema::{ConfigLevel, ConfigRecord, LimitSet, TemporaryLimits, Timestamp};
    ///
    /// let limits = |text: &str| LimitSet::new([text.parse().unwrap()]).unwrap();
    /// let noon = Timestamp::parse("2026-05-15T12:00:00Z")?;
    /// let mut record = ConfigRecord::new(ConfigLevel::System, limits("rpm:100"));
    /// record.temporary = Some(TemporaryLimits { limits: limits("rpm:500"), until: noon });
    /// assert_eq!(*record.limits_at(noon.plus_millis(-1)), limits("rpm:500"));
    /// assert_eq!(*record.limits_at(noon), limits("rpm:100"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limits_at(&self, now: Timestamp) -> &LimitSet {
        self.temporary_at(now)
            .map_or(&self.limits, |temporary| &temporary.limits)
    }

    /// The limits that end, if they have not ended at this time.
    pub fn temporary_at(&self, now: Timestamp) -> Option<&TemporaryLimits> {
        self.temporary.as_ref().filter(|temporary| now < temporary.until)
    }

    /// True for an attribute that holds part of a limit.
    pub fn is_limit_attribute(attribute: &str) -> bool {
        attribute == attribute::TEMPORARY_LIMITS
            || rate_attribute(attribute).is_some()
            || other_kind_attribute(attribute).is_some()
    }

    /// The item as it is stored.
    pub fn to_item(&self) -> Item {
        let mut item = Builder::new(&keys::config(&self.level))
            .with_some(attribute::ENTITY_ID, self.level.entity().map(s))
            .with_some(attribute::RESOURCE, self.level.resource_key().map(s))
            .with_some(attribute::ON_UNAVAILABLE, self.on_unavailable.map(s))
            .with_some(attribute::MODE, self.mode.map(s))
            .with_some(attribute::LIMITS_FORMAT, self.format().map(n))
            .with_some(
                attribute::LIMITS_VERSION,
                self.format().map(|_| s(LIMITS_VERSION)),
            )
            .with(attribute::CONFIG_VERSION, n(self.config_version))
            .with_some(
                attribute::AUDIT_RETENTION_DAYS,
                self.system.audit_retention_days.map(n),
            )
            .with_some(
                attribute::AUTO_UPDATE,
                self.system.auto_update.map(AttributeValue::Bool),
            )
            .with_some(
                attribute::STRICT_VERSION,
                self.system.strict_version.map(AttributeValue::Bool),
            );
        if let (Some(entity), Some(resource)) = (self.level.entity(), self.level.resource_key()) {
            item = item
                .with(attribute::GSI3PK, s(keys::gsi3_partition(resource)))
                .with(attribute::GSI3SK, s(entity));
        }
        item = prices::write(item, self.prices.as_ref());
        for (name, value) in Self::limit_attributes(&self.limits) {
            item = item.with(name, value);
        }
        let temporary = self.temporary.as_ref().map(temporary_attribute);
        item = item.with_some(attribute::TEMPORARY_LIMITS, temporary);
        for (name, value) in &self.unknown {
            item = item.with(name, value.clone());
        }
        item.build()
    }

    /// Reads the item; the level is read from its key.
    pub fn from_item(item: &Item) -> Result<Self, Malformed> {
        let reader = Reader::new("configuration", item);
        Ok(Self {
            level: level_of_key(&reader)?,
            limits: limits(&reader, item)?,
            temporary: temporary_limits(&reader)?,
            on_unavailable: reader.optional_parsed(attribute::ON_UNAVAILABLE, OnUnavailable::from_str)?,
            mode: reader.optional_parsed(attribute::MODE, Mode::from_str)?,
            prices: prices::read(&reader)?,
            config_version: reader.optional_number(attribute::CONFIG_VERSION)?.unwrap_or(0),
            system: SystemSettings {
                audit_retention_days: reader.optional_number(attribute::AUDIT_RETENTION_DAYS)?,
                auto_update: reader.optional_flag(attribute::AUTO_UPDATE)?,
                strict_version: reader.optional_flag(attribute::STRICT_VERSION)?,
            },
            unknown: unknown_of(item),
        })
    }

    /// What can be read of an item that [`from_item`](Self::from_item) refuses, so that it can be repaired: limits only if
    /// all of them can be read, and of the rest each part that can.
    pub fn readable(level: ConfigLevel, item: &Item) -> Self {
        let reader = Reader::new("configuration", item);
        Self {
            level,
            limits: limits(&reader, item).unwrap_or_default(),
            temporary: temporary_limits(&reader).unwrap_or_default(),
            on_unavailable: reader
                .optional_parsed(attribute::ON_UNAVAILABLE, OnUnavailable::from_str)
                .unwrap_or_default(),
            mode: reader
                .optional_parsed(attribute::MODE, Mode::from_str)
                .unwrap_or_default(),
            prices: prices::read(&reader).unwrap_or_default(),
            config_version: reader
                .optional_number(attribute::CONFIG_VERSION)
                .unwrap_or_default()
                .unwrap_or(0),
            system: SystemSettings {
                audit_retention_days: reader
                    .optional_number(attribute::AUDIT_RETENTION_DAYS)
                    .unwrap_or_default(),
                auto_update: reader.optional_flag(attribute::AUTO_UPDATE).unwrap_or_default(),
                strict_version: reader
                    .optional_flag(attribute::STRICT_VERSION)
                    .unwrap_or_default(),
            },
            unknown: unknown_of(item),
        }
    }
}

fn unknown_of(item: &Item) -> Unknown {
    unknown(item, |name| {
        KNOWN.contains(&name) || prices::KNOWN.contains(&name) || ConfigRecord::is_limit_attribute(name)
    })
}

fn level_of_key(reader: &Reader<'_>) -> Result<ConfigLevel, Malformed> {
    let (pk, sk) = (reader.text(attribute::PK)?, reader.text(attribute::SK)?);
    let entity = |id: &str| {
        EntityId::parse(id).map_err(|e| reader.malformed(attribute::PK, format!("is not usable: {e}")))
    };
    let resource = |attribute: &str, name: &str| {
        Resource::from_stored(name).map_err(|e| reader.malformed(attribute, format!("is not usable: {e}")))
    };
    if pk == keys::SYSTEM_PARTITION && sk == keys::CONFIG {
        return Ok(ConfigLevel::System);
    }
    if let (Some(name), keys::CONFIG) = (pk.strip_prefix(keys::prefix::RESOURCE), sk) {
        return Ok(ConfigLevel::Resource(resource(attribute::PK, name)?));
    }
    match (
        pk.strip_prefix(keys::prefix::ENTITY),
        sk.strip_prefix(keys::prefix::CONFIG),
    ) {
        (Some(id), Some(ConfigLevel::DEFAULT_RESOURCE)) => Ok(ConfigLevel::EntityDefault(entity(id)?)),
        (Some(id), Some(name)) => Ok(ConfigLevel::Entity(entity(id)?, resource(attribute::SK, name)?)),
        _ => Err(reader.malformed(attribute::SK, "is not the key of a configuration")),
    }
}

fn limits(reader: &Reader<'_>, item: &Item) -> Result<LimitSet, Malformed> {
    let format: Option<u32> = reader.optional_number(attribute::LIMITS_FORMAT)?;
    if let Some(format) = format.filter(|format| *format > FORMAT_OF_MODES) {
        let version = reader.optional_text(attribute::LIMITS_VERSION).ok().flatten();
        let needed = version.map_or_else(
            || "the version that wrote them, or a later one".to_owned(),
            |version| format!("zae-limiter {version} or later"),
        );
        let reason = format!(
            "is {format}: this level has limits of a kind, or a mode, that zae-limiter {} does not know; use {needed}",
            env!("CARGO_PKG_VERSION")
        );
        return Err(reader.malformed(attribute::LIMITS_FORMAT, reason));
    }
    let rates: BTreeSet<&str> = item
        .keys()
        .filter_map(|a| rate_attribute(a))
        .filter(|(_, field)| *field == "cp")
        .map(|(name, _)| name)
        .collect();
    let rates = rates.into_iter().map(|name| {
        let attribute = |field: &str| format!("l_{name}_{field}");
        let unusable = |error: InvalidLimit| {
            reader.malformed(&attribute(at_fault(&error)), format!("is not usable: {error}"))
        };
        Limit::from_parts(
            LimitName::from_stored(name).map_err(|error| unusable(error.into()))?,
            reader.number(&attribute("cp"))?,
            reader.number(&attribute("bx"))?,
            reader.number(&attribute("ra"))?,
            reader.number(&attribute("rp"))?,
        )
        .map_err(unusable)
    });
    let others = item.keys().filter_map(|attribute| {
        let name = other_kind_attribute(attribute)?;
        Some(limit_of_other_kind(reader, attribute, name))
    });
    let limits = rates.chain(others).collect::<Result<Vec<_>, _>>()?;
    LimitSet::new(limits).map_err(|e| reader.malformed(attribute::SK, e.to_string()))
}

/// Limits that end, in one attribute: all of them or none.
fn temporary_attribute(temporary: &TemporaryLimits) -> AttributeValue {
    let limits = temporary.limits.iter();
    let limits = limits.map(|limit| (limit.name().to_string(), s(limit.kind())));
    let parts = [
        (UNTIL.to_owned(), n(temporary.until.millis())),
        (LIMITS.to_owned(), AttributeValue::M(limits.collect())),
    ];
    AttributeValue::M(parts.into_iter().collect())
}

fn temporary_limits(reader: &Reader<'_>) -> Result<Option<TemporaryLimits>, Malformed> {
    let attribute = attribute::TEMPORARY_LIMITS;
    let Some(parts) = reader.optional_map(attribute)? else {
        return Ok(None);
    };
    let until = match parts.get(UNTIL) {
        Some(AttributeValue::N(digits)) => digits.parse().ok().map(Timestamp::from_millis),
        _ => None,
    };
    let until = until.ok_or_else(|| reader.malformed(attribute, "has no time at which it ends"))?;
    let Some(AttributeValue::M(limits)) = parts.get(LIMITS) else {
        return Err(reader.malformed(attribute, "has no limits"));
    };
    let unusable = |error: InvalidLimit| reader.malformed(attribute, format!("is not usable: {error}"));
    let limit = |(name, kind): (&String, &AttributeValue)| {
        let AttributeValue::S(kind) = kind else {
            return Err(reader.malformed(attribute, "has a limit that is no text"));
        };
        let name = LimitName::from_stored(name).map_err(|error| unusable(error.into()))?;
        let kind = LimitKind::parse_for(&name, kind).map_err(unusable)?;
        Ok(Limit::from_kind(name, kind))
    };
    let limits = limits.iter().map(limit).collect::<Result<Vec<_>, _>>()?;
    let limits = LimitSet::new(limits).map_err(|error| reader.malformed(attribute, error.to_string()))?;
    Ok(Some(TemporaryLimits { limits, until }))
}

/// The limit in `lq_{name}` or `lc_{name}`.
fn limit_of_other_kind(reader: &Reader<'_>, attribute: &str, name: &str) -> Result<Limit, Malformed> {
    let text = reader.text(attribute)?;
    let unusable = |error: InvalidLimit| reader.malformed(attribute, format!("is not usable: {error}"));
    let name = LimitName::from_stored(name).map_err(|error| unusable(error.into()))?;
    let kind = LimitKind::parse_for(&name, text).map_err(unusable)?;
    let limit = Limit::from_kind(name, kind);
    if text_attribute(&limit).as_deref() != Some(attribute) {
        let reason = format!(
            "is not usable: it holds a {}, which has another attribute",
            limit.kind().as_str()
        );
        return Err(reader.malformed(attribute, reason));
    }
    Ok(limit)
}

/// The suffix of the attribute that an error is about.
fn at_fault(error: &InvalidLimit) -> &'static str {
    match error {
        InvalidLimit::Number { field: "burst", .. } => "bx",
        InvalidLimit::Number {
            field: "refill amount",
            ..
        } => "ra",
        InvalidLimit::Number {
            field: "refill period",
            ..
        } => "rp",
        _ => "cp",
    }
}
