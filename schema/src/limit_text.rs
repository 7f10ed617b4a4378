//! The command-line form of a limit: `NAME:CAPACITY[/PERIOD][:BURST][@REFILL]`.
//!
//! `rpm:100` is a hundred a minute, `rps:10/sec:20` ten a second with twenty at once, `tpd:1000000/day` a million a
//! day. A period is `sec`, `min`, `hour`, `day` or a number of seconds such as `90s`. `@REFILL` gives the amount that
//! comes back each period where it is not the capacity.

use std::fmt;
use std::str::FromStr;

use crate::shortened::shortened;
use crate::{InvalidLimit, Limit};

const PERIODS: [(&str, u64); 4] = [("sec", 1), ("min", 60), ("hour", 3600), ("day", 86_400)];

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/", self.name(), self.capacity())?;
        match PERIODS
            .iter()
            .find(|(_, seconds)| *seconds == self.refill_period_seconds())
        {
            Some((name, _)) => f.write_str(name)?,
            None => write!(f, "{}s", self.refill_period_seconds())?,
        }
        if self.burst() != self.capacity() {
            write!(f, ":{}", self.burst())?;
        }
        if self.refill_amount() != self.capacity() {
            write!(f, "@{}", self.refill_amount())?;
        }
        Ok(())
    }
}

impl FromStr for Limit {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let broken = |rule: String| InvalidLimit::Text {
            text: shortened(text),
            rule,
        };
        let number =
            |field: &str, value: &str| parse_number(value).map_err(|rule| broken(format!("{field} {rule}")));

        let (name, rest) = text
            .split_once(':')
            .ok_or_else(|| broken("the capacity is missing".to_owned()))?;
        let (rest, refill) = match rest.split_once('@') {
            Some((rest, refill)) => (rest, Some(number("refill amount", refill)?)),
            None => (rest, None),
        };
        let (rate, burst) = match rest.split_once(':') {
            Some((rate, burst)) => (rate, Some(number("burst", burst)?)),
            None => (rest, None),
        };
        let (capacity, period) = match rate.split_once('/') {
            Some((capacity, period)) => (capacity, parse_period(period).map_err(broken)?),
            None => (rate, 60),
        };
        let capacity = number("capacity", capacity)?;
        Self::custom(
            name,
            capacity,
            burst.unwrap_or(capacity),
            refill.unwrap_or(capacity),
            period,
        )
    }
}

fn parse_number(value: &str) -> Result<u64, String> {
    if value.is_empty() || !value.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("{:?} is not a whole number", shortened(value)));
    }
    value
        .parse()
        .map_err(|_| format!("{} is too large", shortened(value)))
}

fn parse_period(value: &str) -> Result<u64, String> {
    if let Some((_, seconds)) = PERIODS.iter().find(|(name, _)| *name == value) {
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
