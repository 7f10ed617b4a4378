//! The numbers of a limit as a bucket keeps them.

use crate::Rate;

/// The margin of a shared bucket is what comes back in this time,
const MARGIN_MILLIS: i128 = 200;
/// and at most this part of the burst.
const MARGIN_PART: i128 = 50;

/// The parameters of one limit on a bucket, in millitokens and milliseconds. All are above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Params {
    capacity: i128,
    burst: i128,
    amount: i128,
    period: i128,
}

impl Params {
    /// The largest capacity, burst and refill amount that is read from a table, in millitokens.
    pub const MAX_AMOUNT: i128 = 1_000_000_000_000_000_000;
    /// The longest period that is read from a table, in milliseconds.
    pub const MAX_PERIOD: i128 = 1_000_000_000_000;

    /// Accepts parameters within their bounds; `None` for any that are missing their sense, such as a period of 0.
    pub fn new(capacity: i128, burst: i128, amount: i128, period: i128) -> Option<Self> {
        let amounts = 1..=Self::MAX_AMOUNT;
        let valid = [capacity, burst, amount]
            .iter()
            .all(|value| amounts.contains(value))
            && (1..=Self::MAX_PERIOD).contains(&period);
        valid.then_some(Self {
            capacity,
            burst,
            amount,
            period,
        })
    }

    /// The nominal amount (`cp`).
    pub const fn capacity(&self) -> i128 {
        self.capacity
    }

    /// The ceiling (`bx`).
    pub const fn burst(&self) -> i128 {
        self.burst
    }

    /// What comes back in each period (`ra`).
    pub const fn amount(&self) -> i128 {
        self.amount
    }

    /// The period in milliseconds (`rp`).
    pub const fn period(&self) -> i128 {
        self.period
    }

    /// True if both refill at the same rate, written the same way.
    pub const fn same_rate(&self, other: &Self) -> bool {
        self.amount == other.amount && self.period == other.period
    }

    /// By how much a full limit of a shared bucket is left below its burst: what 200 ms bring back, at most a fiftieth
    /// of the burst.
    pub const fn margin(&self) -> i128 {
        let refill = self.amount * MARGIN_MILLIS / self.period;
        let most = self.burst / MARGIN_PART;
        if refill < most { refill } else { most }
    }

    /// How long an empty bucket takes to fill, in milliseconds, rounded up.
    pub const fn fill_time(&self) -> i128 {
        self.time_for(self.burst)
    }

    /// The time to refill the given millitokens, in milliseconds, rounded up.
    pub(crate) const fn time_for(&self, millis: i128) -> i128 {
        if millis <= 0 {
            0
        } else {
            (millis * self.period + self.amount - 1) / self.amount
        }
    }
}

impl From<&Rate> for Params {
    fn from(rate: &Rate) -> Self {
        Self {
            capacity: rate.capacity().millis(),
            burst: rate.burst().millis(),
            amount: rate.refill_amount().millis(),
            period: i128::from(rate.refill_period_seconds()) * 1000,
        }
    }
}
