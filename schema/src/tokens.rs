//! Amounts of tokens: whole tokens for people, millitokens for arithmetic.

use std::fmt;

/// A whole number of tokens from 0 to [`Tokens::MAX`].
///
/// A token is what a limit counts: a request, an LLM token, a byte. The table keeps thousandths of them
/// (millitokens), so that slow refills lose nothing.
///
/// ```
/// use zae_limiter_schema::Tokens;
///
/// assert_eq!(Tokens::new(500)?.millis(), 500_000);
/// assert!(Tokens::new(Tokens::MAX + 1).is_err());
/// # Ok::<(), zae_limiter_schema::TooManyTokens>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize)]
#[serde(transparent)]
pub struct Tokens(u64);

/// An amount above [`Tokens::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} tokens are more than the largest amount, {max}", max = Tokens::MAX)]
pub struct TooManyTokens(pub u64);

impl Tokens {
    /// The largest amount: a million million. With it, a period of ten years and the largest level that is
    /// [read from a table](crate::bucket), every product in the bucket arithmetic fits in 128 bits.
    pub const MAX: u64 = 1_000_000_000_000;

    /// No tokens.
    pub const ZERO: Self = Self(0);

    /// Accepts an amount up to [`Tokens::MAX`].
    pub const fn new(amount: u64) -> Result<Self, TooManyTokens> {
        if amount > Self::MAX {
            Err(TooManyTokens(amount))
        } else {
            Ok(Self(amount))
        }
    }

    /// The amount in whole tokens.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The amount in millitokens.
    pub const fn millis(self) -> i128 {
        self.0 as i128 * 1000
    }

    /// True for no tokens at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u64> for Tokens {
    type Error = TooManyTokens;

    fn try_from(amount: u64) -> Result<Self, TooManyTokens> {
        Self::new(amount)
    }
}

impl<'de> serde::Deserialize<'de> for Tokens {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = <u64 as serde::Deserialize>::deserialize(deserializer)?;
        Self::new(amount).map_err(serde::de::Error::custom)
    }
}

/// Whole tokens in an amount of millitokens, rounded down (a debt of half a token is −1).
#[expect(clippy::cast_possible_truncation, reason = "it is checked to fit")]
pub const fn whole_tokens(millis: i128) -> i128 {
    // Almost all amounts fit in 64 bits, where no division is needed at all.
    if millis >= i64::MIN as i128 && millis <= i64::MAX as i128 {
        (millis as i64).div_euclid(1000) as i128
    } else {
        millis.div_euclid(1000)
    }
}
