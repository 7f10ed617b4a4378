//! Limits as JSON: the form that audit events and the command line use. The fields tell the kind.

use serde::de::Error as _;
use serde::ser::SerializeStruct as _;

use super::{Concurrency, LimitKind, Quota, QuotaPeriod, Rate, Thresholds, positive_tokens};
use crate::{Limit, LimitName};

/// A field of a limit as JSON.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum LimitField {
    /// A number.
    Number(u64),
    /// Several numbers.
    Numbers(Vec<u64>),
    /// A text.
    Text(String),
}

impl Limit {
    /// Its fields by name, those of its kind after its name.
    pub fn fields(&self) -> Vec<(&'static str, LimitField)> {
        let number = LimitField::Number;
        let mut fields = vec![("name", LimitField::Text(self.name().to_string()))];
        match self.kind() {
            LimitKind::Rate(rate) => fields.extend([
                ("capacity", number(rate.capacity().get())),
                ("burst", number(rate.burst().get())),
                ("refill_amount", number(rate.refill_amount().get())),
                ("refill_period_seconds", number(rate.refill_period_seconds())),
            ]),
            LimitKind::Quota(quota) => {
                fields.extend([
                    ("quota", number(quota.amount().get())),
                    ("per", LimitField::Text(quota.period().to_string())),
                ]);
                if !quota.alerts().is_empty() {
                    let alerts = quota.alerts().percentages().map(u64::from).collect();
                    fields.push(("alert_at", LimitField::Numbers(alerts)));
                }
            }
            LimitKind::Concurrency(limit) => fields.extend([
                ("concurrency", number(limit.permits().get())),
                ("expires_after_seconds", number(limit.expires_after_seconds())),
            ]),
        }
        fields
    }
}

impl serde::Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.fields();
        let mut limit = serializer.serialize_struct("Limit", fields.len())?;
        for (name, value) in &fields {
            limit.serialize_field(name, value)?;
        }
        limit.end()
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    name: LimitName,
    capacity: Option<u64>,
    burst: Option<u64>,
    refill_amount: Option<u64>,
    refill_period_seconds: Option<u64>,
    quota: Option<u64>,
    per: Option<QuotaPeriod>,
    alert_at: Option<Vec<u64>>,
    concurrency: Option<u64>,
    expires_after_seconds: Option<u64>,
}

impl<'de> serde::Deserialize<'de> for Limit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Fields {
            name,
            capacity,
            burst,
            refill_amount,
            refill_period_seconds,
            quota,
            per,
            alert_at,
            concurrency,
            expires_after_seconds,
        } = Fields::deserialize(deserializer)?;
        let missing = D::Error::missing_field;
        let of_quota = per.is_some() || alert_at.is_some();
        let is_rate = [capacity, burst, refill_amount, refill_period_seconds]
            .iter()
            .any(Option::is_some);
        let kind = match (quota, concurrency) {
            (None, None) if !of_quota && expires_after_seconds.is_none() => Rate::new(
                &name,
                capacity.ok_or_else(|| missing("capacity"))?,
                burst.ok_or_else(|| missing("burst"))?,
                refill_amount.ok_or_else(|| missing("refill_amount"))?,
                refill_period_seconds.ok_or_else(|| missing("refill_period_seconds"))?,
            )
            .map(LimitKind::Rate),
            (Some(amount), None) if !is_rate && expires_after_seconds.is_none() => {
                let period = per.ok_or_else(|| missing("per"))?;
                let alerts = Thresholds::new(&name, alert_at.unwrap_or_default());
                let amount = positive_tokens(&name, "amount", amount);
                let with_amount = |amount| Ok(Quota::new(amount, period).with_alerts(alerts?));
                amount.and_then(with_amount).map(LimitKind::Quota)
            }
            (None, Some(permits)) if !is_rate && !of_quota => {
                let expiry = expires_after_seconds.ok_or_else(|| missing("expires_after_seconds"))?;
                Concurrency::new(&name, permits, expiry).map(LimitKind::Concurrency)
            }
            _ => {
                return Err(D::Error::custom(format!(
                    "limit {name} mixes the fields of several kinds: a rate has capacity, burst, refill_amount and \
                     refill_period_seconds, a quota has quota, per and alert_at, a concurrency limit has concurrency and \
                     expires_after_seconds"
                )));
            }
        };
        kind.map(|kind| Self::from_kind(name, kind))
            .map_err(D::Error::custom)
    }
}
