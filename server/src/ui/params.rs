//! The query of an address, parsed.

use std::collections::BTreeMap;

use serde::Deserialize;
use zae_limiter::pagination::Cursor;
use zae_limiter::usage::WindowKind;
use zae_limiter::{EntityId, Error, Resource, Timestamp};

use super::failure::Failure;

/// The query of an address. Empty values count as none: that is what forms send.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Params(BTreeMap<String, String>);

impl Params {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }

    pub(crate) fn entity(&self) -> Result<Option<EntityId>, Failure> {
        let parsed = self.get("entity").map(EntityId::parse).transpose();
        parsed.map_err(|error| Error::from(error).into())
    }

    pub(crate) fn resource(&self) -> Result<Option<Resource>, Failure> {
        let parsed = self.get("resource").map(Resource::parse).transpose();
        parsed.map_err(|error| Error::from(error).into())
    }

    pub(crate) fn window(&self, otherwise: WindowKind) -> Result<WindowKind, Failure> {
        let Some(text) = self.get("window") else {
            return Ok(otherwise);
        };
        text.parse()
            .map_err(|_| Failure::invalid("window", text, "it must be hourly, daily or monthly"))
    }

    /// A time in UTC, as browsers send it (`2026-01-31T12:00`) or as exports have it (`2026-01-31T12:00:00Z`).
    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, Failure> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let seconds = if text.len() == "2026-01-31T12:00".len() {
            ":00"
        } else {
            ""
        };
        let complete = format!("{}{seconds}Z", text.trim_end_matches('Z'));
        let parsed = Timestamp::parse(&complete);
        parsed
            .map(Some)
            .map_err(|_| Failure::invalid(name, text, "it must be a time such as 2026-01-31T12:00"))
    }

    pub(crate) fn cursor(&self) -> Result<Option<Cursor>, Failure> {
        let parsed = self.get("after").map(str::parse).transpose();
        parsed.map_err(|error: Error| error.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn params(name: &str, value: &str) -> Params {
        Params(BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn times_are_read_as_browsers_and_exports_write_them() {
        let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        for text in ["2026-01-31T12:00", "2026-01-31T12:00:00", "2026-01-31T12:00:00Z"] {
            assert_eq!(params("from", text).time("from").unwrap(), Some(noon), "{text}");
        }
        assert!(params("from", "noon").time("from").unwrap_err().invalid);
        assert_eq!(params("from", " ").time("from").unwrap(), None);
    }

    #[test]
    fn what_breaks_a_rule_names_field_value_and_rule() {
        let failure = params("window", "weekly").window(WindowKind::Hourly).unwrap_err();
        assert_eq!(
            failure.cause,
            "window \"weekly\" is invalid: it must be hourly, daily or monthly"
        );
        assert!(params("entity", "a#b").entity().unwrap_err().invalid);
    }
}
