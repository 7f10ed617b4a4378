//! Usage snapshots as a table or as charts.

use std::collections::{BTreeMap, BTreeSet};

use zae_limiter_schema::money::dollars;
use zae_limiter_schema::{LimitName, Resource, Timestamp, UsageSnapshot, WindowKind};

use crate::{Align, Chart, Layout, Point, TextTable, grouped};

/// Draws usage snapshots.
///
/// See the [crate documentation](crate) for an example.
#[derive(Debug, Clone, Copy)]
pub struct UsageReport<'a> {
    snapshots: &'a [UsageSnapshot],
    money: Option<&'a BTreeMap<Resource, LimitName>>,
}

impl<'a> UsageReport<'a> {
    /// A report on these snapshots, in any order.
    pub fn new(snapshots: &'a [UsageSnapshot]) -> Self {
        Self {
            snapshots,
            money: None,
        }
    }

    /// Prints the counters of these limits, by resource, as money: they count millionths of a dollar.
    #[must_use]
    pub fn money(mut self, limits: &'a BTreeMap<Resource, LimitName>) -> Self {
        self.money = Some(limits);
        self
    }

    /// How amounts of a limit are printed.
    fn number(&self, resource: &str, limit: &str) -> fn(i128) -> String {
        let money = self.money.and_then(|money| money.get(resource));
        if money.is_some_and(|money| money.as_str() == limit) {
            dollars
        } else {
            grouped
        }
    }

    /// A table with one row per snapshot, in the given order.
    pub fn table(&self, layout: impl Into<Layout>) -> String {
        let layout = layout.into();
        // Few tables have limits that are only observed.
        let has_observed = self.snapshots.iter().any(|snapshot| snapshot.observed != 0);
        let observed = has_observed.then_some(("Observed", Align::Right));
        let columns = [
            ("Window", Align::Left),
            ("Length", Align::Left),
            ("Entity", Align::Left),
            ("Resource", Align::Left),
            ("Events", Align::Right),
            ("Refused", Align::Right),
        ];
        let columns = columns.into_iter().chain(observed);
        let mut table = TextTable::new(columns.chain([("Tokens", Align::Left)]));
        for snapshot in self.snapshots {
            let counters = snapshot.counters.iter().map(|(name, count)| {
                let number = self.number(snapshot.resource.as_str(), name.as_str());
                let count = number((*count).into());
                match snapshot.thresholds.get(name).and_then(BTreeSet::last) {
                    Some(percent) => format!("{name}={count} ({percent}% reached)"),
                    None => format!("{name}={count}"),
                }
            });
            let observed = has_observed.then(|| grouped(snapshot.observed));
            let cells = [
                layout.time(snapshot.window.start()),
                snapshot.window.kind().to_string(),
                snapshot.entity.to_string(),
                snapshot.resource.to_string(),
                grouped(snapshot.total_events),
                grouped(snapshot.refusals),
            ];
            let counters = counters.collect::<Vec<_>>().join(" ");
            table.row(cells.into_iter().chain(observed).chain([counters]));
        }
        table.render(layout)
    }

    /// One chart per resource, window length, and limit, separated by blank lines. Entities are summed, and the oldest
    /// window comes first.
    pub fn charts(&self, layout: impl Into<Layout>) -> String {
        let layout = layout.into();
        let charts = self.series().into_iter().map(|(key, values)| {
            let (resource, window, limit) = key;
            let total = values
                .values()
                .fold(0, |sum: i128, value| sum.saturating_add(*value));
            let points = values.into_iter().map(|(start, value)| Point {
                label: layout.time(start),
                value,
            });
            let number = self.number(resource, limit);
            let title = format!("{resource} {limit}, {window}, total {}", number(total));
            Chart::new(title, points).number(number).render(layout)
        });
        charts.collect::<Vec<_>>().join("\n\n")
    }

    /// The tokens per window, by resource, window length, and limit.
    fn series(&self) -> BTreeMap<(&str, WindowKind, &str), BTreeMap<Timestamp, i128>> {
        let mut series: BTreeMap<_, BTreeMap<_, i128>> = BTreeMap::new();
        for snapshot in self.snapshots {
            let window = snapshot.window;
            for (limit, count) in &snapshot.counters {
                let key = (snapshot.resource.as_str(), window.kind(), limit.as_str());
                let tokens = series.entry(key).or_default().entry(window.start()).or_default();
                *tokens = tokens.saturating_add(i128::from(*count));
            }
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use zae_limiter_schema::{EntityId, LimitName, Resource};

    use super::*;

    fn snapshots() -> Vec<UsageSnapshot> {
        let at = |hour: i64, entity: &str, rpm: i64| UsageSnapshot {
            entity: EntityId::parse(entity).unwrap(),
            resource: Resource::parse("gpt-4").unwrap(),
            window: WindowKind::Hourly.window_at(Timestamp::from_seconds(1_704_067_200 + hour * 3600)),
            counters: BTreeMap::from([(LimitName::parse("rpm").unwrap(), rpm)]),
            total_events: rpm,
            refusals: rpm / 100,
            observed: 0,
            thresholds: BTreeMap::new(),
            ttl: None,
            progress: None,
            unknown: BTreeMap::new(),
        };
        vec![
            at(1, "user-1", 2_000),
            at(1, "user-2", 1_000),
            at(0, "user-1", 1_500),
        ]
    }

    #[test]
    fn the_table_has_a_row_per_snapshot() {
        insta::assert_snapshot!(UsageReport::new(&snapshots()).table(Layout::default()));
    }

    #[test]
    fn the_highest_threshold_that_a_quota_reached_is_beside_its_tokens() {
        let mut snapshots = snapshots();
        snapshots[0]
            .thresholds
            .insert(LimitName::parse("rpm").unwrap(), [80, 95].into());
        let table = UsageReport::new(&snapshots).table(Layout::default());
        let marked: Vec<_> = table.lines().filter(|line| line.contains("reached")).collect();
        assert_eq!(marked.len(), 1);
        assert!(marked[0].ends_with("rpm=2,000 (95% reached)"), "{table}");
    }

    #[test]
    fn charts_sum_entities_and_start_with_the_oldest_window() {
        let layout = Layout::default().width(100);
        insta::assert_snapshot!(UsageReport::new(&snapshots()).charts(layout));
    }

    #[test]
    fn limits_resources_and_window_lengths_have_charts_of_their_own() {
        let mut snapshots = snapshots();
        snapshots[0].resource = Resource::parse("gpt-3.5").unwrap();
        snapshots[1].counters.insert(LimitName::parse("tpm").unwrap(), 7);
        snapshots[2].window = WindowKind::Daily.window_at(snapshots[2].window.start());
        let charts = UsageReport::new(&snapshots).charts(Layout::default());
        let titles: Vec<&str> = charts.lines().filter(|line| line.contains("total")).collect();
        assert_eq!(
            titles,
            [
                "gpt-3.5 rpm, hourly, total 2,000",
                "gpt-4 rpm, hourly, total 1,000",
                "gpt-4 tpm, hourly, total 7",
                "gpt-4 rpm, daily, total 1,500",
            ]
        );
    }

    #[test]
    fn the_limit_that_counts_money_is_printed_as_money() {
        let snapshots = snapshots();
        let limit = |name: &str| LimitName::parse(name).unwrap();
        let money = BTreeMap::from([(Resource::parse("gpt-4").unwrap(), limit("rpm"))]);
        let report = UsageReport::new(&snapshots).money(&money);
        let table = report.table(Layout::default());
        assert!(
            table.contains("rpm=$0.002") && table.contains("rpm=$0.0015"),
            "{table}"
        );
        let chart = report.charts(Layout::default());
        assert!(
            chart.contains("total $0.0045") && chart.contains("$0.003 │"),
            "{chart}"
        );
        let others = BTreeMap::from([(Resource::parse("gpt-4").unwrap(), limit("usd"))]);
        let table = UsageReport::new(&snapshots)
            .money(&others)
            .table(Layout::default());
        assert!(table.contains("rpm=2,000"), "{table}");
    }

    #[test]
    fn no_snapshots_give_a_heading_and_no_charts() {
        let report = UsageReport::new(&[]);
        assert_eq!(report.table(Layout::default()).lines().count(), 1);
        assert_eq!(report.charts(Layout::default()), "");
    }
}
