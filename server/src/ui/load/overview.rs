//! The overview: health, the busiest resources, the most refused entities.

use std::time::Duration;

use zae_limiter::usage::{Window, WindowKind};
use zae_limiter::versions::Compatibility;
use zae_limiter::{LimitName, LimiterStats, PageRequest, Resource};

use super::usage::{ENTITIES_PER_WINDOW, EntityUsage, UsageOfWindow, WindowTotal};
use super::{KnownResources, Loaded, all, known_resources, money_limit, usage_of_window};
use crate::ui::Ui;
use crate::ui::options::{StackHealth, StackSource};

/// How long the overview waits for a report about the stack.
const STACK_TIMEOUT: Duration = Duration::from_secs(5);

/// For how long a report about the stack is shown, so that views cost at most one report in this time.
const STACK_TTL: Duration = Duration::from_secs(10);

/// What is known about the stack.
#[derive(Debug, Clone)]
pub(crate) enum StackReport {
    NotChecked,
    None,
    Health(StackHealth),
    /// Why it is not known.
    Unknown(String),
}

/// How the table is doing.
#[derive(Debug, Clone)]
pub(crate) struct TableHealth {
    pub(crate) schema: Option<String>,
    /// What is incompatible, if something is.
    pub(crate) problem: Option<String>,
}

/// What everybody used of a resource.
#[derive(Debug, Clone)]
pub(crate) struct ResourceUsage {
    pub(crate) resource: Resource,
    pub(crate) total: WindowTotal,
    /// The limit that counts money.
    pub(crate) money: Option<LimitName>,
}

/// Everything that the overview shows.
#[derive(Debug, Clone)]
pub(crate) struct Overview {
    pub(crate) window: Window,
    pub(crate) table: Loaded<TableHealth>,
    pub(crate) stack: StackReport,
    pub(crate) process: LimiterStats,
    pub(crate) known: Loaded<KnownResources>,
    /// The busiest first.
    pub(crate) resources: Loaded<Vec<ResourceUsage>>,
    /// Those with refusals, the most refused first.
    pub(crate) refused: Loaded<Vec<EntityUsage>>,
}

pub(crate) async fn overview(ui: &Ui, kind: WindowKind) -> Overview {
    let repository = ui.app.limiter.repository();
    let window = kind.window_at(ui.app.clock.now());
    let (table, stack, known) =
        tokio::join!(repository.get_version(), stack(ui), known_resources(repository));
    let table = table.map_err(Into::into).map(|record| TableHealth {
        problem: record
            .as_ref()
            .and_then(|record| Compatibility::of(record).problem()),
        schema: record.map(|record| record.schema_version),
    });
    let usage = match &known {
        Ok(known) => usage_by_resource(ui, &known.names, window).await,
        Err(failure) => Err(failure.clone()),
    };
    let refused = usage.as_deref().map(most_refused).map_err(Clone::clone);
    let resources = usage.map(|usage| {
        let mut totals: Vec<_> = usage
            .into_iter()
            .map(|(resource, usage)| ResourceUsage {
                resource,
                total: usage.total,
                money: usage.money,
            })
            .collect();
        totals.sort_by_key(|usage| std::cmp::Reverse(usage.total.acquires));
        totals
    });
    Overview {
        window,
        table,
        stack,
        process: ui.app.limiter.stats(),
        known,
        resources,
        refused,
    }
}

/// The report about the stack. Concurrent requests share one report.
async fn stack(ui: &Ui) -> StackReport {
    let ask = match &ui.options.stack {
        StackSource::NotChecked => return StackReport::NotChecked,
        StackSource::None => return StackReport::None,
        StackSource::Ask(ask) => ask,
    };
    let mut last = ui.stack_report.lock().await;
    let now = ui.app.clock.elapsed();
    if let Some((_, report)) = last.as_ref().filter(|(at, _)| now < *at + STACK_TTL) {
        return report.clone();
    }
    let report = match tokio::time::timeout(STACK_TIMEOUT, ask()).await {
        Ok(Ok(health)) => StackReport::Health(health),
        Ok(Err(cause)) => StackReport::Unknown(cause),
        Err(_) => StackReport::Unknown(format!("there was no response within {STACK_TIMEOUT:?}")),
    };
    *last = Some((ui.app.clock.elapsed(), report.clone()));
    report
}

/// The entities with refusals, observed ones included, the most refused first.
fn most_refused(usage: &[(Resource, UsageOfWindow)]) -> Vec<EntityUsage> {
    let entities = usage.iter().flat_map(|(_, usage)| &usage.entities);
    let refusals = |usage: &EntityUsage| usage.refusals.saturating_add(usage.observed);
    let mut refused: Vec<_> = entities.filter(|usage| refusals(usage) > 0).cloned().collect();
    refused.sort_by_key(|usage| std::cmp::Reverse(refusals(usage)));
    refused.truncate(10);
    refused
}

async fn usage_by_resource(
    ui: &Ui,
    resources: &[Resource],
    window: Window,
) -> Loaded<Vec<(Resource, UsageOfWindow)>> {
    let repository = ui.app.limiter.repository();
    let request = PageRequest::new(ENTITIES_PER_WINDOW);
    let loads = resources.iter().map(|resource| {
        let request = &request;
        async move {
            let usage = usage_of_window(repository, resource, window, request).await?;
            let money = money_limit(repository, resource).await?;
            Ok((resource.clone(), UsageOfWindow { money, ..usage }))
        }
    });
    let loaded: Vec<Loaded<_>> = all(loads).await;
    loaded.into_iter().collect()
}
