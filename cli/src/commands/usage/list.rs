//! `usage list`: usage by window, as a table or as charts.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::{Serialize, Serializer};
use zae_limiter::usage::{UsageSnapshot, WindowKind};
use zae_limiter::{EntityId, LimitName, Resource, Timestamp};
use zae_limiter_report::UsageReport;

use super::{Filter, counted, money_limits};
use crate::command_output::{CommandOutput, Text};
use crate::commands::pagination::{self, total};
use crate::context::Context;
use crate::error::Result;
use crate::output::View;

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
    #[serde(serialize_with = "as_json_snapshots")]
    snapshots: Vec<UsageSnapshot>,
    count: usize,
    truncated: bool,
    /// Why the list is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(skip)]
    plot: bool,
    /// The limits that count money, by resource.
    #[serde(skip)]
    money: BTreeMap<Resource, LimitName>,
}

/// A snapshot as it is in the JSON output.
#[derive(Debug, Serialize)]
struct JsonSnapshot<'a> {
    entity_id: &'a EntityId,
    resource: &'a Resource,
    window: WindowKind,
    window_start: Timestamp,
    window_end: Timestamp,
    total_events: i64,
    refusals: i64,
    observed: i64,
    counters: &'a BTreeMap<LimitName, i64>,
    /// The percentages of quotas that were reached.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    thresholds: &'a BTreeMap<LimitName, BTreeSet<u8>>,
}

impl<'a> From<&'a UsageSnapshot> for JsonSnapshot<'a> {
    fn from(snapshot: &'a UsageSnapshot) -> Self {
        Self {
            entity_id: &snapshot.entity,
            resource: &snapshot.resource,
            window: snapshot.window.kind(),
            window_start: snapshot.window.start(),
            window_end: snapshot.window.end(),
            total_events: snapshot.total_events,
            refusals: snapshot.refusals,
            observed: snapshot.observed,
            counters: &snapshot.counters,
            thresholds: &snapshot.thresholds,
        }
    }
}

fn as_json_snapshots<S: Serializer>(snapshots: &[UsageSnapshot], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(snapshots.iter().map(JsonSnapshot::from))
}

impl Text for SnapshotList {
    fn text(&self, view: &View) -> String {
        let total = total(self.count, "snapshot", "snapshots", self.truncated);
        if let Some(note) = self.note {
            return format!("{total}; {note}");
        }
        let report = UsageReport::new(&self.snapshots).money(&self.money);
        let drawn = if self.plot {
            report.charts(view)
        } else {
            report.table(view)
        };
        format!("{drawn}\n{total}")
    }
}

pub(super) async fn run(arguments: List, context: &Context) -> Result<CommandOutput> {
    let repository = &counted(context).await?;
    let query = arguments.filter.query(arguments.window)?;
    let query = &query;
    let fetch = |page| async move { repository.list_usage_snapshots(query, &page).await };
    let collected = pagination::collect(arguments.limit, fetch, |_| true).await?;
    let resources = collected.items.iter().map(|snapshot| snapshot.resource.clone());
    let money = money_limits(repository, resources.collect()).await?;
    Ok(CommandOutput::new(SnapshotList {
        count: collected.items.len(),
        note: collected.items.is_empty().then(|| super::why_nothing(context)),
        truncated: collected.truncated,
        snapshots: collected.items,
        plot: arguments.plot,
        money,
    }))
}
