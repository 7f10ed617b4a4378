//! A quota: an amount per period.

use super::{QuotaPeriod, Thresholds};
use crate::Tokens;

/// At most an amount in each period. It does not refill: all of it comes back when the period ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quota {
    amount: Tokens,
    period: QuotaPeriod,
    alerts: Thresholds,
}

impl Quota {
    pub(super) const fn new(amount: Tokens, period: QuotaPeriod) -> Self {
        Self {
            amount,
            period,
            alerts: Thresholds::NONE,
        }
    }

    pub(super) fn with_alerts(self, alerts: Thresholds) -> Self {
        Self { alerts, ..self }
    }

    /// What may be used in a period.
    pub const fn amount(&self) -> Tokens {
        self.amount
    }

    /// The period.
    pub const fn period(&self) -> &QuotaPeriod {
        &self.period
    }

    /// The percentages of the amount at which an event is sent.
    pub const fn alerts(&self) -> Thresholds {
        self.alerts
    }
}
