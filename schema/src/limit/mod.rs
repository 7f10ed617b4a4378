//! What a limit is: its name, its kind and its numbers.
//!
//! There are three kinds. A [`Rate`] is a bucket of tokens that refills, a [`Quota`] is an amount per period, and a
//! [`Concurrency`] limit bounds the calls in flight. Each has a file of its own here; how a bucket stores and writes it is
//! in [`bucket`](crate::bucket).

mod concurrency;
mod json;
mod period;
mod quota;
mod rate;
mod set;
mod text;
mod thresholds;
mod zone;

use std::fmt;
use std::time::Duration;

use crate::{InvalidName, LimitName, Tokens, TooManyTokens};

pub use concurrency::Concurrency;
pub use json::LimitField;
pub use period::{Boundary, QuotaPeriod, Weekday};
pub use quota::Quota;
pub use rate::Rate;
pub use set::{DuplicateLimit, LimitSet};
pub use thresholds::Thresholds;
pub use zone::Zone;

/// One limit of a resource.
///
/// A rate is a bucket of `burst` tokens that gets `refill_amount` tokens every `refill_period`; `capacity` is the nominal
/// amount that people quote ("100 a minute"). A quota is an amount per calendar period, or per period from first use. A
/// concurrency limit is the number of calls that may be in flight at once. Amounts are 1 to [`Tokens::MAX`], refill periods
/// 1 second to [`Limit::MAX_PERIOD_SECONDS`], and burst is not below capacity. Within these bounds no arithmetic on a bucket
/// can overflow.
///
/// ```
/// use std::time::Duration;
/// use zae_limiter_schema::{Limit, QuotaPeriod};
///
/// let rpm = Limit::per_minute("rpm", 100)?;
/// let tpm = Limit::per_minute("tpm", 10_000)?.with_burst(15_000)?;
/// assert_eq!(tpm.to_string(), "tpm:10000/min:15000");
/// assert_eq!("tpm:10000:15000".parse::<Limit>()?, tpm);
/// assert!(Limit::per_minute("rpm", 0).is_err());
///
/// let spend = Limit::quota("spend", 500, QuotaPeriod::month().in_zone("Europe/Berlin")?)?;
/// assert_eq!(spend.to_string(), "spend:500 per month in Europe/Berlin");
/// let parallel = Limit::concurrency("parallel", 8, Duration::from_secs(600))?;
/// assert_eq!(parallel.to_string(), "parallel:8 at once for 10min");
/// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit {
    name: LimitName,
    kind: LimitKind,
}

/// What kind of limit it is, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitKind {
    /// Tokens that refill steadily.
    Rate(Rate),
    /// An amount per period.
    Quota(Quota),
    /// Calls in flight.
    Concurrency(Concurrency),
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
        /// Which number: capacity, burst, refill amount, refill period, amount, permits, expiry or alert threshold.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The limit's name.
        limit: LimitName,
        /// The rule it breaks.
        rule: String,
    },
    /// The text form is not one.
    #[error("limit {text:?} is invalid: {rule}; write {}", Limit::FORMS)]
    Text {
        /// The text, shortened.
        text: String,
        /// What is wrong with it.
        rule: String,
    },
    /// The period of a quota is not one.
    #[error("quota period {text:?} is invalid: {rule}")]
    Period {
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

    /// Any rate: `refill_amount` tokens every `refill_period_seconds`, up to `burst` at once.
    ///
    /// ```
    /// use zae_limiter_schema::Limit;
    ///
    /// // 10 tokens every 5 seconds, on a bucket of 600 that may hold 900.
    /// let limit = Limit::custom("rpm", 600, 900, 10, 5)?;
    /// assert_eq!(limit.rate().unwrap().refill_period_seconds(), 5);
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
        let rate = Rate::new(&name, capacity, burst, refill_amount, refill_period_seconds)?;
        Ok(Self {
            name,
            kind: LimitKind::Rate(rate),
        })
    }

    /// At most `amount` in each period.
    ///
    /// ```
    /// use zae_limiter_schema::{Limit, QuotaPeriod};
    ///
    /// let spend = Limit::quota("spend", 500, QuotaPeriod::month().in_zone("Europe/Berlin")?)?;
    /// assert_eq!(spend.capacity().get(), 500);
    /// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
    /// ```
    pub fn quota(name: impl AsRef<str>, amount: u64, period: QuotaPeriod) -> Result<Self, InvalidLimit> {
        let name = LimitName::parse(name)?;
        let amount = positive_tokens(&name, "amount", amount)?;
        Ok(Self::from_kind(
            name,
            LimitKind::Quota(Quota::new(amount, period)),
        ))
    }

    /// At most `permits` calls in flight. A permit comes back when the lease ends, or this long after the call if its
    /// process has died.
    pub fn concurrency(
        name: impl AsRef<str>,
        permits: u64,
        expires_after: Duration,
    ) -> Result<Self, InvalidLimit> {
        let name = LimitName::parse(name)?;
        if expires_after.subsec_nanos() != 0 {
            return Err(InvalidLimit::Number {
                field: "expiry in milliseconds",
                value: u64::try_from(expires_after.as_millis()).unwrap_or(u64::MAX),
                limit: name,
                rule: "it must be whole seconds".to_owned(),
            });
        }
        let concurrency = Concurrency::new(&name, permits, expires_after.as_secs())?;
        Ok(Self::from_kind(name, LimitKind::Concurrency(concurrency)))
    }

    /// A limit of this name and kind.
    pub const fn from_kind(name: LimitName, kind: LimitKind) -> Self {
        Self { name, kind }
    }

    /// The same rate with another burst, which must not be below the capacity. Other kinds have no burst.
    pub fn with_burst(self, burst: u64) -> Result<Self, InvalidLimit> {
        match self.kind {
            LimitKind::Rate(rate) => Self::from_parts(
                self.name,
                rate.capacity().get(),
                burst,
                rate.refill_amount().get(),
                rate.refill_period_seconds(),
            ),
            LimitKind::Quota(_) | LimitKind::Concurrency(_) => Err(InvalidLimit::Number {
                field: "burst",
                value: burst,
                limit: self.name,
                rule: "only a rate has a burst".to_owned(),
            }),
        }
    }

    /// The limit's name.
    pub fn name(&self) -> &LimitName {
        &self.name
    }

    /// Its kind, with its numbers.
    pub fn kind(&self) -> &LimitKind {
        &self.kind
    }

    /// Its numbers, if it is a rate.
    pub fn rate(&self) -> Option<&Rate> {
        match &self.kind {
            LimitKind::Rate(rate) => Some(rate),
            LimitKind::Quota(_) | LimitKind::Concurrency(_) => None,
        }
    }

    /// The nominal amount: tokens of a rate, the amount of a quota, or permits.
    pub fn capacity(&self) -> Tokens {
        match &self.kind {
            LimitKind::Rate(rate) => rate.capacity(),
            LimitKind::Quota(quota) => quota.amount(),
            LimitKind::Concurrency(concurrency) => concurrency.permits(),
        }
    }

    /// The most that can be taken at once.
    pub fn burst(&self) -> Tokens {
        match &self.kind {
            LimitKind::Rate(rate) => rate.burst(),
            LimitKind::Quota(quota) => quota.amount(),
            LimitKind::Concurrency(concurrency) => concurrency.permits(),
        }
    }
}

/// What people count of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted {
    /// What is available of a rate.
    Available,
    /// What was used of a quota.
    Used,
    /// Which permits are held of a concurrency limit.
    Held,
}

impl LimitKind {
    /// What people count of it.
    pub const fn counted(&self) -> Counted {
        match self {
            Self::Rate(_) => Counted::Available,
            Self::Quota(_) => Counted::Used,
            Self::Concurrency(_) => Counted::Held,
        }
    }

    /// How long what a call holds lasts if nobody releases or renews it. Nothing for kinds that hold nothing.
    pub const fn expires_after(&self) -> Option<Duration> {
        match self {
            Self::Rate(_) | Self::Quota(_) => None,
            Self::Concurrency(limit) => Some(Duration::from_secs(limit.expires_after_seconds())),
        }
    }

    /// In how many seconds this many tokens come back, rounded up. Nothing for kinds that do not refill.
    pub fn seconds_to_refill(&self, tokens: u64) -> Option<u128> {
        match self {
            Self::Rate(rate) => Some(rate.seconds_to_refill(tokens)),
            Self::Quota(_) | Self::Concurrency(_) => None,
        }
    }

    /// The kind as a word: `rate`, `quota` or `concurrency`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Quota(_) => "quota",
            Self::Concurrency(_) => "concurrency",
        }
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
