//! Parsers for argument values.

use std::str::FromStr;
use std::time::Duration;

use zae_limiter::money::MicroDollars;
use zae_limiter::{ConfigLevel, LimitName, Resource, Timestamp};

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// A duration: `500ms`, `5s`, `2m`, `1h`, `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, millis)| number.parse::<u64>().ok()?.checked_mul(*millis))
        .map(Duration::from_millis)
        .ok_or_else(|| "must be a number with a unit of ms, s, m, h, or d, such as 5s".to_owned())
}

/// A point in time: `2026-01-31T12:00:00Z`, a date such as `2026-01-31` (midnight UTC), or an age such as `24h`.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, String> {
    let utc = text.strip_suffix("+00:00").unwrap_or(text);
    let candidates = [utc.to_owned(), format!("{utc}Z"), format!("{utc}T00:00:00Z")];
    if let Some(timestamp) = candidates.iter().find_map(|text| Timestamp::parse(text).ok()) {
        return Ok(timestamp);
    }
    let ago = duration(text)
        .ok()
        .and_then(|ago| i64::try_from(ago.as_millis()).ok());
    ago.map(|millis| now().plus_millis(-millis)).ok_or_else(|| {
        "must be a time such as 2026-01-31T12:00:00Z, a date such as 2026-01-31, or an age such as 24h"
            .to_owned()
    })
}

/// A point in time that is ahead: `2026-12-01T00:00:00Z`, a date, or a duration from now such as `7d`.
pub(crate) fn end(text: &str) -> Result<Timestamp, String> {
    let ahead = duration(text)
        .ok()
        .and_then(|ahead| i64::try_from(ahead.as_millis()).ok());
    let ahead = ahead.map(|millis| now().plus_millis(millis));
    ahead.map_or_else(|| timestamp(text), Ok).map_err(|_| {
        "must be a time such as 2026-12-01T00:00:00Z, a date such as 2026-12-01, or a duration from now such as 7d"
            .to_owned()
    })
}

/// The current time of this machine.
pub(crate) fn now() -> Timestamp {
    std::time::SystemTime::now().into()
}

/// The URL of an endpoint: `http://127.0.0.1:4566`.
pub(crate) fn endpoint(text: &str) -> Result<String, String> {
    let authority = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme))
        .and_then(|rest| rest.split('/').next());
    match authority {
        Some(authority) if !authority.is_empty() && !authority.contains(char::is_whitespace) => {
            Ok(text.to_owned())
        }
        _ => Err("must be a URL such as http://127.0.0.1:4566".to_owned()),
    }
}

/// A number of tokens of a limit: `tpm:500`, `usd:$5`.
pub(crate) fn amount(text: &str) -> Result<(LimitName, u64), String> {
    let (name, number) = limit_and_number(text)?;
    Ok((name, tokens(number)?))
}

/// A number of tokens of a limit, of the first resource of a call or another one: `tpm:500`, `budget/usd:12`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OnResource<T> {
    pub(crate) resource: Option<Resource>,
    pub(crate) limit: LimitName,
    pub(crate) tokens: T,
}

/// A number of tokens of a limit of a call: `tpm:500`, `budget/usd:12`; an adjustment may be below zero.
pub(crate) fn on_resource<T: FromStr>(text: &str) -> Result<OnResource<T>, String> {
    let (resource, amount) = match text.rsplit_once('/') {
        Some((resource, amount)) => {
            let resource = Resource::parse(resource).map_err(|error| error.to_string())?;
            (Some(resource), amount)
        }
        None => (None, text),
    };
    let (limit, number) = limit_and_number(amount)?;
    Ok(OnResource {
        resource,
        limit,
        tokens: tokens(number)?,
    })
}

/// A number of tokens, or money such as `$12.50` as that of its millionths of a dollar.
fn tokens<T: FromStr>(text: &str) -> Result<T, String> {
    let (sign, amount) = text.strip_prefix('-').map_or(("", text), |amount| ("-", amount));
    let number = if amount.starts_with('$') {
        let money = amount
            .parse::<MicroDollars>()
            .map_err(|error| error.to_string())?;
        format!("{sign}{}", money.get())
    } else {
        text.to_owned()
    };
    number
        .parse()
        .map_err(|_| format!("{text:?} is not a whole number of tokens"))
}

fn limit_and_number(text: &str) -> Result<(LimitName, &str), String> {
    let (name, number) = text
        .rsplit_once(':')
        .ok_or("must be LIMIT:TOKENS, such as tpm:500")?;
    let name = LimitName::from_stored(name).map_err(|error| error.to_string())?;
    Ok((name, number))
}

/// A resource, or `_default_` for every resource without its own limits.
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
    type Err = zae_limiter::error::InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == ConfigLevel::DEFAULT_RESOURCE {
            return Ok(Self::All);
        }
        Resource::parse(text).map(Self::One)
    }
}

/// A metadata entry: `tier=gold`. A value that is valid JSON, such as a number or a Boolean, keeps its type.
pub(crate) fn metadata_entry(text: &str) -> Result<(String, serde_json::Value), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("must be KEY=VALUE, such as tier=gold")?;
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
    fn durations_have_a_unit() {
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
    fn a_date_is_midnight_utc() {
        let start = Timestamp::parse("2026-01-31T00:00:00Z").ok();
        for same in [
            "2026-01-31",
            "2026-01-31T00:00:00",
            "2026-01-31T00:00:00Z",
            "2026-01-31T00:00:00+00:00",
        ] {
            assert_eq!(timestamp(same).ok(), start, "{same}");
        }
        assert!(timestamp("2026-02-30").is_err());
        assert!(timestamp("yesterday").is_err());
    }

    #[test]
    fn an_amount_names_its_limit() {
        assert_eq!(amount("tpm:500").map(|(_, amount)| amount), Ok(500));
        assert_eq!(on_resource("tpm:-80").map(|amount| amount.tokens), Ok(-80));
        let other = on_resource::<u64>("org/budget/usd:12").unwrap();
        assert_eq!(other.resource.unwrap().as_str(), "org/budget");
        assert_eq!((other.limit.as_str(), other.tokens), ("usd", 12));
        assert_eq!(amount("usd:$12.50").map(|(_, amount)| amount), Ok(12_500_000));
        let back = on_resource::<i64>("budget/usd:-$0.01").unwrap();
        assert_eq!(back.tokens, -10_000);
        for wrong in ["usd:$", "usd:$-1", "usd:-$1", "usd:$1.0000001"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
        for wrong in ["/usd:1", "budget/usd", "budget/:1", "budget/usd:-1", "5/usd:1"] {
            assert!(on_resource::<u64>(wrong).is_err(), "{wrong}");
        }
        for wrong in ["tpm", "tpm:", ":5", "tpm:-1", "tpm:1.5", "t pm:5"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn metadata_values_are_json_if_they_parse_as_json() {
        assert_eq!(metadata_entry("seats=5"), Ok(("seats".to_owned(), 5.into())));
        assert_eq!(
            metadata_entry("tier=gold"),
            Ok(("tier".to_owned(), "gold".into()))
        );
        assert_eq!(metadata_entry("a=b=c"), Ok(("a".to_owned(), "b=c".into())));
        assert!(metadata_entry("tier").is_err() && metadata_entry("=x").is_err());
    }
}
