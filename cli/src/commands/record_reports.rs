//! Reports on table records: configurations and entities.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use zae_limiter::money::{Prices, dollars};
use zae_limiter::records::{AttributeValue, ConfigRecord, EntityRecord, TemporaryLimits, to_json};
use zae_limiter::{
    ConfigLevel, EntityId, LevelKind, Limit, LimitKind, LimitName, Mode, OnUnavailable, Timestamp, Tokens,
};

use crate::command_output::Text;
use crate::output::{Align, TextTable, View, grouped};

/// Limits that end.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TemporaryReport {
    pub(crate) limits: Vec<Limit>,
    pub(crate) until: Timestamp,
}

impl From<&TemporaryLimits> for TemporaryReport {
    fn from(temporary: &TemporaryLimits) -> Self {
        Self {
            limits: temporary.limits.iter().cloned().collect(),
            until: temporary.until,
        }
    }
}

/// The configuration of a level.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ConfigReport {
    pub(crate) level: LevelKind,
    pub(crate) entity_id: Option<EntityId>,
    /// The resource, or `_default_`.
    pub(crate) resource: Option<String>,
    /// Whether limits, `on_unavailable`, a mode or prices are stored.
    pub(crate) configured: bool,
    pub(crate) limits: Vec<Limit>,
    /// Limits that apply in place of these until they end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temporary_limits: Option<TemporaryReport>,
    pub(crate) on_unavailable: Option<OnUnavailable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// The number of times it was written.
    pub(crate) config_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prices: Option<Prices>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audit_retention_days: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auto_update: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strict_version: Option<bool>,
}

impl ConfigReport {
    pub(crate) fn new(level: &ConfigLevel, record: Option<&ConfigRecord>) -> Self {
        let system = record.map(|record| record.system).unwrap_or_default();
        let temporary = record.and_then(|record| record.temporary_at(crate::parse::now()));
        Self {
            level: level.kind(),
            entity_id: level.entity().cloned(),
            resource: level.resource_key().map(str::to_owned),
            temporary_limits: temporary.map(TemporaryReport::from),
            configured: record.is_some_and(|record| {
                !record.limits.is_empty()
                    || temporary.is_some()
                    || record.on_unavailable.is_some()
                    || record.mode.is_some()
                    || record.prices.is_some()
            }),
            limits: record
                .map(|record| record.limits.iter().cloned().collect())
                .unwrap_or_default(),
            on_unavailable: record.and_then(|record| record.on_unavailable),
            mode: record.and_then(|record| record.mode),
            config_version: record.map(|record| record.config_version),
            prices: record.and_then(|record| record.prices.clone()),
            audit_retention_days: system.audit_retention_days,
            auto_update: system.auto_update,
            strict_version: system.strict_version,
        }
    }
}

impl Text for ConfigReport {
    fn text(&self, view: &View) -> String {
        let money = Prices::money_limit_of(self.prices.as_ref());
        let mut lines = vec![];
        if self.limits.is_empty() {
            lines.push("no limits are set at this level".to_owned());
        } else {
            lines.push(limit_table(&self.limits, &money).render(view));
        }
        if let Some(temporary) = &self.temporary_limits {
            lines.push(format!(
                "until {}, in place of these:",
                view.zone.show(temporary.until)
            ));
            lines.push(limit_table(&temporary.limits, &money).render(view));
        }
        let settings = [
            (
                "on_unavailable",
                self.on_unavailable.map(|policy| policy.to_string()),
            ),
            ("mode", self.mode.map(|mode| mode.to_string())),
            (
                "audit_retention_days",
                self.audit_retention_days.map(|days| days.to_string()),
            ),
            ("auto_update", self.auto_update.map(|flag| flag.to_string())),
            ("strict_version", self.strict_version.map(|flag| flag.to_string())),
            ("prices", self.prices.as_ref().map(price_text)),
        ];
        lines.extend(
            settings
                .into_iter()
                .filter_map(|(name, value)| Some(format!("{name}: {}", value?))),
        );
        lines.join("\n")
    }
}

/// Prices in one line.
pub(crate) fn price_text(prices: &Prices) -> String {
    let fields = prices.fields().into_iter();
    let fields: Vec<_> = fields.map(|(name, value)| format!("{name} {value}")).collect();
    fields.join(", ")
}

/// Limits, one row per limit; the one that counts money in dollars.
pub(crate) fn limit_table(limits: &[Limit], money: &LimitName) -> TextTable {
    let mut table = TextTable::new([
        ("Limit", Align::Left),
        ("Capacity", Align::Right),
        ("Burst", Align::Right),
        ("Refill", Align::Left),
    ]);
    for limit in limits {
        let amount = |tokens: Tokens| {
            let text = if limit.name() == money { dollars } else { grouped };
            text(tokens.get().into())
        };
        let (burst, comes_back) = match limit.kind() {
            LimitKind::Rate(rate) => {
                let refill = amount(rate.refill_amount());
                let refill = format!("{refill} {}", per(rate.refill_period_seconds()));
                (amount(rate.burst()), refill)
            }
            LimitKind::Quota(quota) if quota.alerts().is_empty() => {
                (String::new(), format!("all per {}", quota.period()))
            }
            LimitKind::Quota(quota) => {
                let refill = format!("all per {}, alert at {}", quota.period(), quota.alerts());
                (String::new(), refill)
            }
            kind @ LimitKind::Concurrency(_) => (String::new(), kind.to_string()),
        };
        let capacity = amount(limit.capacity());
        table.row([limit.name().to_string(), capacity, burst, comes_back]);
    }
    table
}

fn per(seconds: u64) -> String {
    match seconds {
        1 => "per second".to_owned(),
        60 => "per minute".to_owned(),
        3600 => "per hour".to_owned(),
        86_400 => "per day".to_owned(),
        other => format!("per {} s", grouped(other)),
    }
}

/// An entity.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EntityReport {
    pub(crate) entity_id: EntityId,
    pub(crate) name: String,
    pub(crate) parent_id: Option<EntityId>,
    pub(crate) cascade: bool,
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) created_at: Timestamp,
}

impl From<EntityRecord> for EntityReport {
    fn from(record: EntityRecord) -> Self {
        Self {
            entity_id: record.id,
            name: record.name,
            parent_id: record.parent,
            cascade: record.cascade,
            metadata: json_map(&record.metadata),
            created_at: record.created_at,
        }
    }
}

impl Text for EntityReport {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![
            format!("Entity:   {}", self.entity_id),
            format!("Name:     {}", self.name),
            format!(
                "Parent:   {}",
                self.parent_id.as_ref().map_or("-", |parent| parent.as_str())
            ),
            format!("Cascade:  {}", if self.cascade { "yes" } else { "no" }),
            format!("Created:  {}", view.zone.show(self.created_at)),
        ];
        for (key, value) in &self.metadata {
            lines.push(format!("Metadata: {key}={}", unquoted(value)));
        }
        lines.join("\n")
    }
}

/// A JSON value as text; strings without quotes.
pub(crate) fn unquoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// DynamoDB attributes as JSON.
pub(crate) fn json_map(attributes: &BTreeMap<String, AttributeValue>) -> BTreeMap<String, Value> {
    attributes
        .iter()
        .map(|(name, value)| (name.clone(), to_json(value)))
        .collect()
}
