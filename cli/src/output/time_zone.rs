//! Times for people, in UTC or in the local time zone.

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};
use zae_limiter::Timestamp;

const UTC: &[BorrowedFormatItem<'static>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]Z");
const LOCAL: &[BorrowedFormatItem<'static>] = format_description!(
    "[year]-[month]-[day] [hour]:[minute]:[second][offset_hour sign:mandatory]:[offset_minute]"
);

/// The time zone in which times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    Utc,
    /// The time zone of this machine.
    Local,
}

impl Zone {
    /// Formats a time, to the second.
    pub(crate) fn show(self, timestamp: Timestamp) -> String {
        let Ok(utc) = OffsetDateTime::from_unix_timestamp(timestamp.seconds()) else {
            return timestamp.to_string();
        };
        let shown = match self {
            Self::Utc => utc.format(UTC),
            Self::Local => UtcOffset::local_offset_at(utc)
                .map_or_else(|_| utc.format(UTC), |offset| utc.to_offset(offset).format(LOCAL)),
        };
        shown.unwrap_or_else(|_| timestamp.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_times_end_with_z() {
        assert_eq!(
            Zone::Utc.show(Timestamp::from_seconds(1_704_067_200)),
            "2024-01-01 00:00:00Z"
        );
        assert_eq!(Zone::Utc.show(Timestamp::MAX), "9999-12-31 23:59:59Z");
    }
}
