//! Which usage to read, and the sum of it.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter_dynamo::{Filter, Query, Sort};
use zae_limiter_schema::keys::{self, Key, prefix};
use zae_limiter_schema::{
    AttributeValue, EntityId, LimitName, Resource, Timestamp, UsageSnapshot, WindowKind, usage_attribute,
};

use crate::{Error, Result};

/// Sorts behind every character of a window's key and of an entity id.
const LAST: char = '~';

/// Whose usage, of what, and when.
///
/// ```
/// use zae_limiter::Timestamp;
/// use zae_limiter::usage::{UsageQuery, WindowKind};
///
/// let january = UsageQuery::of_entity("user-1")?
///     .resource("gpt-4")?
///     .window(WindowKind::Daily)
///     .from(Timestamp::parse("2026-01-01T00:00:00Z").unwrap())
///     .until(Timestamp::parse("2026-01-31T23:59:59Z").unwrap());
/// # Ok::<(), zae_limiter::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a query does nothing until it is passed to list_usage_snapshots or get_usage_summary"]
pub struct UsageQuery {
    entity: Option<EntityId>,
    resource: Option<Resource>,
    window: Option<WindowKind>,
    from: Timestamp,
    until: Timestamp,
}

impl UsageQuery {
    /// The usage of one entity.
    pub fn of_entity(entity: impl AsRef<str>) -> Result<Self> {
        Ok(Self {
            entity: Some(EntityId::parse(entity)?),
            ..Self::everything()
        })
    }

    /// The usage of one resource, by everybody.
    pub fn of_resource(resource: impl AsRef<str>) -> Result<Self> {
        Ok(Self {
            resource: Some(Resource::parse(resource)?),
            ..Self::everything()
        })
    }

    fn everything() -> Self {
        Self {
            entity: None,
            resource: None,
            window: None,
            from: Timestamp::MIN,
            until: Timestamp::MAX,
        }
    }

    /// Only of this resource.
    pub fn resource(mut self, resource: impl AsRef<str>) -> Result<Self> {
        self.resource = Some(Resource::parse(resource)?);
        Ok(self)
    }

    /// Only windows of this length.
    pub fn window(mut self, kind: WindowKind) -> Self {
        self.window = Some(kind);
        self
    }

    /// Only windows that start at this time or later.
    pub fn from(mut self, start: Timestamp) -> Self {
        self.from = start;
        self
    }

    /// Only windows that start at this time or earlier.
    pub fn until(mut self, start: Timestamp) -> Self {
        self.until = start;
        self
    }

    /// The query to send, and whether it brings keys only.
    pub(super) fn plan(&self) -> Result<(Query, bool)> {
        if self.from > self.until {
            let rule = format!("it must not be after {}", self.until);
            return Err(Error::invalid(
                "start of the time range",
                self.from.to_string(),
                rule,
            ));
        }
        match (&self.entity, &self.resource) {
            (Some(entity), resource) => {
                let sort = match resource {
                    Some(resource) => self.range(&format!("{}{resource}#", prefix::USAGE)),
                    // The resource stands before the time in the key.
                    None => Sort::StartsWith(prefix::USAGE.to_owned()),
                };
                let mut query = Query::table(keys::entity_partition(entity), sort).newest_first();
                for filter in self.filters() {
                    query = query.filter(filter);
                }
                Ok((query, false))
            }
            (None, Some(resource)) => {
                let sort = self.range(prefix::GSI2_USAGE);
                let query =
                    Query::index(keys::GSI2, keys::gsi2_resource_partition(resource), sort).keys_only();
                Ok((query.newest_first(), true))
            }
            (None, None) => Err(Error::invalid("usage query", "", "name an entity or a resource")),
        }
    }

    /// A range of keys that holds every window in question. Hours, days and months have keys of different lengths, and
    /// the Python peer writes days under their first hour, so it begins with the month or the day.
    fn range(&self, prefix: &str) -> Sort {
        let from = self.from.to_string();
        let length = if self.window.is_none_or(|kind| kind == WindowKind::Monthly) {
            7
        } else {
            10
        };
        Sort::Between(
            format!("{prefix}{}", &from[..length]),
            format!("{prefix}{}{LAST}", self.until),
        )
    }

    fn filters(&self) -> Vec<Filter> {
        let text = |text: String| AttributeValue::S(text);
        let mut filters = vec![];
        if let Some(kind) = self.window {
            filters.push(Filter::Equals(usage_attribute::WINDOW, text(kind.to_string())));
        }
        if self.from > Timestamp::MIN || self.until < Timestamp::MAX {
            let (from, until) = (
                text(self.earliest_start().to_string()),
                text(self.until.to_string()),
            );
            filters.push(Filter::Between(usage_attribute::WINDOW_START, from, until));
        }
        filters
    }

    /// Starts of windows are whole seconds: one that begins before `from` within the same second is too early.
    fn earliest_start(&self) -> Timestamp {
        if self.from.millis() % 1000 == 0 {
            self.from
        } else {
            self.from.plus_millis(1000)
        }
    }

    /// False for a key that no window of this length has, here or at the Python peer, which writes days and months under
    /// their first hour.
    pub(super) fn may_be_at(&self, key: &Key) -> bool {
        let window = key.sk.rsplit('#').next().unwrap_or_default();
        match self.window {
            None => true,
            Some(WindowKind::Hourly) => window.len() > 10,
            Some(WindowKind::Daily) => window.len() == 10 || window.ends_with("T00:00:00Z"),
            Some(WindowKind::Monthly) => window.len() == 7 || window.ends_with("-01T00:00:00Z"),
        }
    }

    pub(super) fn accepts(&self, snapshot: &UsageSnapshot) -> bool {
        let start = snapshot.window.start();
        self.window.is_none_or(|kind| kind == snapshot.window.kind())
            && self.from <= start
            && start <= self.until
    }
}

/// The sum of the snapshots of one length of window.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageSummary {
    /// The length of the windows that were added up.
    pub window: WindowKind,
    /// How many snapshots there were.
    pub snapshots: u64,
    /// Whole tokens per limit.
    pub totals: BTreeMap<LimitName, i64>,
    /// In how many snapshots each limit appears.
    pub appearances: BTreeMap<LimitName, u64>,
    /// The resources that were used.
    pub resources: BTreeSet<Resource>,
    /// Acquires.
    pub total_events: i64,
    /// Refused acquires.
    pub refusals: i64,
    /// Acquires that passed though the limits did not allow them, because they are only observed.
    pub observed: i64,
    /// The start of the first window.
    pub first: Option<Timestamp>,
    /// The start of the last window.
    pub last: Option<Timestamp>,
}

impl UsageSummary {
    pub(super) fn of(window: WindowKind) -> Self {
        Self {
            window,
            snapshots: 0,
            totals: BTreeMap::new(),
            appearances: BTreeMap::new(),
            resources: BTreeSet::new(),
            total_events: 0,
            refusals: 0,
            observed: 0,
            first: None,
            last: None,
        }
    }

    pub(super) fn add(&mut self, snapshot: &UsageSnapshot) {
        self.snapshots += 1;
        self.total_events = self.total_events.saturating_add(snapshot.total_events);
        self.refusals = self.refusals.saturating_add(snapshot.refusals);
        self.observed = self.observed.saturating_add(snapshot.observed);
        for (name, count) in &snapshot.counters {
            let total = self.totals.entry(name.clone()).or_default();
            *total = total.saturating_add(*count);
            *self.appearances.entry(name.clone()).or_default() += 1;
        }
        if !self.resources.contains(&snapshot.resource) {
            self.resources.insert(snapshot.resource.clone());
        }
        let start = snapshot.window.start();
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        self.last = Some(self.last.map_or(start, |last| last.max(start)));
    }

    /// The average of a limit over the windows in which it appears.
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    pub fn average(&self, limit: &LimitName) -> Option<f64> {
        let (total, count) = (self.totals.get(limit)?, self.appearances.get(limit)?);
        Some(*total as f64 / *count as f64)
    }
}
