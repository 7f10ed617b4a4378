//! The periods of quotas: when they begin and end.
//!
//! A calendar period begins at a local time. Where that time is skipped by a change of the clock, the period begins as much
//! later as the clock was set forward; where it occurs twice, the period begins at its first occurrence. So a day may have 23
//! or 25 hours. A period that begins on a day that its month does not have begins on the last day of that month.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{Span, ToSpan as _};

use super::text::{duration_text, parse_duration, parse_number};
use super::{InvalidLimit, Limit, Zone};
use crate::Timestamp;
use crate::shortened::shortened;

/// The day on which a week begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the days of the week")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// When calendar periods begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boundary {
    /// Every hour.
    Hour,
    /// Every day.
    Day,
    /// Every week, on this day.
    Week(Weekday),
    /// Every month, on this day: 1 to 31.
    Month(u8),
    /// Every year, on January 1.
    Year,
}

/// The period of a quota.
///
/// ```
/// use std::time::Duration;
/// use zae_limiter_schema::{QuotaPeriod, Timestamp, Weekday};
///
/// let weeks = QuotaPeriod::week_from(Weekday::Sunday).at_hour(6)?.in_zone("America/New_York")?;
/// assert_eq!(weeks.to_string(), "week from sunday at 06:00 in America/New_York");
/// assert_eq!("week from sunday at 06:00 in America/New_York".parse(), Ok(weeks));
///
/// let months = QuotaPeriod::month();
/// let now = Timestamp::parse("2026-02-11T12:00:00Z").unwrap();
/// assert_eq!(months.end_after(now).to_string(), "2026-03-01T00:00:00Z");
/// assert_eq!(QuotaPeriod::from_first_use(Duration::from_secs(18_000))?.to_string(), "5h from first use");
/// # Ok::<(), zae_limiter_schema::InvalidLimit>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaPeriod(Repeats);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repeats {
    Calendar {
        boundary: Boundary,
        hour: u8,
        zone: Zone,
    },
    FromFirstUse {
        seconds: u64,
    },
}

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

impl QuotaPeriod {
    const fn calendar(boundary: Boundary, zone: Zone) -> Self {
        Self(Repeats::Calendar {
            boundary,
            hour: 0,
            zone,
        })
    }

    /// Hours.
    pub fn hour() -> Self {
        Self::calendar(Boundary::Hour, Zone::utc())
    }

    /// Days.
    pub fn day() -> Self {
        Self::calendar(Boundary::Day, Zone::utc())
    }

    /// Weeks that begin on Monday.
    pub fn week() -> Self {
        Self::week_from(Weekday::Monday)
    }

    /// Weeks that begin on this day.
    pub fn week_from(day: Weekday) -> Self {
        Self::calendar(Boundary::Week(day), Zone::utc())
    }

    /// Months that begin on the first.
    pub fn month() -> Self {
        Self::calendar(Boundary::Month(1), Zone::utc())
    }

    /// Months that begin on this day; in a month without it, on the last day.
    pub fn month_from(day: u8) -> Result<Self, InvalidLimit> {
        if (1..=31).contains(&day) {
            Ok(Self::calendar(Boundary::Month(day), Zone::utc()))
        } else {
            Err(invalid(
                &format!("month from day {day}"),
                "the day must be 1 to 31",
            ))
        }
    }

    /// Years.
    pub fn year() -> Self {
        Self::calendar(Boundary::Year, Zone::utc())
    }

    /// Periods of this length. Each begins with the first admitted call after the one before.
    pub fn from_first_use(length: Duration) -> Result<Self, InvalidLimit> {
        let seconds = length.as_secs();
        if length.subsec_nanos() != 0 || seconds == 0 || seconds > Limit::MAX_PERIOD_SECONDS {
            let rule = format!(
                "it must be whole seconds, 1 to {} of them",
                Limit::MAX_PERIOD_SECONDS
            );
            return Err(invalid(
                &format!("{}s from first use", length.as_secs_f64()),
                rule,
            ));
        }
        Ok(Self(Repeats::FromFirstUse { seconds }))
    }

    /// The same periods, beginning at this hour of the day instead of midnight. Not for periods of an hour.
    pub fn at_hour(self, at: u8) -> Result<Self, InvalidLimit> {
        let rule = match &self.0 {
            Repeats::Calendar { boundary, .. } if *boundary == Boundary::Hour => {
                "an hour has no hour of the day"
            }
            Repeats::FromFirstUse { .. } => "a period from first use has no hour of the day",
            Repeats::Calendar { .. } if at > 23 => "the hour must be 0 to 23",
            Repeats::Calendar { boundary, zone, .. } => {
                return Ok(Self(Repeats::Calendar {
                    boundary: *boundary,
                    hour: at,
                    zone: zone.clone(),
                }));
            }
        };
        Err(invalid(&format!("{self} at {at:02}:00"), rule))
    }

    /// The same periods in a time zone instead of UTC.
    pub fn in_zone(self, name: &str) -> Result<Self, InvalidLimit> {
        match self.0 {
            Repeats::Calendar { boundary, hour, .. } => Ok(Self(Repeats::Calendar {
                boundary,
                hour,
                zone: Zone::parse(name)?,
            })),
            Repeats::FromFirstUse { .. } => Err(invalid(
                &format!("{self} in {name}"),
                "a period from first use has no time zone",
            )),
        }
    }

    /// True if a period begins with the first use after the one before, and not by the calendar.
    pub const fn is_from_first_use(&self) -> bool {
        matches!(self.0, Repeats::FromFirstUse { .. })
    }

    /// The end of the period that a call at this time is in, if the call begins one: the next boundary of the calendar, or a
    /// whole period from now. Always later than `now`.
    pub fn end_after(&self, now: Timestamp) -> Timestamp {
        self.around(now).1
    }

    /// About how long a period is, in seconds: the one that a call at this time is in.
    pub fn length_seconds(&self, now: Timestamp) -> u64 {
        let (start, end) = self.around(now);
        u64::try_from(end.since(start) / 1000).unwrap_or(0)
    }

    /// Start and end of the period around a time.
    fn around(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        match &self.0 {
            Repeats::FromFirstUse { seconds } => {
                let millis = i64::try_from(*seconds).unwrap_or(i64::MAX).saturating_mul(1000);
                (now, now.plus_millis(millis))
            }
            Repeats::Calendar { boundary, hour, zone } => Calendar {
                boundary: *boundary,
                hour: *hour,
                zone,
            }
            .around(now),
        }
    }
}

struct Calendar<'a> {
    boundary: Boundary,
    hour: u8,
    zone: &'a Zone,
}

impl Calendar<'_> {
    fn around(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let Ok(instant) = jiff::Timestamp::from_millisecond(now.millis()) else {
            return (now, Timestamp::MAX);
        };
        let local = instant.to_zoned(self.zone.rules().clone());
        if self.boundary == Boundary::Hour {
            const HOUR: i64 = 3_600_000;
            let offset = i64::from(local.offset().seconds()) * 1000;
            let into_hour = (now.millis() + offset).rem_euclid(HOUR);
            let start = now.plus_millis(-into_hour);
            return (start, start.plus_millis(HOUR));
        }
        // The period of today's date may not have begun yet: it begins at an hour of its first day. Where a zone has skipped a
        // day, neither has the one before.
        let mut begins = self.first_day(local.date());
        while self.instant(begins) > now {
            let before = self.step(begins, -1);
            if before >= begins {
                break;
            }
            begins = before;
        }
        loop {
            let next = self.step(begins, 1);
            let end = self.instant(next);
            if end > now || next <= begins {
                return (self.instant(begins), end.max(now.plus_millis(1)));
            }
            begins = next;
        }
    }

    /// The first day of the period that a day is in.
    fn first_day(&self, day: Date) -> Date {
        let started = match self.boundary {
            Boundary::Hour | Boundary::Day => Ok(day),
            Boundary::Week(weekday) => {
                let passed =
                    (i32::from(day.weekday().to_monday_zero_offset()) - weekday as i32).rem_euclid(7);
                day.checked_sub(passed.days())
            }
            Boundary::Month(first) => {
                let this = on_day(day, first);
                if this <= day {
                    Ok(this)
                } else {
                    day.first_of_month()
                        .checked_sub(1.day())
                        .map(|last| on_day(last, first))
                }
            }
            Boundary::Year => Ok(day.first_of_year()),
        };
        started.unwrap_or(day)
    }

    /// The first day of the period before or after the one that begins on this day. The same day at the end of time.
    fn step(&self, begins: Date, by: i8) -> Date {
        let span: Span = match self.boundary {
            Boundary::Hour | Boundary::Day => by.days(),
            Boundary::Week(_) => by.weeks(),
            Boundary::Month(_) => by.months(),
            Boundary::Year => by.years(),
        };
        let stepped = match self.boundary {
            // From the first of the month: the 31st plus a month is not the 31st of the month after.
            Boundary::Month(first) => begins
                .first_of_month()
                .checked_add(span)
                .map(|month| on_day(month, first)),
            Boundary::Hour | Boundary::Day | Boundary::Week(_) | Boundary::Year => begins.checked_add(span),
        };
        stepped.unwrap_or(begins)
    }

    /// When the period that begins on this day begins.
    fn instant(&self, day: Date) -> Timestamp {
        let local = day.at(i8::try_from(self.hour).unwrap_or(0), 0, 0, 0);
        let instant = self.zone.rules().to_ambiguous_zoned(local).compatible();
        instant.map_or(Timestamp::MAX, |instant| {
            Timestamp::from_millis(instant.timestamp().as_millisecond())
        })
    }
}

/// A day or an hour: one or two digits.
fn parse_small(text: &str) -> Option<u8> {
    let number = parse_number(text).ok().filter(|_| text.len() <= 2)?;
    u8::try_from(number).ok()
}

/// This day of the month, or its last.
fn on_day(month: Date, day: u8) -> Date {
    let day = i8::try_from(day).unwrap_or(31).min(month.days_in_month());
    month.with().day(day).build().unwrap_or(month)
}

fn invalid(text: &str, rule: impl Into<String>) -> InvalidLimit {
    InvalidLimit::Period {
        text: shortened(text),
        rule: rule.into(),
    }
}

impl fmt::Display for QuotaPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repeats::FromFirstUse { seconds } => write!(f, "{} from first use", duration_text(*seconds)),
            Repeats::Calendar { boundary, hour, zone } => {
                match boundary {
                    Boundary::Hour => f.write_str("hour")?,
                    Boundary::Day => f.write_str("day")?,
                    Boundary::Week(Weekday::Monday) => f.write_str("week")?,
                    Boundary::Week(day) => {
                        let named = WEEKDAYS.iter().find(|(_, known)| known == day);
                        write!(f, "week from {}", named.map_or("", |(name, _)| name))?;
                    }
                    Boundary::Month(1) => f.write_str("month")?,
                    Boundary::Month(day) => write!(f, "month from day {day}")?,
                    Boundary::Year => f.write_str("year")?,
                }
                if *hour != 0 {
                    write!(f, " at {hour:02}:00")?;
                }
                if !zone.is_utc() {
                    write!(f, " in {}", zone.name())?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for QuotaPeriod {
    type Err = InvalidLimit;

    fn from_str(text: &str) -> Result<Self, InvalidLimit> {
        let broken = |rule: &str| invalid(text, rule);
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (period, mut rest) = match words.as_slice() {
            [length, "from", "first", "use", rest @ ..] => {
                let seconds = parse_duration(length).map_err(|rule| broken(&format!("its length {rule}")))?;
                (Self::from_first_use(Duration::from_secs(seconds))?, rest)
            }
            ["hour", rest @ ..] => (Self::hour(), rest),
            ["day", rest @ ..] => (Self::day(), rest),
            ["week", "from", day, rest @ ..] => {
                let named = WEEKDAYS.iter().find(|(name, _)| name.eq_ignore_ascii_case(day));
                let (_, day) = named.ok_or_else(|| broken("the day of the week must be monday to sunday"))?;
                (Self::week_from(*day), rest)
            }
            ["week", rest @ ..] => (Self::week(), rest),
            ["month", "from", "day", day, rest @ ..] => {
                let day = parse_small(day).ok_or_else(|| broken("the day must be 1 to 31"))?;
                (Self::month_from(day)?, rest)
            }
            ["month", rest @ ..] => (Self::month(), rest),
            ["year", rest @ ..] => (Self::year(), rest),
            _ => {
                return Err(broken(
                    "it must be hour, day, week, week from sunday, month, month from day 15, year or a time such as 5h from first use",
                ));
            }
        };
        let mut period = period;
        if let ["at", hour, after @ ..] = rest {
            let hour = hour
                .strip_suffix(":00")
                .and_then(parse_small)
                .ok_or_else(|| broken("the hour must be 00:00 to 23:00"))?;
            period = period.at_hour(hour)?;
            rest = after;
        }
        if let ["in", zone, after @ ..] = rest {
            period = period.in_zone(zone)?;
            rest = after;
        }
        match rest {
            [] => Ok(period),
            [word, ..] => Err(broken(&format!("{:?} does not belong here", shortened(word)))),
        }
    }
}

impl serde::Serialize for QuotaPeriod {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for QuotaPeriod {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
