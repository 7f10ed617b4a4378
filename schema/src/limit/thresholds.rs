//! Alert thresholds of a quota.

use std::fmt;

use super::{InvalidLimit, Limit, LimitKind};
use crate::LimitName;

/// Percentages of a quota, such as 80 and 100. When one of them is used up in a period, the aggregator reports it.
///
/// Each is 1 to 100; there are at most ten, and usually none.
///
/// ```
/// use zae_limiter_schema::{Limit, LimitKind};
///
/// let LimitKind::Quota(spend) = "spend:500 per month alert at 100% 80%".parse::<Limit>()?.kind().clone() else {
///     unreachable!()
/// };
/// let alerts = spend.alerts();
/// assert_eq!(alerts.to_string(), "80% 100%");
/// assert!(alerts.reached(400, 500).eq([80]));
/// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Thresholds(
    /// A bit for each percentage: a decision copies the thresholds of every quota.
    u128,
);

/// Thresholds are 1 to this percentage.
const MOST_PERCENT: u64 = 100;

impl Thresholds {
    /// A quota has no more thresholds than this.
    pub const MAX_COUNT: usize = 10;
    /// No thresholds.
    pub const NONE: Self = Self(0);

    /// Collects percentages. One that is listed twice counts once.
    pub(super) fn new(
        limit: &LimitName,
        percentages: impl IntoIterator<Item = u64>,
    ) -> Result<Self, InvalidLimit> {
        let mut thresholds = Self::NONE;
        for percent in percentages {
            let invalid = |rule: String| InvalidLimit::Number {
                field: "alert threshold",
                value: percent,
                limit: limit.clone(),
                rule,
            };
            if !(1..=MOST_PERCENT).contains(&percent) {
                return Err(invalid(format!("it must be 1 to {MOST_PERCENT} percent")));
            }
            thresholds.0 |= 1 << percent;
            if thresholds.0.count_ones() as usize > Self::MAX_COUNT {
                return Err(invalid(format!(
                    "a quota has at most {} thresholds",
                    Self::MAX_COUNT
                )));
            }
        }
        Ok(thresholds)
    }

    /// The thresholds as a bucket stores them; none where the text is not a list of thresholds.
    pub fn from_stored(text: &str) -> Self {
        let bits = text.split_ascii_whitespace().try_fold(0, |bits, word| {
            let percent: u64 = word.parse().ok()?;
            (1..=MOST_PERCENT)
                .contains(&percent)
                .then_some(bits | 1 << percent)
        });
        Self(bits.unwrap_or(0))
    }

    /// The text that a bucket stores, such as `80 100`.
    pub fn to_stored(self) -> String {
        let percentages: Vec<_> = self.percentages().map(|percent| percent.to_string()).collect();
        percentages.join(" ")
    }

    /// True if there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The percentages in rising order.
    pub fn percentages(self) -> impl Iterator<Item = u8> {
        (1..=100).filter(move |percent| self.0 & (1 << percent) != 0)
    }

    /// The percentages that are reached when this much of the amount is used.
    pub fn reached(self, used: i128, amount: i128) -> impl Iterator<Item = u8> {
        self.percentages()
            .filter(move |percent| used.saturating_mul(100) >= amount.saturating_mul(i128::from(*percent)))
    }
}

impl fmt::Display for Thresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percentages: Vec<_> = self.percentages().map(|percent| format!("{percent}%")).collect();
        f.write_str(&percentages.join(" "))
    }
}

impl fmt::Debug for Thresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thresholds({self})")
    }
}

impl serde::Serialize for Thresholds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.percentages())
    }
}

impl Limit {
    /// The same quota with alert thresholds: percentages of its amount. Using one of them up sends an event. Other kinds of limits
    /// have none.
    ///
    /// ```
    /// use zae_limiter_schema::{Limit, QuotaPeriod};
    ///
    /// let spend = Limit::quota("spend", 500, QuotaPeriod::month())?.alert_at([80, 95, 100])?;
    /// assert_eq!(spend.to_string(), "spend:500 per month alert at 80% 95% 100%");
    /// assert!(Limit::per_minute("rpm", 100)?.alert_at([80]).is_err());
    /// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
    /// ```
    pub fn alert_at(self, percentages: impl IntoIterator<Item = u64>) -> Result<Self, InvalidLimit> {
        let LimitKind::Quota(quota) = self.kind else {
            return Err(InvalidLimit::Number {
                field: "alert threshold",
                value: percentages.into_iter().next().unwrap_or_default(),
                limit: self.name,
                rule: "only a quota has thresholds".to_owned(),
            });
        };
        let alerts = Thresholds::new(&self.name, percentages)?;
        Ok(Self::from_kind(
            self.name,
            LimitKind::Quota(quota.with_alerts(alerts)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_reached_at_its_exact_part() {
        let alerts = Thresholds::from_stored("80 95 100");
        let reached = |used| alerts.reached(used, 1_000).collect::<Vec<_>>();
        assert_eq!(reached(799), [0; 0]);
        assert_eq!(reached(800), [80]);
        assert_eq!(reached(949), [80]);
        assert_eq!(reached(999), [80, 95]);
        assert_eq!(reached(1_000), [80, 95, 100]);
        assert_eq!(reached(-1), [0; 0]);
    }

    #[test]
    fn what_a_bucket_stores_is_read_back_and_damage_is_no_threshold() {
        let all = Thresholds::from_stored("1 50 100");
        assert_eq!(Thresholds::from_stored(&all.to_stored()), all);
        for damaged in ["", "0", "101", "80 x", "80%", "-80", "99999999999999999999"] {
            assert_eq!(Thresholds::from_stored(damaged), Thresholds::NONE, "{damaged}");
        }
    }
}
