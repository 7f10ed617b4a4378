//! From the text of an argument to a value.

use std::time::Duration;

use zae_limiter::{ConfigLevel, LimitName, Resource, Timestamp};

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// A length of time: `500ms`, `5s`, `2m`, `1h`, `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, millis)| number.parse::<u64>().ok()?.checked_mul(*millis))
        .map(Duration::from_millis)
        .ok_or_else(|| "write a number and ms, s, m, h or d, such as 5s".to_owned())
}

/// A moment: `2026-01-31T12:00:00Z`, `2026-01-31` (its start, in UTC), or how long ago (`24h`, `7d`).
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    let utc = text.strip_suffix("+00:00").unwrap_or(text);
    let candidates = [utc.to_owned(), format!("{utc}Z"), format!("{utc}T00:00:00Z")];
    if let Some(moment) = candidates.iter().find_map(|text| Timestamp::parse(text).ok()) {
        return Ok(moment);
    }
    let ago = duration(text)
        .ok()
        .and_then(|ago| i64::try_from(ago.as_millis()).ok());
    ago.map(|millis| now().plus_millis(-millis)).ok_or_else(|| {
        "write a time such as 2026-01-31T12:00:00Z, a day such as 2026-01-31, or an age such as 24h"
            .to_owned()
    })
}

/// The machine's time.
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_millis(since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

/// The address of a service: `http://127.0.0.1:4566`.
pub(crate) fn endpoint(text: &str) -> Result<String, String> {
    let authority = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .and_then(|rest| rest.split('/').next());
    match authority {
        Some(authority) if !authority.is_empty() && !authority.contains(char::is_whitespace) => {
            Ok(text.to_owned())
        }
        _ => Err("write a URL such as http://127.0.0.1:4566".to_owned()),
    }
}

/// How much of which limit: `tpm:500`.
pub(crate) fn amount(text: &str) -> Result<(LimitName, u64), String> {
    let (name, number) = limit_and_number(text)?;
    let number = number
        .parse()
        .map_err(|_| format!("{number:?} is not a whole number of tokens"))?;
    Ok((name, number))
}

/// A correction of what was used: `tpm:120`, `tpm:-80`.
pub(crate) fn correction(text: &str) -> Result<(LimitName, i64), String> {
    let (name, number) = limit_and_number(text)?;
    let number = number
        .parse()
        .map_err(|_| format!("{number:?} is not a whole number of tokens"))?;
    Ok((name, number))
}

fn limit_and_number(text: &str) -> Result<(LimitName, &str), String> {
    let (name, number) = text
        .rsplit_once(':')
        .ok_or("write LIMIT:TOKENS, such as tpm:500")?;
    let name = LimitName::from_stored(name).map_err(|error| error.to_string())?;
    Ok((name, number))
}

/// A resource, or `_default_` for all that have nothing of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResourceOrAll {
    All,
    One(Resource),
}

impl ResourceOrAll {
    pub(crate) fn resource(&self) -> Option<&Resource> {
        match self {
            Self::All => None,
            Self::One(resource) => Some(resource),
        }
    }
}

impl std::str::FromStr for ResourceOrAll {
    type Err = zae_limiter::InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == ConfigLevel::DEFAULT_RESOURCE {
            return Ok(Self::All);
        }
        Resource::parse(text).map(Self::One)
    }
}

/// A note: `tier=gold`. Numbers, flags and other JSON are taken as such.
pub(crate) fn note(text: &str) -> Result<(String, serde_json::Value), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as tier=gold")?;
    if key.is_empty() {
        return Err("the key before = must not be empty".to_owned());
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for wrong in [
            "",
            "5",
            "s",
            "-5s",
            "5 s",
            "1.5s",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_day_is_its_start_in_utc() {
        let start = Timestamp::parse("2026-01-31T00:00:00Z").ok();
        for same in [
            "2026-01-31",
            "2026-01-31T00:00:00",
            "2026-01-31T00:00:00Z",
            "2026-01-31T00:00:00+00:00",
        ] {
            assert_eq!(moment(same).ok(), start, "{same}");
        }
        assert!(moment("2026-02-30").is_err());
        assert!(moment("yesterday").is_err());
    }

    #[test]
    fn an_amount_names_its_limit() {
        assert_eq!(amount("tpm:500").map(|(_, amount)| amount), Ok(500));
        assert_eq!(correction("tpm:-80").map(|(_, amount)| amount), Ok(-80));
        for wrong in ["tpm", "tpm:", ":5", "tpm:-1", "tpm:1.5", "t pm:5"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn notes_are_json_where_they_can_be() {
        assert_eq!(note("seats=5"), Ok(("seats".to_owned(), 5.into())));
        assert_eq!(note("tier=gold"), Ok(("tier".to_owned(), "gold".into())));
        assert_eq!(note("a=b=c"), Ok(("a".to_owned(), "b=c".into())));
        assert!(note("tier").is_err() && note("=x").is_err());
    }
}
