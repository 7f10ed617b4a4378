//! A limit on calls in flight.

use super::{InvalidLimit, positive_tokens};
use crate::{LimitName, Tokens};

/// How many calls may be in flight at once. Each holds a permit, which comes back when its lease ends. A permit that is
/// neither released nor renewed expires, so that those of a dead process come back too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Concurrency {
    permits: Tokens,
    expires_after_seconds: u64,
}

impl Concurrency {
    /// The shortest expiry. Clocks may differ by 2 seconds, and permits are renewed at half of it.
    pub const MIN_EXPIRY_SECONDS: u64 = 8;
    /// The longest expiry: a day.
    pub const MAX_EXPIRY_SECONDS: u64 = 86_400;

    pub(super) fn new(
        limit: &LimitName,
        permits: u64,
        expires_after_seconds: u64,
    ) -> Result<Self, InvalidLimit> {
        let permits = positive_tokens(limit, "permits", permits)?;
        let expiries = Self::MIN_EXPIRY_SECONDS..=Self::MAX_EXPIRY_SECONDS;
        if !expiries.contains(&expires_after_seconds) {
            return Err(InvalidLimit::Number {
                field: "expiry",
                value: expires_after_seconds,
                limit: limit.clone(),
                rule: format!("it must be {} to {} seconds", expiries.start(), expiries.end()),
            });
        }
        Ok(Self {
            permits,
            expires_after_seconds,
        })
    }

    /// How many calls may be in flight.
    pub const fn permits(&self) -> Tokens {
        self.permits
    }

    /// How long a permit lasts if nobody releases or renews it, in seconds.
    pub const fn expires_after_seconds(&self) -> u64 {
        self.expires_after_seconds
    }
}
