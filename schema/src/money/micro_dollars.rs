//! Amounts of money: micro-dollars for arithmetic, dollars for people.

use std::fmt;
use std::str::FromStr;

use super::decimal::Decimal;
use crate::Tokens;
use crate::shortened::shortened;

/// Decimal places of a dollar that are counted.
const PLACES: i32 = 6;

/// Decimal places between dollars per token and micro-dollars per million tokens.
const PLACES_PER_MILLION: i32 = 12;

/// Millionths of a dollar, from 0 to [`MicroDollars::MAX`]: one token of a limit that counts money.
///
/// ```
/// use zae_limiter_schema::money::MicroDollars;
///
/// let price: MicroDollars = "$12.50".parse()?;
/// assert_eq!(price.get(), 12_500_000);
/// assert_eq!("12.5 usd".parse(), Ok(price));
/// assert_eq!(price.to_string(), "$12.50");
/// assert!("$0.0000001".parse::<MicroDollars>().is_err(), "a fraction of a micro-dollar");
/// # Ok::<(), zae_limiter_schema::money::InvalidMoney>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MicroDollars(u64);

/// Text or an amount that is not money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("money {value:?} is invalid: {rule}")]
pub struct InvalidMoney {
    value: String,
    rule: String,
}

impl InvalidMoney {
    fn new(value: &str, rule: impl Into<String>) -> Self {
        Self {
            value: shortened(value),
            rule: rule.into(),
        }
    }

    /// The refused value, shortened.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The rule that it breaks.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl MicroDollars {
    /// The largest amount, a million dollars: a limit cannot count more tokens.
    pub const MAX: u64 = Tokens::MAX;

    /// No money.
    pub const ZERO: Self = Self(0);

    /// Accepts an amount up to [`MicroDollars::MAX`].
    pub fn new(micro_dollars: u64) -> Result<Self, InvalidMoney> {
        if micro_dollars > Self::MAX {
            return Err(InvalidMoney::new(&dollars(micro_dollars.into()), too_much()));
        }
        Ok(Self(micro_dollars))
    }

    /// The amount in millionths of a dollar.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The price of a million tokens, from a price in dollars per token as JSON writes it. Rounded up to a whole
    /// micro-dollar.
    ///
    /// ```
    /// use zae_limiter_schema::money::MicroDollars;
    ///
    /// assert_eq!(MicroDollars::per_million_tokens("1.5e-07")?.to_string(), "$0.15");
    /// # Ok::<(), zae_limiter_schema::money::InvalidMoney>(())
    /// ```
    pub fn per_million_tokens(dollars_per_token: &str) -> Result<Self, InvalidMoney> {
        Self::rounded_up(dollars_per_token, PLACES_PER_MILLION)
    }

    /// An amount in dollars as JSON writes it, rounded up to a whole micro-dollar.
    pub fn from_json_number(dollars: &str) -> Result<Self, InvalidMoney> {
        Self::rounded_up(dollars, PLACES)
    }

    fn rounded_up(text: &str, places: i32) -> Result<Self, InvalidMoney> {
        let number = Decimal::scientific(text).ok_or_else(|| {
            InvalidMoney::new(text, "it must be a number from 0 on, such as 0.25 or 1.5e-07")
        })?;
        let scaled = number.scaled(places);
        scaled
            .and_then(|scaled| u64::try_from(scaled.whole).ok())
            .filter(|amount| *amount <= Self::MAX)
            .map(Self)
            .ok_or_else(|| InvalidMoney::new(text, too_much()))
    }
}

fn too_much() -> String {
    format!("it must be at most {}", dollars(MicroDollars::MAX.into()))
}

/// An amount in micro-dollars as dollars, exactly; debts are below zero.
///
/// ```
/// use zae_limiter_schema::money::dollars;
///
/// assert_eq!(dollars(12_500_000), "$12.50");
/// assert_eq!(dollars(-1), "-$0.000001");
/// ```
pub fn dollars(micro_dollars: i128) -> String {
    let (sign, amount) = (
        if micro_dollars < 0 { "-" } else { "" },
        micro_dollars.unsigned_abs(),
    );
    let fraction = format!("{:06}", amount % 1_000_000);
    let (cents, rest) = fraction.split_at(2);
    let rest = rest.trim_end_matches('0');
    format!("{sign}${}.{cents}{rest}", amount / 1_000_000)
}

impl fmt::Display for MicroDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&dollars(self.0.into()))
    }
}

impl FromStr for MicroDollars {
    type Err = InvalidMoney;

    fn from_str(text: &str) -> Result<Self, InvalidMoney> {
        let invalid = |rule: &str| InvalidMoney::new(text, rule);
        let trimmed = text.trim();
        let in_words = || {
            let (start, unit) = trimmed.split_at_checked(trimmed.len().checked_sub(3)?)?;
            unit.eq_ignore_ascii_case("usd").then(|| start.trim_end())
        };
        let number = trimmed
            .strip_prefix('$')
            .or_else(in_words)
            .and_then(Decimal::plain)
            .ok_or_else(|| invalid("write dollars, such as $12.50 or 12.5 usd"))?;
        let scaled = number.scaled(PLACES).ok_or_else(|| invalid(&too_much()))?;
        if !scaled.exact {
            return Err(invalid("it must have at most 6 decimal places"));
        }
        u64::try_from(scaled.whole)
            .ok()
            .filter(|amount| *amount <= Self::MAX)
            .map(Self)
            .ok_or_else(|| invalid(&too_much()))
    }
}

impl serde::Serialize for MicroDollars {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for MicroDollars {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
