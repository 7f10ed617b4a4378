//! Usage by window, as rows or as charts.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use zae_limiter::{EntityId, LimitName, RateLimiter, Resource, Timestamp, UsageSnapshot, WindowKind};

use super::Filter;
use crate::answer::{Answer, Text};
use crate::commands::pages::{self, total};
use crate::error::Result;
use crate::output::{Align, Chart, Point, Table, View, grouped};

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    filter: Filter,
    /// Only windows of this length: hourly, daily or monthly
    #[arg(short, long)]
    window: Option<WindowKind>,
    /// At most so many [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
    /// Draw charts
    #[arg(short, long)]
    plot: bool,
}

#[derive(Debug, Serialize)]
struct Snapshots {
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

impl Snapshots {
    fn table(&self, view: &View) -> String {
        let mut table = Table::new([
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

    /// A chart for each resource, length of window and limit, entities added up, oldest first.
    fn charts(&self, view: &View) -> String {
        let mut series: BTreeMap<(&str, WindowKind, &str), BTreeMap<Timestamp, i128>> = BTreeMap::new();
        for snapshot in &self.snapshots {
            for (limit, count) in &snapshot.counters {
                let place = (snapshot.resource.as_str(), snapshot.window, limit.as_str());
                *series
                    .entry(place)
                    .or_default()
                    .entry(snapshot.window_start)
                    .or_default() += count;
            }
        }
        let charts = series.into_iter().map(|((resource, window, limit), values)| {
            let total: i128 = values.values().sum();
            let chart = Chart {
                title: format!("{resource} {limit}, {window}, {} in all", grouped(total)),
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

impl Text for Snapshots {
    fn text(&self, view: &View) -> String {
        let total = total(self.count, "snapshot", "snapshots", self.truncated);
        if self.count == 0 {
            return format!("{total}; the aggregator writes them some seconds after the acquires");
        }
        let drawn = if self.plot {
            self.charts(view)
        } else {
            self.table(view)
        };
        format!("{drawn}\n{total}")
    }
}

pub(super) async fn run(arguments: List, limiter: &RateLimiter) -> Result<Answer> {
    let query = arguments.filter.query(arguments.window)?;
    let query = &query;
    let fetch = |page| async move { limiter.usage_snapshots(query, &page).await };
    let listed = pages::all(arguments.limit, fetch, |_| true).await?;
    let snapshots: Vec<Snapshot> = listed.items.into_iter().map(Snapshot::from).collect();
    Ok(Answer::of(Snapshots {
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

    fn snapshots(plot: bool) -> Snapshots {
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
        Snapshots {
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
    fn rows_have_every_window() {
        insta::assert_snapshot!(snapshots(false).text(&view()));
    }

    #[test]
    fn charts_add_entities_up_and_run_from_old_to_new() {
        insta::assert_snapshot!(snapshots(true).text(&view()));
    }
}
