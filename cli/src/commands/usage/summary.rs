//! Usage added up.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use zae_limiter::{LimitName, RateLimiter, Timestamp, UsageSummary, WindowKind};

use super::Filter;
use crate::answer::{Answer, Text};
use crate::error::Result;
use crate::output::{Align, Table, View, decimal, grouped};

#[derive(Debug, Args)]
pub(crate) struct Summary {
    #[command(flatten)]
    filter: Filter,
    /// The length of the windows to add up: hourly, daily or monthly. They are never mixed
    #[arg(short, long, default_value = "hourly")]
    window: WindowKind,
}

#[derive(Debug, Serialize)]
struct Sums {
    window: WindowKind,
    snapshots: u64,
    total_events: i128,
    first_window_start: Option<Timestamp>,
    last_window_start: Option<Timestamp>,
    limits: BTreeMap<LimitName, Sum>,
}

#[derive(Debug, Serialize)]
struct Sum {
    total: i128,
    /// Over the windows in which the limit appears.
    average: f64,
}

impl From<UsageSummary> for Sums {
    fn from(summary: UsageSummary) -> Self {
        let limits = summary.totals.iter().map(|(name, total)| {
            let average = summary.average(name).unwrap_or(0.0);
            (
                name.clone(),
                Sum {
                    total: *total,
                    average,
                },
            )
        });
        Self {
            limits: limits.collect(),
            window: summary.window,
            snapshots: summary.snapshots,
            total_events: summary.total_events,
            first_window_start: summary.first,
            last_window_start: summary.last,
        }
    }
}

impl Text for Sums {
    fn text(&self, view: &View) -> String {
        let (Some(first), Some(last)) = (self.first_window_start, self.last_window_start) else {
            return format!("no {} usage", self.window);
        };
        let mut table = Table::new([
            ("Limit", Align::Left),
            ("Total", Align::Right),
            ("Average", Align::Right),
        ]);
        for (name, sum) in &self.limits {
            table.row([name.to_string(), grouped(sum.total), decimal(sum.average, 1)]);
        }
        format!(
            "{}\n{} {} windows from {} to {}, {} events",
            table.render(view),
            grouped(self.snapshots),
            self.window,
            view.zone.show(first),
            view.zone.show(last),
            grouped(self.total_events)
        )
    }
}

pub(super) async fn run(arguments: Summary, limiter: &RateLimiter) -> Result<Answer> {
    let query = arguments.filter.query(None)?;
    let summary = limiter.usage_summary(&query, arguments.window).await?;
    Ok(Answer::of(Sums::from(summary)))
}
