//! Thresholds of quotas that a write of a bucket reaches, by the bucket before and after it.

use zae_limiter_schema::bucket::{Attr, QuotaField};
use zae_limiter_schema::{LimitName, Thresholds, Timestamp};

use crate::delta::{Attributes, number, text_of};

/// A threshold of a quota that a write has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossing {
    /// The ARN of the table.
    pub table_arn: String,
    /// The quota.
    pub limit: LimitName,
    /// The threshold, in percent of the amount.
    pub percent: u8,
    /// What is used, in whole tokens.
    pub used: i128,
    /// What may be used in the period, in whole tokens: the amount, and what it was topped up with.
    pub amount: i128,
    /// When the period ends.
    pub period_end: Timestamp,
}

/// A quota with thresholds, in millitokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standing {
    alerts: Thresholds,
    used: i128,
    amount: i128,
    period_end: i64,
}

impl Standing {
    /// The quota of an image. Nothing if no period has begun, or if a number cannot be read: what was used matters more.
    fn of(image: &Attributes<'_>, limit: &LimitName) -> Option<Self> {
        let name = |field| Attr::Quota(limit.clone(), field).to_string();
        let number = |field| {
            let name = name(field);
            number(&name, image.get(name.as_str())?).ok()
        };
        let alerts = image.get(name(QuotaField::Alerts).as_str());
        let period_end = i64::try_from(number(QuotaField::PeriodEnd)?).ok()?;
        let is_of_period = |until: &i128| *until == i128::from(period_end);
        let topped_up = number(QuotaField::ToppedUpUntil)
            .filter(is_of_period)
            .and_then(|_| number(QuotaField::ToppedUp));
        Some(Self {
            alerts: Thresholds::from_stored(alerts.and_then(|value| text_of(value)).unwrap_or_default()),
            used: number(QuotaField::Used)?,
            amount: number(QuotaField::Amount)? + topped_up.unwrap_or(0),
            period_end,
        })
        .filter(|standing| {
            standing.amount > 0 && (0..=Timestamp::MAX.millis()).contains(&standing.period_end)
        })
    }

    fn reached(&self) -> impl Iterator<Item = u8> {
        self.alerts.reached(self.used, self.amount)
    }

    /// True if a write made at this time counts in the period. What only changes the amount of a period that has ended does
    /// not.
    fn is_current(&self, before: Option<&Self>, at: Timestamp) -> bool {
        let in_use =
            before.is_none_or(|before| before.used != self.used || before.period_end != self.period_end);
        in_use || at.millis() < self.period_end
    }
}

/// The thresholds that are reached after a write and were not before it in the same period, in order of limits and
/// percentages. A threshold that comes to a bucket which has passed it already is reached with that write.
pub(crate) fn crossings(
    stream_arn: &str,
    old: &Attributes<'_>,
    new: &Attributes<'_>,
    at: Timestamp,
) -> Vec<Crossing> {
    let table_arn = stream_arn
        .split_once("/stream/")
        .map_or(stream_arn, |(table, _)| table);
    let mut crossings = Vec::new();
    let limits = new.keys().filter_map(|name| Attr::limit_with_alerts(name));
    for limit in limits {
        let Ok(limit) = LimitName::from_stored(limit) else {
            continue;
        };
        let Some(now) = Standing::of(new, &limit) else {
            continue;
        };
        let before = Standing::of(old, &limit);
        if !now.is_current(before.as_ref(), at) {
            continue;
        }
        let before = before.filter(|before| before.period_end == now.period_end);
        let reached_before: Vec<u8> = before.iter().flat_map(Standing::reached).collect();
        let reached = now.reached().filter(|percent| !reached_before.contains(percent));
        crossings.extend(reached.map(|percent| Crossing {
            table_arn: table_arn.to_owned(),
            limit: limit.clone(),
            percent,
            used: now.used / 1000,
            amount: now.amount / 1000,
            period_end: Timestamp::from_millis(now.period_end),
        }));
    }
    crossings
}
