//! Time zones, from the database that is compiled in.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::InvalidLimit;
use crate::shortened::shortened;

/// A time zone by its IANA name, such as `Europe/Berlin`. The rules are compiled in: the machine's own time zone database does
/// not matter.
#[derive(Clone)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

impl Zone {
    /// Coordinated universal time.
    pub fn utc() -> Self {
        Self {
            name: "UTC".to_owned(),
            rules: TimeZone::UTC,
        }
    }

    /// The zone of that name, in whatever case.
    pub fn parse(name: &str) -> Result<Self, InvalidLimit> {
        let invalid = || InvalidLimit::Period {
            text: shortened(name),
            rule: "no time zone has this name; write an IANA name such as Europe/Berlin".to_owned(),
        };
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Self::utc());
        }
        let rules = TimeZoneDatabase::bundled().get(name).map_err(|_| invalid())?;
        // The database also has a placeholder for zones that nobody knows.
        if rules.is_unknown() {
            return Err(invalid());
        }
        let name = rules.iana_name().ok_or_else(invalid)?.to_owned();
        Ok(Self { name, rules })
    }

    /// Its IANA name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True for coordinated universal time.
    pub fn is_utc(&self) -> bool {
        self.name == "UTC"
    }

    pub(super) const fn rules(&self) -> &TimeZone {
        &self.rules
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl PartialOrd for Zone {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Zone {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
