//! Usage by window, within bounds.

use std::collections::BTreeMap;

use zae_limiter::money::Prices;
use zae_limiter::pagination::Cursor;
use zae_limiter::usage::{UsageQuery, UsageSnapshot, Window, WindowKind};
use zae_limiter::{EntityId, LimitName, PageRequest, Repository, Resource, Timestamp};

use super::{Loaded, all};

/// How many entities are added up in each window of a resource.
pub(crate) const ENTITIES_PER_WINDOW: usize = 200;
/// How many windows a chart has at most.
pub(crate) const MAX_WINDOWS: usize = 100;

/// What was used in a window, by one entity or by several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowTotal {
    pub(crate) window: Window,
    pub(crate) entities: i64,
    /// False if not all entities were read.
    pub(crate) complete: bool,
    pub(crate) acquires: i64,
    pub(crate) tokens: BTreeMap<LimitName, i64>,
}

impl WindowTotal {
    fn none(window: Window) -> Self {
        Self {
            window,
            entities: 0,
            complete: true,
            acquires: 0,
            tokens: BTreeMap::new(),
        }
    }

    fn of<'a>(
        window: Window,
        snapshots: impl IntoIterator<Item = &'a UsageSnapshot>,
        complete: bool,
    ) -> Self {
        let mut total = Self {
            complete,
            ..Self::none(window)
        };
        for snapshot in snapshots {
            total.entities += 1;
            total.acquires = total.acquires.saturating_add(snapshot.total_events);
            for (limit, tokens) in &snapshot.counters {
                let sum = total.tokens.entry(limit.clone()).or_default();
                *sum = sum.saturating_add(*tokens);
            }
        }
        total
    }
}

/// The last windows up to now, oldest first: a day of hours, a month of days, a year of months.
pub(crate) fn windows_back(kind: WindowKind, now: Timestamp) -> Vec<Window> {
    let count = match kind {
        WindowKind::Hourly => 24,
        WindowKind::Daily => 30,
        WindowKind::Monthly => 12,
    };
    let mut windows = vec![kind.window_at(now)];
    while windows.len() < count {
        let before = windows.last().and_then(|window| previous(*window));
        let Some(before) = before else { break };
        windows.push(before);
    }
    windows.reverse();
    windows
}

/// The windows between two times, oldest first; the latest ones if there are too many.
pub(crate) fn windows_between(kind: WindowKind, from: Timestamp, until: Timestamp) -> Vec<Window> {
    let mut windows = vec![kind.window_at(until)];
    while windows.len() < MAX_WINDOWS {
        let before = windows.last().and_then(|window| previous(*window));
        let Some(before) = before.filter(|window| window.start() >= from) else {
            break;
        };
        windows.push(before);
    }
    windows.reverse();
    windows
}

fn previous(window: Window) -> Option<Window> {
    let start = window.start();
    (start > Timestamp::MIN).then(|| window.kind().window_at(start.plus_millis(-1)))
}

/// What one entity used in a window, for rankings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntityUsage {
    pub(crate) entity: EntityId,
    pub(crate) resource: Resource,
    pub(crate) acquires: i64,
    /// How many acquires were refused. 0 also if nothing counts them.
    pub(crate) refusals: i64,
    /// How many would have been refused if the limits were enforced.
    pub(crate) observed: i64,
    pub(crate) tokens: BTreeMap<LimitName, i64>,
}

impl From<&UsageSnapshot> for EntityUsage {
    fn from(snapshot: &UsageSnapshot) -> Self {
        Self {
            entity: snapshot.entity.clone(),
            resource: snapshot.resource.clone(),
            acquires: snapshot.total_events,
            refusals: snapshot.refusals,
            observed: snapshot.observed,
            tokens: snapshot.counters.clone(),
        }
    }
}

/// The limit of a resource that counts money.
pub(crate) async fn money_limit(repository: &Repository, resource: &Resource) -> Loaded<Option<LimitName>> {
    Ok(Some(repository.resolve_money_limit(resource).await?))
}

/// A window of a resource, by entity.
#[derive(Debug, Clone)]
pub(crate) struct UsageOfWindow {
    /// The limit that counts money, if it was asked for.
    pub(crate) money: Option<LimitName>,
    pub(crate) total: WindowTotal,
    pub(crate) entities: Vec<EntityUsage>,
    pub(crate) next: Option<Cursor>,
}

pub(crate) async fn usage_of_window(
    repository: &Repository,
    resource: &Resource,
    window: Window,
    request: &PageRequest,
) -> Loaded<UsageOfWindow> {
    let page = repository.list_window_usage(resource, window, request).await?;
    Ok(UsageOfWindow {
        money: None,
        total: WindowTotal::of(window, &page.items, page.next.is_none()),
        entities: page.items.iter().map(EntityUsage::from).collect(),
        next: page.next,
    })
}

/// A resource over time.
#[derive(Debug, Clone)]
pub(crate) struct UsageOfResource {
    /// The limit that counts money, if it was asked for.
    pub(crate) money: Option<LimitName>,
    pub(crate) windows: Vec<WindowTotal>,
}

pub(crate) async fn usage_of_resource(
    repository: &Repository,
    resource: &Resource,
    windows: Vec<Window>,
) -> Loaded<UsageOfResource> {
    let request = PageRequest::new(ENTITIES_PER_WINDOW);
    let totals = windows
        .into_iter()
        .map(|window| usage_of_window(repository, resource, window, &request));
    let loaded: Loaded<Vec<UsageOfWindow>> = all(totals).await.into_iter().collect();
    let windows = loaded?.into_iter().map(|usage| usage.total).collect();
    Ok(UsageOfResource { money: None, windows })
}

/// An entity over time, on one resource.
#[derive(Debug, Clone)]
pub(crate) struct UsageOfEntity {
    /// The limit that counts money.
    pub(crate) money: Option<LimitName>,
    pub(crate) windows: Vec<WindowTotal>,
}

/// Windows without usage are there, too, with nothing in them.
pub(crate) async fn usage_of_entity(
    repository: &Repository,
    entity: &EntityId,
    resource: &Resource,
    windows: Vec<Window>,
) -> Loaded<UsageOfEntity> {
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return Ok(UsageOfEntity {
            money: None,
            windows: vec![],
        });
    };
    let query = UsageQuery::of_entity(entity)?
        .resource(resource)?
        .window(first.kind())
        .from(first.start())
        .until(last.start());
    let request = PageRequest::new(MAX_WINDOWS);
    let page = repository.list_usage_snapshots(&query, &request).await?;
    let found: BTreeMap<Window, &UsageSnapshot> = page
        .items
        .iter()
        .map(|snapshot| (snapshot.window, snapshot))
        .collect();
    let windows = windows.into_iter().map(|window| {
        let snapshot = found.get(&window).copied();
        WindowTotal::of(window, snapshot, true)
    });
    let resolved = repository.resolve_limits(entity, resource).await?;
    Ok(UsageOfEntity {
        money: Some(Prices::money_limit_of(resolved.prices.as_deref())),
        windows: windows.collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn starts(windows: &[Window]) -> Vec<String> {
        windows.iter().map(|window| window.start().to_string()).collect()
    }

    #[test]
    fn a_year_of_months_ends_with_the_current_one() {
        let windows = windows_back(WindowKind::Monthly, time("2026-03-31T12:00:00Z"));
        assert_eq!(windows.len(), 12);
        assert_eq!(starts(&windows[..1]), ["2025-04-01T00:00:00Z"]);
        assert_eq!(starts(&windows[11..]), ["2026-03-01T00:00:00Z"]);
    }

    #[test]
    fn a_range_has_every_window_that_starts_in_it() {
        let (from, until) = (time("2026-01-31T10:00:00Z"), time("2026-01-31T12:30:00Z"));
        assert_eq!(
            starts(&windows_between(WindowKind::Hourly, from, until)),
            [
                "2026-01-31T10:00:00Z",
                "2026-01-31T11:00:00Z",
                "2026-01-31T12:00:00Z"
            ]
        );
    }

    #[test]
    fn a_range_that_is_too_long_loses_its_beginning() {
        let windows = windows_between(WindowKind::Hourly, Timestamp::MIN, time("2026-01-31T12:00:00Z"));
        assert_eq!(windows.len(), MAX_WINDOWS);
        assert_eq!(starts(&windows[MAX_WINDOWS - 1..]), ["2026-01-31T12:00:00Z"]);
    }
}
