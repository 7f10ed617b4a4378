//! `usage summary`: usage totals.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::Serialize;
use zae_limiter::money::dollars;
use zae_limiter::usage::{UsageSummary, WindowKind};
use zae_limiter::{LimitName, Timestamp};

use super::{Filter, counted, money_limits};
use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Align, TextTable, View, decimal, grouped};

#[derive(Debug, Args)]
pub(crate) struct Summary {
    #[command(flatten)]
    filter: Filter,
    /// Length of the windows to sum: hourly, daily, or monthly
    #[arg(short, long, default_value = "hourly")]
    window: WindowKind,
}

#[derive(Debug, Serialize)]
struct UsageTotals {
    window: WindowKind,
    snapshots: u64,
    total_events: i64,
    refusals: i64,
    observed: i64,
    first_window_start: Option<Timestamp>,
    last_window_start: Option<Timestamp>,
    limits: BTreeMap<LimitName, LimitTotals>,
    /// Why there is no usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct LimitTotals {
    total: i64,
    /// The average over the windows that have the limit.
    average: f64,
    /// The total, if the limit counts money.
    #[serde(skip_serializing_if = "Option::is_none")]
    money: Option<String>,
}

impl UsageTotals {
    fn new(summary: &UsageSummary, money: &BTreeSet<LimitName>, context: &Context) -> Self {
        let limits = summary.totals.iter().map(|(name, total)| {
            let average = summary.average(name).unwrap_or(0.0);
            (
                name.clone(),
                LimitTotals {
                    total: *total,
                    average,
                    money: money.contains(name).then(|| dollars((*total).into())),
                },
            )
        });
        Self {
            limits: limits.collect(),
            window: summary.window,
            snapshots: summary.snapshots,
            total_events: summary.total_events,
            refusals: summary.refusals,
            observed: summary.observed,
            first_window_start: summary.first,
            last_window_start: summary.last,
            note: (summary.snapshots == 0).then(|| super::why_nothing(context)),
        }
    }
}

impl Text for UsageTotals {
    fn text(&self, view: &View) -> String {
        let (Some(first), Some(last)) = (self.first_window_start, self.last_window_start) else {
            let note = self.note.map(|note| format!("; {note}"));
            return format!("no {} usage{}", self.window, note.unwrap_or_default());
        };
        let mut table = TextTable::new([
            ("Limit", Align::Left),
            ("Total", Align::Right),
            ("Average", Align::Right),
        ]);
        for (name, totals) in &self.limits {
            let (total, average) = match &totals.money {
                Some(money) => (money.clone(), dollars(rounded(totals.average))),
                None => (grouped(totals.total), decimal(totals.average, 1)),
            };
            table.row([name.to_string(), total, average]);
        }
        format!(
            "{}\n{} {} windows from {} to {}, {} events, {} refused{}",
            table.render(view),
            grouped(self.snapshots),
            self.window,
            view.zone.show(first),
            view.zone.show(last),
            grouped(self.total_events),
            grouped(self.refusals),
            match self.observed {
                0 => String::new(),
                observed => format!(", {} observed", grouped(observed)),
            }
        )
    }
}

pub(super) async fn run(arguments: Summary, context: &Context) -> Result<CommandOutput> {
    let repository = counted(context).await?;
    let query = arguments.filter.query(None)?;
    let summary = repository.get_usage_summary(&query, arguments.window).await?;
    let money = money_limits(&repository, summary.resources.clone()).await?;
    let money = money.into_values().collect();
    Ok(CommandOutput::new(UsageTotals::new(&summary, &money, context)))
}

/// The nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "totals have 64 bits, and averages are not larger"
)]
fn rounded(average: f64) -> i128 {
    average.round() as i128
}
