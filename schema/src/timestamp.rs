//! Times, to the millisecond, and the text form that the table uses.

use std::fmt;
use std::time::{Duration, SystemTime};

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

const SECONDS_FORMAT: &[BorrowedFormatItem<'static>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");

/// A time in UTC, in milliseconds since 1970, from 1970 to the end of the year 9999.
///
/// ```
/// use zae_limiter_schema::Timestamp;
///
/// let time = Timestamp::from_millis(1_704_067_200_123);
/// assert_eq!(time.to_string(), "2024-01-01T00:00:00Z");
/// assert_eq!(Timestamp::parse("2024-01-01T00:00:00Z").unwrap().millis(), 1_704_067_200_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Text that is not a time of the form `2026-01-31T12:00:00Z`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not a time of the form 2026-01-31T12:00:00Z")]
pub struct InvalidTimestamp {
    value: String,
}

impl Timestamp {
    /// The earliest: the start of 1970.
    pub const MIN: Self = Self(0);
    /// The latest: the end of 9999.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// The timestamp of the given milliseconds since 1970, clamped to the valid range.
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// The timestamp of the given seconds since 1970, clamped to the valid range.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self::from_millis(seconds.saturating_mul(1000))
    }

    /// Milliseconds since the start of 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the start of 1970.
    pub const fn seconds(self) -> i64 {
        self.0 / 1000
    }

    /// The timestamp plus the given milliseconds, clamped to the last valid one.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this time, 0 if it is not earlier.
    pub const fn since(self, earlier: Self) -> i64 {
        if self.0 > earlier.0 { self.0 - earlier.0 } else { 0 }
    }

    /// Reads the table's text form, `2026-01-31T12:00:00Z`.
    pub fn parse(value: &str) -> Result<Self, InvalidTimestamp> {
        // The format alone would take a sign before the year.
        let year_first = value.starts_with(|c: char| c.is_ascii_digit());
        year_first
            .then(|| PrimitiveDateTime::parse(value, SECONDS_FORMAT).ok())
            .flatten()
            .map(|time| time.assume_utc().unix_timestamp())
            .filter(|seconds| (0..=Self::MAX.seconds()).contains(seconds))
            .map(Self::from_seconds)
            .ok_or_else(|| InvalidTimestamp {
                value: value.chars().take(50).collect(),
            })
    }

    /// The same time as a calendar date. Total: every value of this type is in the calendar's range.
    pub(crate) fn calendar(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(self.seconds()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

/// The table's text form, to the second.
/// To the millisecond. Times before 1970 become [`Timestamp::MIN`], and times after the year 9999 [`Timestamp::MAX`].
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use zae_limiter_schema::Timestamp;
///
/// let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
/// assert_eq!(Timestamp::from(time), Timestamp::from_millis(1_500));
/// assert_eq!(SystemTime::from(Timestamp::from_millis(1_500)), time);
/// ```
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        Self::UNIX_EPOCH + Duration::from_millis(time.millis().unsigned_abs())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.calendar().format(SECONDS_FORMAT).map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <String as serde::Deserialize>::deserialize(deserializer)?;
        Self::parse(&value).map_err(serde::de::Error::custom)
    }
}
