//! `available`: show the available tokens without taking any.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use zae_limiter::{Availability, EntityId, LimitName, LimitStatus, Resource};

use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::money::MoneyLimits;
use crate::output::{Align, TextTable, View, decimal};
use crate::parse;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter available user-1 gpt-4
  zae-limiter available user-1 gpt-4 -c tpm:5000     # and when 5,000 will be available")]
pub(crate) struct Arguments {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// Check whether this many tokens could be acquired (repeatable)
    #[arg(short, long = "consume", value_name = "LIMIT:TOKENS", value_parser = parse::amount)]
    consume: Vec<(LimitName, u64)>,
}

#[derive(Debug, Serialize)]
struct Available {
    entity_id: EntityId,
    resource: Resource,
    /// Whether a call for the requested tokens would be admitted now.
    would_pass: bool,
    /// Whether the entity may not use the resource.
    #[serde(rename = "disabled", skip_serializing_if = "std::ops::Not::not")]
    is_disabled: bool,
    /// When the call would be admitted; null if never.
    retry_after_seconds: Option<f64>,
    limits: BTreeMap<LimitName, Remaining>,
    /// Every limit at every level, the entity's own first.
    levels: Vec<LimitStatus>,
    #[serde(skip)]
    money: MoneyLimits,
}

#[derive(Debug, Serialize)]
struct Remaining {
    /// The minimum over all levels. A negative number is debt.
    available: i64,
    capacity: u64,
    burst: u64,
}

impl Available {
    fn new(entity: EntityId, resource: Resource, availability: &Availability, money: MoneyLimits) -> Self {
        let mut limits: BTreeMap<LimitName, Remaining> = BTreeMap::new();
        for status in availability.statuses() {
            limits
                .entry(status.limit.name().clone())
                .and_modify(|remaining| remaining.available = remaining.available.min(status.available))
                .or_insert_with(|| Remaining {
                    available: status.available,
                    capacity: status.limit.capacity().get(),
                    burst: status.limit.burst().get(),
                });
        }
        Self {
            entity_id: entity,
            resource,
            would_pass: availability.would_pass(),
            is_disabled: availability.is_disabled(),
            retry_after_seconds: availability.retry_after().seconds(),
            limits,
            levels: availability.statuses().to_vec(),
            money,
        }
    }
}

impl Text for Available {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![status_table(&self.levels, &self.money).render(view)];
        if self.levels.iter().any(|status| status.requested > 0) {
            lines.push(match (self.would_pass, self.retry_after_seconds) {
                _ if self.is_disabled => view.paint.bad("the entity may not use the resource"),
                (true, _) => view.paint.good("the call would be admitted now"),
                (false, Some(seconds)) => format!("the call would be admitted in {} s", decimal(seconds, 1)),
                (false, None) => view
                    .paint
                    .bad("the call can never be admitted: it exceeds the burst"),
            });
        }
        lines.join("\n")
    }
}

/// The status of limits, one row per limit.
pub(crate) fn status_table(statuses: &[LimitStatus], money: &MoneyLimits) -> TextTable {
    let requested = statuses.iter().any(|status| status.requested > 0);
    let first = statuses.first().map(|status| &status.resource);
    let several = statuses.iter().any(|status| Some(&status.resource) != first);
    let resets = statuses.iter().any(|status| status.reset.is_some());
    let topped_up = statuses.iter().any(|status| status.topped_up > 0);
    let mut columns = vec![("Entity", Align::Left)];
    if several {
        columns.push(("Resource", Align::Left));
    }
    columns.extend([
        ("Limit", Align::Left),
        ("Available", Align::Right),
        ("Capacity", Align::Right),
        ("Burst", Align::Right),
    ]);
    if topped_up {
        columns.push(("Topped up", Align::Right));
    }
    if resets {
        columns.push(("Resets", Align::Left));
    }
    if requested {
        columns.extend([("Requested", Align::Right), ("", Align::Left)]);
    }
    let mut table = TextTable::new(columns);
    for status in statuses {
        let amount = |amount: i128| money.amount(&status.resource, status.limit.name(), amount);
        let mut row = vec![status.entity.to_string()];
        if several {
            row.push(status.resource.to_string());
        }
        row.extend([
            status.limit.name().to_string(),
            amount(status.available.into()),
            amount(status.limit.capacity().get().into()),
            amount(status.limit.burst().get().into()),
        ]);
        if topped_up {
            row.push(amount(status.topped_up.into()));
        }
        if resets {
            row.push(
                status
                    .reset
                    .map_or_else(String::new, |reset| reset.at.to_string()),
            );
        }
        if requested {
            row.push(amount(status.requested.into()));
            let mark = match (status.refused, status.observed) {
                (true, _) => "refused",
                (_, true) => "observed",
                _ => "",
            };
            row.push(mark.to_owned());
        }
        table.row(row);
    }
    table
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let limiter = context.limiter().await?;
    let mut acquire = limiter.acquire(arguments.entity.as_str(), arguments.resource.as_str());
    for (limit, tokens) in &arguments.consume {
        acquire = acquire.consume(limit.as_str(), *tokens);
    }
    let availability = acquire.peek().await?;
    let (entity, resource) = (arguments.entity, arguments.resource);
    let money = MoneyLimits::of_call(limiter.repository(), &entity, [&resource]).await;
    let report = Available::new(entity, resource, &availability, money);
    Ok(CommandOutput::new(report))
}
