//! Limits as text: one grammar for the command line, limits files and the page.
//!
//! ```text
//! LIMIT       = NAME ":" ( RATE | QUOTA | CONCURRENCY )
//! RATE        = CAPACITY [ "/" UNIT ] [ ":" BURST ] [ "@" REFILL ]     100  10/sec:20  1000000/day  600/90s@10
//! QUOTA       = AMOUNT " per " PERIOD [ " alert at " ALERTS ]           500 per month in Europe/Berlin alert at 80% 100%
//! CONCURRENCY = PERMITS " at once for " DURATION                       8 at once for 10min
//! UNIT        = "sec" | "min" | "hour" | "day" | SECONDS "s"
//! PERIOD      = DURATION " from first use"
//!             | ( "hour" | "day" | WEEK | MONTH | "year" ) [ " at " HH ":00" ] [ " in " ZONE ]
//! WEEK        = "week" [ " from " WEEKDAY ]                            Monday where none is given
//! MONTH       = "month" [ " from day " DAY ]                           the 1st where none is given
//! ALERTS      = PERCENT "%" { " " PERCENT "%" }                        80% 100%
//! DURATION    = NUMBER ( "s" | "min" | "h" | "d" )
//! ```
//!
//! A rate without a unit is per minute. `@REFILL` is what comes back each period where that is not the capacity. Amounts may be
//! money, such as `$12.50`: its millionths of a dollar. Display prints the same grammar, in its shortest form, and the amounts
//! of the limit `usd` as money.

use std::fmt;
use std::str::FromStr;

use super::{Concurrency, LimitKind, Quota, Rate, Thresholds, positive_tokens};
use crate::money::{MicroDollars, Prices, dollars};
use crate::shortened::shortened;
use crate::{InvalidLimit, Limit, LimitName, Tokens};

const UNITS: [(&str, u64); 4] = [("sec", 1), ("min", 60), ("hour", 3600), ("day", 86_400)];
/// Largest first: a duration is printed in the largest that divides it.
const DURATIONS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];

impl Limit {
    /// The forms of a limit's text, for messages.
    pub(super) const FORMS: &str = "NAME:CAPACITY[/PERIOD][:BURST], such as rpm:100, spend:500 per month or parallel:8 at once for 10min";
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let money = self.name().as_str() == Prices::DEFAULT_MONEY_LIMIT;
        write!(f, "{}:{}", self.name(), self.kind().text(money))
    }
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(false))
    }
}

impl LimitKind {
    /// What follows the name of a limit; its amounts in dollars if it counts money.
    ///
    /// ```
    /// use zae_limiter_schema::Limit;
    ///
    /// let limit: Limit = "spend:$12.50 per month".parse()?;
    /// assert_eq!(limit.kind().text(true), "$12.50 per month");
    /// assert_eq!(limit.kind().text(false), "12500000 per month");
    /// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
    /// ```
    pub fn text(&self, money: bool) -> String {
        let amount = |tokens: Tokens| amount_text(tokens, money);
        match self {
            Self::Rate(rate) => rate.text(amount),
            Self::Quota(quota) => {
                let text = format!("{} per {}", amount(quota.amount()), quota.period());
                if quota.alerts().is_empty() {
                    text
                } else {
                    format!("{text} alert at {}", quota.alerts())
                }
            }
            Self::Concurrency(concurrency) => {
                let expiry = duration_text(concurrency.expires_after_seconds());
                format!("{} at once for {expiry}", concurrency.permits())
            }
        }
    }
}

impl Rate {
    fn text(&self, amount: impl Fn(Tokens) -> String) -> String {
        let seconds = self.refill_period_seconds();
        let unit = UNITS.iter().find(|(_, length)| *length == seconds);
        let unit = unit.map_or_else(|| format!("{seconds}s"), |(name, _)| (*name).to_owned());
        let mut text = format!("{}/{unit}", amount(self.capacity()));
        if self.burst() != self.capacity() {
            text = format!("{text}:{}", amount(self.burst()));
        }
        if self.refill_amount() != self.capacity() {
            text = format!("{text}@{}", amount(self.refill_amount()));
        }
        text
    }
}

/// Whole dollars without cents.
fn amount_text(tokens: Tokens, money: bool) -> String {
    if !money {
        return tokens.to_string();
    }
    let text = dollars(tokens.get().into());
    text.strip_suffix(".00").unwrap_or(&text).to_owned()
}

impl FromStr for Limit {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let (name, kind) = text.split_once(':').ok_or_else(|| InvalidLimit::Text {
            text: shortened(text),
            rule: "the capacity is missing".to_owned(),
        })?;
        let name = LimitName::parse(name)?;
        let kind = LimitKind::parse(&name, kind, text)?;
        Ok(Self::from_kind(name, kind))
    }
}

impl LimitKind {
    /// Reads what follows the name of a limit, such as `100/min` or `8 at once for 10min`.
    ///
    /// ```
    /// use zae_limiter_schema::{LimitKind, LimitName};
    ///
    /// let kind = LimitKind::parse_for(&LimitName::parse("parallel")?, "8 at once for 600s")?;
    /// assert_eq!(kind.to_string(), "8 at once for 10min");
    /// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
    /// ```
    pub fn parse_for(limit: &LimitName, text: &str) -> Result<Self, InvalidLimit> {
        Self::parse(limit, text, text)
    }

    /// `shown` is the text that a message shows.
    fn parse(limit: &LimitName, text: &str, shown: &str) -> Result<Self, InvalidLimit> {
        let broken = |rule: String| InvalidLimit::Text {
            text: shortened(shown),
            rule,
        };
        let number =
            |field: &str, value: &str| parse_amount(value).map_err(|rule| broken(format!("{field} {rule}")));
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words.as_slice() {
            [permits, "at", "once", rest @ ..] => {
                let ["for", expiry] = rest else {
                    let rule = "after \"at once\" it needs the expiry of a permit, such as \"for 10min\"";
                    return Err(broken(rule.to_owned()));
                };
                let permits = parse_number(permits).map_err(|rule| broken(format!("permits {rule}")))?;
                let seconds = parse_duration(expiry).map_err(|rule| broken(format!("expiry {rule}")))?;
                return Concurrency::new(limit, permits, seconds).map(Self::Concurrency);
            }
            [amount, "per", period @ ..] => {
                let amount = positive_tokens(limit, "amount", number("amount", amount)?)?;
                let alert = period.iter().position(|word| *word == "alert");
                let (period, alerts) = period.split_at(alert.unwrap_or(period.len()));
                let quota = Quota::new(amount, period.join(" ").parse()?);
                let percentages = parse_alerts(alerts).map_err(broken)?;
                let alerts = Thresholds::new(limit, percentages)?;
                return Ok(Self::Quota(quota.with_alerts(alerts)));
            }
            _ => {}
        }
        let (rest, refill) = match text.split_once('@') {
            Some((rest, refill)) => (rest, Some(number("refill amount", refill)?)),
            None => (text, None),
        };
        let (rate, burst) = match rest.split_once(':') {
            Some((rate, burst)) => (rate, Some(number("burst", burst)?)),
            None => (rest, None),
        };
        let (capacity, period) = match rate.split_once('/') {
            Some((capacity, unit)) => (capacity, parse_unit(unit).map_err(broken)?),
            None => (rate, 60),
        };
        let capacity = number("capacity", capacity)?;
        let burst = burst.unwrap_or(capacity);
        Rate::new(limit, capacity, burst, refill.unwrap_or(capacity), period).map(Self::Rate)
    }
}

/// The percentages of words such as `alert at 80% 100%`.
fn parse_alerts(words: &[&str]) -> Result<Vec<u64>, String> {
    let percentages = match words {
        [] => return Ok(Vec::new()),
        ["alert", "at", percentages @ ..] if !percentages.is_empty() => percentages,
        _ => {
            return Err(
                "\"alert\" must be followed by \"at\" and percentages, such as \"alert at 80% 100%\""
                    .to_owned(),
            );
        }
    };
    let percentages = percentages.iter().map(|word| {
        let number = word
            .strip_suffix('%')
            .and_then(|digits| parse_number(digits).ok());
        number.ok_or_else(|| format!("{:?} is not a percentage such as 80%", shortened(word)))
    });
    percentages.collect()
}

/// A number, or money as the number of its millionths of a dollar.
fn parse_amount(value: &str) -> Result<u64, String> {
    if !value.starts_with('$') {
        return parse_number(value);
    }
    let money = value.parse::<MicroDollars>();
    money
        .map(MicroDollars::get)
        .map_err(|error| format!("{:?} is invalid: {}", shortened(value), error.rule()))
}

pub(super) fn parse_number(value: &str) -> Result<u64, String> {
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("{:?} is not a whole number", shortened(value)));
    }
    value
        .parse()
        .map_err(|_| format!("{} is too large", shortened(value)))
}

fn parse_unit(value: &str) -> Result<u64, String> {
    if let Some((_, seconds)) = UNITS.iter().find(|(name, _)| *name == value) {
        return Ok(*seconds);
    }
    value
        .strip_suffix('s')
        .and_then(|seconds| parse_number(seconds).ok())
        .ok_or_else(|| {
            format!(
                "period {:?} is not sec, min, hour, day or a number of seconds such as 90s",
                shortened(value)
            )
        })
}

/// Seconds of a time such as `10min`.
pub(super) fn parse_duration(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = DURATIONS.iter().find(|(name, _)| *name == unit);
    let seconds = unit.and_then(|(_, seconds)| parse_number(number).ok()?.checked_mul(*seconds));
    seconds.ok_or_else(|| format!("{:?} is not a time such as 90s, 10min, 5h or 7d", shortened(text)))
}

/// A time in its largest unit, such as `10min` for 600 seconds.
pub(super) fn duration_text(seconds: u64) -> String {
    let unit = DURATIONS.iter().find(|(_, unit)| seconds.is_multiple_of(*unit));
    let (name, unit) = unit.unwrap_or(&("s", 1));
    format!("{}{name}", seconds / unit)
}
