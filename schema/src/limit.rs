//! A limit: how much, how often, and how much at once.

use std::fmt;

use crate::{InvalidName, LimitName, Tokens, TooManyTokens};

/// One limit of a resource: a bucket of `burst` tokens that gets `refill_amount` tokens every `refill_period`.
///
/// `capacity` is the nominal amount that people quote ("100 a minute"); the bucket's ceiling is `burst`.
/// Amounts are 1 to [`Tokens::MAX`], periods 1 second to [`Limit::MAX_PERIOD_SECONDS`], and burst is not below
/// capacity. Within these bounds no arithmetic on a bucket can overflow.
///
/// ```
/// use zae_limiter_schema::Limit;
///
/// let rpm = Limit::per_minute("rpm", 100)?;
/// let tpm = Limit::per_minute("tpm", 10_000)?.with_burst(15_000)?;
/// assert_eq!(tpm.to_string(), "tpm:10000/min:15000");
/// assert_eq!("tpm:10000:15000".parse::<Limit>()?, tpm);
/// assert!(Limit::per_minute("rpm", 0).is_err());
/// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit {
    name: LimitName,
    capacity: Tokens,
    burst: Tokens,
    refill_amount: Tokens,
    refill_period_seconds: u64,
}

/// Why something is not a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLimit {
    /// Its name breaks a rule.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A number of it is too small or too large.
    #[error("{field} {value} of limit {limit} is invalid: {rule}")]
    Number {
        /// Which number: capacity, burst, refill amount or refill period.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The limit's name.
        limit: LimitName,
        /// The rule it breaks.
        rule: String,
    },
    /// The text form is not one.
    #[error(
        "limit {text:?} is invalid: {rule}; write NAME:CAPACITY[/PERIOD][:BURST], such as rpm:100 or tpd:1000000/day"
    )]
    Text {
        /// The text, shortened.
        text: String,
        /// What is wrong with it.
        rule: String,
    },
}

impl Limit {
    /// The longest refill period: ten years of 366 days.
    pub const MAX_PERIOD_SECONDS: u64 = 3660 * 86_400;

    /// `capacity` tokens each second.
    pub fn per_second(name: impl AsRef<str>, capacity: u64) -> Result<Self, InvalidLimit> {
        Self::custom(name, capacity, capacity, capacity, 1)
    }

    /// `capacity` tokens each minute.
    pub fn per_minute(name: impl AsRef<str>, capacity: u64) -> Result<Self, InvalidLimit> {
        Self::custom(name, capacity, capacity, capacity, 60)
    }

    /// `capacity` tokens each hour.
    pub fn per_hour(name: impl AsRef<str>, capacity: u64) -> Result<Self, InvalidLimit> {
        Self::custom(name, capacity, capacity, capacity, 3600)
    }

    /// `capacity` tokens each day of 24 hours.
    pub fn per_day(name: impl AsRef<str>, capacity: u64) -> Result<Self, InvalidLimit> {
        Self::custom(name, capacity, capacity, capacity, 86_400)
    }

    /// Any limit: `refill_amount` tokens every `refill_period_seconds`, up to `burst` at once.
    ///
    /// ```
    /// use zae_limiter_schema::Limit;
    ///
    /// // 10 tokens every 5 seconds, on a bucket of 600 that may hold 900.
    /// let limit = Limit::custom("rpm", 600, 900, 10, 5)?;
    /// assert_eq!(limit.refill_period_seconds(), 5);
    /// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
    /// ```
    pub fn custom(
        name: impl AsRef<str>,
        capacity: u64,
        burst: u64,
        refill_amount: u64,
        refill_period_seconds: u64,
    ) -> Result<Self, InvalidLimit> {
        Self::from_parts(
            LimitName::parse(name)?,
            capacity,
            burst,
            refill_amount,
            refill_period_seconds,
        )
    }

    /// As [`Limit::custom`], for a name that is already known to be one.
    pub fn from_parts(
        name: LimitName,
        capacity: u64,
        burst: u64,
        refill_amount: u64,
        refill_period_seconds: u64,
    ) -> Result<Self, InvalidLimit> {
        let amount = |field, value| positive_tokens(&name, field, value);
        let (capacity, burst, refill_amount) = (
            amount("capacity", capacity)?,
            amount("burst", burst)?,
            amount("refill amount", refill_amount)?,
        );
        if burst < capacity {
            return Err(InvalidLimit::Number {
                field: "burst",
                value: burst.get(),
                limit: name,
                rule: format!("it must not be below the capacity, {capacity}"),
            });
        }
        if refill_period_seconds == 0 || refill_period_seconds > Self::MAX_PERIOD_SECONDS {
            return Err(InvalidLimit::Number {
                field: "refill period",
                value: refill_period_seconds,
                limit: name,
                rule: format!("it must be 1 to {} seconds", Self::MAX_PERIOD_SECONDS),
            });
        }
        Ok(Self {
            name,
            capacity,
            burst,
            refill_amount,
            refill_period_seconds,
        })
    }

    /// The same limit with another burst, which must not be below the capacity.
    pub fn with_burst(self, burst: u64) -> Result<Self, InvalidLimit> {
        Self::from_parts(
            self.name,
            self.capacity.get(),
            burst,
            self.refill_amount.get(),
            self.refill_period_seconds,
        )
    }

    /// The limit's name.
    pub fn name(&self) -> &LimitName {
        &self.name
    }

    /// The nominal amount.
    pub fn capacity(&self) -> Tokens {
        self.capacity
    }

    /// The most that the bucket holds.
    pub fn burst(&self) -> Tokens {
        self.burst
    }

    /// What comes back in each period.
    pub fn refill_amount(&self) -> Tokens {
        self.refill_amount
    }

    /// The period of the refill, in seconds.
    pub fn refill_period_seconds(&self) -> u64 {
        self.refill_period_seconds
    }
}

fn positive_tokens(limit: &LimitName, field: &'static str, value: u64) -> Result<Tokens, InvalidLimit> {
    let rule = match Tokens::new(value) {
        Ok(tokens) if !tokens.is_zero() => return Ok(tokens),
        Ok(_) => "it must be above 0".to_owned(),
        Err(TooManyTokens(_)) => format!("it must be at most {}", Tokens::MAX),
    };
    Err(InvalidLimit::Number {
        field,
        value,
        limit: limit.clone(),
        rule,
    })
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit({self})")
    }
}

/// The form that audit events and the command line's JSON use.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitFields {
    name: LimitName,
    capacity: u64,
    burst: u64,
    refill_amount: u64,
    refill_period_seconds: u64,
}

impl serde::Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        LimitFields {
            name: self.name.clone(),
            capacity: self.capacity.get(),
            burst: self.burst.get(),
            refill_amount: self.refill_amount.get(),
            refill_period_seconds: self.refill_period_seconds,
        }
        .serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Limit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let f = LimitFields::deserialize(deserializer)?;
        Self::from_parts(
            f.name,
            f.capacity,
            f.burst,
            f.refill_amount,
            f.refill_period_seconds,
        )
        .map_err(serde::de::Error::custom)
    }
}
