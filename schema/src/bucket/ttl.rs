//! When a bucket may be forgotten.

/// Whether buckets of a configuration expire.
///
/// A bucket on defaults lives at least [`life_seconds`](Self::life_seconds) after its last write: `multiplier` times the
/// longest time that one of its limits takes to fill from empty to its burst, and at least twice the time until it is
/// full, debt included. Deleting it must not add tokens.
///
/// A write that finds less than that left, or that refills the bucket, sets the life to
/// [`renewed_seconds`](Self::renewed_seconds), half as long again. So a busy bucket does not change the attribute with
/// each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TtlRule {
    /// It stays: the entity has limits of its own, or expiry is turned off.
    Never,
    /// It expires after this number of fill times.
    AfterFills {
        /// How many; at least 1.
        multiplier: u32,
    },
}

/// Beyond a hundred years the exact time no longer matters.
const CENTURY: i64 = 3_155_760_000;

impl TtlRule {
    /// The multiplier used where none is given.
    pub const DEFAULT_MULTIPLIER: u32 = 7;

    /// The rule for a multiplier, where 0 means never.
    pub const fn from_multiplier(multiplier: u32) -> Self {
        if multiplier == 0 {
            Self::Never
        } else {
            Self::AfterFills { multiplier }
        }
    }

    /// How long a bucket lives at least after a write, in whole seconds. `None` if it does not expire.
    ///
    /// `longest_fill` and `longest_to_full` are over all its limits, in milliseconds.
    pub fn life_seconds(self, longest_fill: i128, longest_to_full: i128) -> Option<i64> {
        let Self::AfterFills { multiplier } = self else {
            return None;
        };
        let millis = longest_fill
            .saturating_mul(i128::from(multiplier))
            .max(longest_to_full.saturating_mul(2));
        Some(i64::try_from(millis.saturating_add(999) / 1000).map_or(CENTURY, |seconds| seconds.min(CENTURY)))
    }

    /// How long a bucket lives after a write that renews its life, in whole seconds.
    ///
    /// ```
    /// use zae_limiter_schema::bucket::TtlRule;
    ///
    /// assert_eq!(TtlRule::renewed_seconds(420), 630);
    /// ```
    pub const fn renewed_seconds(life: i64) -> i64 {
        life.saturating_add(life / 2)
    }
}
