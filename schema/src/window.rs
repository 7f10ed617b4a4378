//! The windows of usage snapshots: hours, days and months in UTC.

use std::fmt;
use std::str::FromStr;

use time::{Date, Month, Time};

use crate::Timestamp;

/// How long one usage snapshot counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowKind {
    /// An hour of the clock.
    Hourly,
    /// A day in UTC.
    Daily,
    /// A calendar month in UTC.
    Monthly,
}

/// Text that names no kind of window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("window {value:?} is invalid: it must be hourly, daily or monthly")]
pub struct InvalidWindow {
    pub(crate) value: String,
}

impl WindowKind {
    /// Every kind, shortest first.
    pub const ALL: [Self; 3] = [Self::Hourly, Self::Daily, Self::Monthly];

    /// The value of the attribute `window`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hourly => "hourly",
            Self::Daily => "daily",
            Self::Monthly => "monthly",
        }
    }

    /// The window of this kind that holds the time.
    ///
    /// ```
    /// use zae_limiter_schema::{Timestamp, WindowKind};
    ///
    /// let window = WindowKind::Monthly.window_at(Timestamp::parse("2024-02-29T23:59:59Z").unwrap());
    /// assert_eq!(window.start().to_string(), "2024-02-01T00:00:00Z");
    /// assert_eq!(window.end().to_string(), "2024-03-01T00:00:00Z");
    /// assert_eq!(window.key(), "2024-02");
    /// ```
    pub fn window_at(self, time: Timestamp) -> Window {
        let calendar = time.calendar();
        let (date, time) = match self {
            Self::Hourly => (
                calendar.date(),
                Time::from_hms(calendar.hour(), 0, 0).unwrap_or(Time::MIDNIGHT),
            ),
            Self::Daily => (calendar.date(), Time::MIDNIGHT),
            Self::Monthly => (
                calendar.date().replace_day(1).unwrap_or(calendar.date()),
                Time::MIDNIGHT,
            ),
        };
        let start = date.with_time(time).assume_utc().unix_timestamp();
        Window {
            kind: self,
            start: Timestamp::from_seconds(start),
        }
    }
}

impl fmt::Display for WindowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for WindowKind {
    type Err = InvalidWindow;

    fn from_str(value: &str) -> Result<Self, InvalidWindow> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == value)
            .ok_or_else(|| InvalidWindow {
                value: value.chars().take(50).collect(),
            })
    }
}

/// One hour, day or month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    kind: WindowKind,
    start: Timestamp,
}

impl Window {
    /// Hour, day or month.
    pub const fn kind(self) -> WindowKind {
        self.kind
    }

    /// When the window starts.
    pub const fn start(self) -> Timestamp {
        self.start
    }

    /// When the window ends, exclusive.
    pub fn end(self) -> Timestamp {
        match self.kind {
            WindowKind::Hourly => self.start.plus_millis(3_600_000),
            WindowKind::Daily => self.start.plus_millis(86_400_000),
            WindowKind::Monthly => self.next_month(),
        }
    }

    fn next_month(self) -> Timestamp {
        let date = self.start.calendar().date();
        let year = if date.month() == Month::December {
            date.year() + 1
        } else {
            date.year()
        };
        Date::from_calendar_date(year, date.month().next(), 1).map_or(Timestamp::MAX, |first| {
            Timestamp::from_seconds(first.midnight().assume_utc().unix_timestamp())
        })
    }

    /// The part of the sort key that names the window. Hours, days and months have keys of different lengths,
    /// so that the hour at midnight and its day are two records.
    pub fn key(self) -> String {
        let text = self.start.to_string();
        match self.kind {
            WindowKind::Hourly => text,
            WindowKind::Daily => text[..10].to_owned(),
            WindowKind::Monthly => text[..7].to_owned(),
        }
    }
}
