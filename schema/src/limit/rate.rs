//! A rate: a bucket of tokens that refills.

use super::{InvalidLimit, Limit, positive_tokens};
use crate::{LimitName, Tokens};

/// A bucket of `burst` tokens that gets `refill_amount` tokens every `refill_period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    capacity: Tokens,
    burst: Tokens,
    refill_amount: Tokens,
    refill_period_seconds: u64,
}

impl Rate {
    pub(super) fn new(
        limit: &LimitName,
        capacity: u64,
        burst: u64,
        refill_amount: u64,
        refill_period_seconds: u64,
    ) -> Result<Self, InvalidLimit> {
        let amount = |field, value| positive_tokens(limit, field, value);
        let (capacity, burst, refill_amount) = (
            amount("capacity", capacity)?,
            amount("burst", burst)?,
            amount("refill amount", refill_amount)?,
        );
        if burst < capacity {
            return Err(InvalidLimit::Number {
                field: "burst",
                value: burst.get(),
                limit: limit.clone(),
                rule: format!("it must not be below the capacity, {capacity}"),
            });
        }
        if refill_period_seconds == 0 || refill_period_seconds > Limit::MAX_PERIOD_SECONDS {
            return Err(InvalidLimit::Number {
                field: "refill period",
                value: refill_period_seconds,
                limit: limit.clone(),
                rule: format!("it must be 1 to {} seconds", Limit::MAX_PERIOD_SECONDS),
            });
        }
        Ok(Self {
            capacity,
            burst,
            refill_amount,
            refill_period_seconds,
        })
    }

    /// The nominal amount.
    pub const fn capacity(&self) -> Tokens {
        self.capacity
    }

    /// The most that the bucket holds.
    pub const fn burst(&self) -> Tokens {
        self.burst
    }

    /// What comes back in each period.
    pub const fn refill_amount(&self) -> Tokens {
        self.refill_amount
    }

    /// The period of the refill, in seconds.
    pub const fn refill_period_seconds(&self) -> u64 {
        self.refill_period_seconds
    }

    /// In how many seconds this many tokens come back, rounded up.
    pub fn seconds_to_refill(&self, tokens: u64) -> u128 {
        let time = u128::from(tokens) * u128::from(self.refill_period_seconds);
        time.div_ceil(u128::from(self.refill_amount.get()))
    }
}
