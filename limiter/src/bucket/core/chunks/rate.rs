//! How fast calls come, by limit.

use std::time::Duration;

use zae_limiter_schema::LimitName;

use crate::bucket::amounts::{Amounts, add, amount_of};

/// The rate is that of the last whole window.
pub(super) const WINDOW: Duration = Duration::from_millis(500);
/// Fewer calls in a window are no steady rate.
pub(super) const STEADY_CALLS: u32 = 8;

/// Calls, and what they asked for in millitokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) calls: u32,
    pub(super) amounts: Amounts,
}

/// The traffic on one bucket.
#[derive(Debug, Default)]
pub(super) struct Rate {
    started: Duration,
    current: Traffic,
    previous: Traffic,
}

impl Rate {
    /// A call asks for this now.
    pub(super) fn note(&mut self, amounts: &Amounts, now: Duration) {
        self.roll(now);
        self.current.calls = self.current.calls.saturating_add(1);
        for (limit, amount) in amounts {
            add(&mut self.current.amounts, limit, *amount);
        }
    }

    /// What comes in this time, if the rate is steady.
    pub(super) fn traffic_in(&mut self, time: Duration, now: Duration) -> Option<Traffic> {
        self.roll(now);
        if !self.is_steady() {
            return None;
        }
        let previous = &self.previous;
        let amounts = previous.amounts.iter();
        Some(Traffic {
            calls: u32::try_from(scaled(i128::from(previous.calls), time)).unwrap_or(u32::MAX),
            amounts: amounts
                .map(|(limit, amount)| (limit.clone(), scaled(*amount, time)))
                .collect(),
        })
    }

    /// True if the rate is steady and more than twice as much as is held of any limit comes in this time. Every call asks, so that
    /// it allocates nothing.
    pub(super) fn is_more_than_twice(&mut self, held: &Amounts, time: Duration, now: Duration) -> bool {
        self.roll(now);
        // `2 * held < scaled(amount, time)` without the division: whole numbers, so that the least more is one.
        let (time, window) = (time.as_millis().cast_signed(), WINDOW.as_millis().cast_signed());
        let short =
            |(limit, amount): &(LimitName, i128)| (2 * amount_of(held, limit) + 1) * window <= amount * time;
        self.is_steady() && self.previous.amounts.iter().any(short)
    }

    fn is_steady(&self) -> bool {
        self.previous.calls >= STEADY_CALLS
    }

    fn roll(&mut self, now: Duration) {
        let past = now.saturating_sub(self.started);
        if past >= 2 * WINDOW {
            *self = Self {
                started: now,
                ..Self::default()
            };
        } else if past >= WINDOW {
            self.started += WINDOW;
            self.previous = std::mem::take(&mut self.current);
        }
    }
}

/// What comes in this time, by what came in the last window.
fn scaled(amount: i128, time: Duration) -> i128 {
    amount * time.as_millis().cast_signed() / WINDOW.as_millis().cast_signed()
}
