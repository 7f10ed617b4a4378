//! The reference arithmetic of one limit.

use super::{Params, RetryAfter};

/// The level of one limit at its last refill.
///
/// Times are milliseconds elapsed since then; a time before it counts as zero, so a clock that went
/// backwards changes nothing.
///
/// ```
/// use std::time::Duration;
/// use zae_limiter_schema::Limit;
/// use zae_limiter_schema::bucket::{TokenBucket, Params, RetryAfter};
///
/// let rps = TokenBucket::full(Params::from(Limit::per_second("rps", 10)?.rate().unwrap()));
/// let empty = rps.try_take(0, 10_000).unwrap();
/// assert_eq!(empty.wait_for(0, 1_000), RetryAfter::After(Duration::from_millis(100)));
/// assert!(empty.try_take(99, 1_000).is_err());
/// assert!(empty.try_take(100, 1_000).is_ok());
/// assert_eq!(empty.wait_for(0, 10_001), RetryAfter::Never);
/// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// The limit's parameters.
    pub params: Params,
    /// The level in millitokens (`tk`); below zero is debt.
    pub tokens: i128,
    /// What the last refill's division left over (`rr`), in millitokens × milliseconds.
    pub remainder: i128,
}

/// What has come back since the last refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// Whole millitokens.
    pub whole: i128,
    /// What is left of the division.
    pub remainder: i128,
    /// Whole millitokens, rounded up.
    pub ceiling: i128,
    /// Rounded up whatever the kept remainder is: at least what has come back, also if another client has
    /// changed the remainder since.
    pub bound: i128,
}

/// Too little for what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortfall {
    /// What is there, in millitokens.
    pub available: i128,
    /// When the asked amount will be there.
    pub wait: RetryAfter,
}

impl TokenBucket {
    /// The largest level, either way, that is read from a table.
    pub const MAX_TOKENS: i128 = 1_000_000_000_000_000_000_000_000;

    /// A full bucket.
    pub const fn full(params: Params) -> Self {
        Self {
            tokens: params.burst(),
            remainder: 0,
            params,
        }
    }

    /// The kept remainder, where it makes sense: one that is not below the period belongs to another period.
    const fn kept_remainder(&self) -> i128 {
        if self.remainder >= 0 && self.remainder < self.params.period() {
            self.remainder
        } else {
            0
        }
    }

    /// What the refill of the given milliseconds is before it is divided by the period, without the kept remainder.
    const fn earned(&self, elapsed: i128) -> i128 {
        let elapsed = if elapsed > 0 { elapsed } else { 0 };
        elapsed * self.params.amount()
    }

    /// Whole millitokens refilled after the given milliseconds, and what is left of the division.
    const fn refill(&self, elapsed: i128) -> (i128, i128) {
        divide(self.earned(elapsed) + self.kept_remainder(), self.params.period())
    }

    /// The tokens refilled after the given milliseconds.
    pub const fn pending(&self, elapsed: i128) -> Pending {
        let (whole, remainder) = self.refill(elapsed);
        let period = self.params.period();
        Pending {
            whole,
            remainder,
            ceiling: whole + if remainder > 0 { 1 } else { 0 },
            bound: divide(self.earned(elapsed) + period - 1, period).0,
        }
    }

    /// The level after the given milliseconds.
    pub fn available(&self, elapsed: i128) -> i128 {
        self.params.burst().min(self.tokens + self.refill(elapsed).0)
    }

    /// The same bucket with its last refill moved forward by the given milliseconds. What does not fit under the
    /// burst is lost, the remainder with it.
    #[must_use]
    pub fn refilled(&self, elapsed: i128) -> Self {
        let (whole, remainder) = self.refill(elapsed);
        let tokens = self.tokens + whole;
        if tokens >= self.params.burst() {
            Self {
                tokens: self.params.burst(),
                remainder: 0,
                ..*self
            }
        } else {
            Self {
                tokens,
                remainder,
                ..*self
            }
        }
    }

    /// Takes an amount after the given milliseconds, if it is available.
    pub fn try_take(&self, elapsed: i128, amount: i128) -> Result<Self, Shortfall> {
        let refilled = self.refilled(elapsed);
        if refilled.tokens >= amount {
            Ok(Self {
                tokens: refilled.tokens - amount,
                ..refilled
            })
        } else {
            Err(Shortfall {
                available: refilled.tokens,
                wait: self.wait_for(elapsed, amount),
            })
        }
    }

    /// Takes an amount whether it is there or not; the level may go below zero.
    #[must_use]
    pub fn force_take(&self, elapsed: i128, amount: i128) -> Self {
        let refilled = self.refilled(elapsed);
        Self {
            tokens: refilled.tokens - amount,
            ..refilled
        }
    }

    /// Gives an amount back, never above the burst.
    #[must_use]
    pub fn credit(&self, elapsed: i128, amount: i128) -> Self {
        let refilled = self.refilled(elapsed);
        let tokens = refilled.tokens + amount;
        if tokens >= self.params.burst() {
            Self {
                tokens: self.params.burst(),
                remainder: 0,
                ..refilled
            }
        } else {
            Self { tokens, ..refilled }
        }
    }

    /// How long from `elapsed` until the amount is there.
    pub fn wait_for(&self, elapsed: i128, amount: i128) -> RetryAfter {
        if amount > self.params.burst() {
            return RetryAfter::Never;
        }
        if self.available(elapsed) >= amount {
            return RetryAfter::Now;
        }
        let missing = (amount - self.tokens) * self.params.period() - self.kept_remainder();
        let (at, _) = divide(missing + self.params.amount() - 1, self.params.amount());
        RetryAfter::after_millis(at - elapsed.max(0))
    }
}

/// Quotient and remainder. Almost all numbers fit in 64 bits, and there a division takes a few cycles.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both are checked to fit"
)]
const fn divide(dividend: i128, divisor: i128) -> (i128, i128) {
    const MAX: i128 = u64::MAX as i128;
    if dividend >= 0 && dividend <= MAX && divisor > 0 && divisor <= MAX {
        let (dividend, divisor) = (dividend as u64, divisor as u64);
        ((dividend / divisor) as i128, (dividend % divisor) as i128)
    } else {
        (dividend / divisor, dividend % divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::divide;

    #[test]
    fn a_division_is_the_same_on_both_sides_of_64_bits() {
        let edge = i128::from(u64::MAX);
        for dividend in [
            -edge,
            -7,
            -1,
            0,
            1,
            59_999,
            60_000,
            edge - 1,
            edge,
            edge + 1,
            3 * edge,
        ] {
            for divisor in [1, 7, 60_000, edge, edge + 1] {
                let expected = (dividend / divisor, dividend % divisor);
                assert_eq!(divide(dividend, divisor), expected, "{dividend} / {divisor}");
            }
        }
    }
}
