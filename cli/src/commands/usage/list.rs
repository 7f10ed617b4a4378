//! `usage list`: usage by window, as a table or as charts.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use zae_limiter::{EntityId, LimitName, RateLimiter, Resource, Timestamp, UsageSnapshot, WindowKind};

use super::Filter;
use crate::command_output::{CommandOutput, Text};
use crate::commands::pagination::{self, total};
use crate::error::Result;
use crate::output::{Align, Chart, Point, TextTable, View, grouped};

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    filter: Filter,
    /// Only windows of this length: hourly, daily, or monthly
    #[arg(short, long)]
    window: Option<WindowKind>,
    /// List at most N [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
    /// Draw charts instead of a table
    #[arg(short, long)]
    plot: bool,
}

#[derive(Debug, Serialize)]
struct SnapshotList {
    snapshots: Vec<Snapshot>,
    count: usize,
    truncated: bool,
    #[serde(skip)]
    plot: bool,
}

#[derive(Debug, Serialize)]
struct Snapshot {
    entity_id: EntityId,
    resource: Resource,
    window: WindowKind,
    window_start: Timestamp,
    window_end: Timestamp,
    total_events: i128,
    counters: BTreeMap<LimitName, i128>,
}

impl From<UsageSnapshot> for Snapshot {
    fn from(snapshot: UsageSnapshot) -> Self {
        Self {
            entity_id: snapshot.entity,
            resource: snapshot.resource,
            window: snapshot.window.kind(),
            window_start: snapshot.window.start(),
            window_end: snapshot.window.end(),
            total_events: snapshot.total_events,
            counters: snapshot.counters,
        }
    }
}

impl SnapshotList {
    fn table(&self, view: &View) -> String {
        let mut table = TextTable::new([
            ("Window", Align::Left),
            ("Length", Align::Left),
            ("Entity", Align::Left),
            ("Resource", Align::Left),
            ("Events", Align::Right),
            ("Tokens", Align::Left),
        ]);
        for snapshot in &self.snapshots {
            let counters = snapshot
                .counters
                .iter()
                .map(|(name, count)| format!("{name}={}", grouped(*count)));
            table.row([
                view.zone.show(snapshot.window_start),
                snapshot.window.to_string(),
                snapshot.entity_id.to_string(),
                snapshot.resource.to_string(),
                grouped(snapshot.total_events),
                counters.collect::<Vec<_>>().join(" "),
            ]);
        }
        table.render(view)
    }

    /// One chart per resource, window length, and limit; entities are summed, oldest window first.
    fn charts(&self, view: &View) -> String {
        let mut series: BTreeMap<(&str, WindowKind, &str), BTreeMap<Timestamp, i128>> = BTreeMap::new();
        for snapshot in &self.snapshots {
            for (limit, count) in &snapshot.counters {
                let key = (snapshot.resource.as_str(), snapshot.window, limit.as_str());
                *series
                    .entry(key)
                    .or_default()
                    .entry(snapshot.window_start)
                    .or_default() += count;
            }
        }
        let charts = series.into_iter().map(|((resource, window, limit), values)| {
            let total: i128 = values.values().sum();
            let chart = Chart {
                title: format!("{resource} {limit}, {window}, total {}", grouped(total)),
                points: values
                    .into_iter()
                    .map(|(start, value)| Point {
                        label: view.zone.show(start),
                        value,
                    })
                    .collect(),
            };
            chart.render(view)
        });
        charts.collect::<Vec<_>>().join("\n\n")
    }
}

impl Text for SnapshotList {
    fn text(&self, view: &View) -> String {
        let total = total(self.count, "snapshot", "snapshots", self.truncated);
        if self.count == 0 {
            return format!("{total}; the aggregator writes them a few seconds after the acquires");
        }
        let drawn = if self.plot {
            self.charts(view)
        } else {
            self.table(view)
        };
        format!("{drawn}\n{total}")
    }
}

pub(super) async fn run(arguments: List, limiter: &RateLimiter) -> Result<CommandOutput> {
    let query = arguments.filter.query(arguments.window)?;
    let query = &query;
    let fetch = |page| async move { limiter.usage_snapshots(query, &page).await };
    let listed = pagination::collect(arguments.limit, fetch, |_| true).await?;
    let snapshots: Vec<Snapshot> = listed.items.into_iter().map(Snapshot::from).collect();
    Ok(CommandOutput::new(SnapshotList {
        count: snapshots.len(),
        truncated: listed.truncated,
        snapshots,
        plot: arguments.plot,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Color, Paint, Zone};

    fn snapshots(plot: bool) -> SnapshotList {
        let at = |hour: i64, entity: &str, rpm: i128| {
            let window = WindowKind::Hourly.window_at(Timestamp::from_seconds(1_704_067_200 + hour * 3600));
            Snapshot {
                entity_id: EntityId::parse(entity).unwrap(),
                resource: Resource::parse("gpt-4").unwrap(),
                window: window.kind(),
                window_start: window.start(),
                window_end: window.end(),
                total_events: rpm,
                counters: BTreeMap::from([(LimitName::parse("rpm").unwrap(), rpm)]),
            }
        };
        let snapshots = vec![
            at(1, "user-1", 2_000),
            at(1, "user-2", 1_000),
            at(0, "user-1", 1_500),
        ];
        SnapshotList {
            count: 3,
            truncated: false,
            snapshots,
            plot,
        }
    }

    fn view() -> View {
        View {
            width: Some(100),
            paint: Paint::new(Color::Never, false),
            zone: Zone::Utc,
        }
    }

    #[test]
    fn the_table_has_a_row_per_window() {
        insta::assert_snapshot!(snapshots(false).text(&view()));
    }

    #[test]
    fn charts_sum_entities_and_start_with_the_oldest_window() {
        insta::assert_snapshot!(snapshots(true).text(&view()));
    }
}
