//! `available`: how much is left, without taking anything.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use zae_limiter::{EntityId, LimitName, LimitStatus, Peek, Resource, RetryAfter};

use crate::answer::{Answer, Text};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Align, Table, View, decimal, grouped};
use crate::parse;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter available user-1 gpt-4
  zae-limiter available user-1 gpt-4 -c tpm:5000     (and when so much will be there)")]
pub(crate) struct Arguments {
    /// The entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// The resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// An amount that is wanted (repeatable)
    #[arg(short, long = "consume", value_name = "LIMIT:TOKENS", value_parser = parse::amount)]
    consume: Vec<(LimitName, u64)>,
}

#[derive(Debug, Serialize)]
struct Available {
    entity_id: EntityId,
    resource: Resource,
    /// Whether a call for the wanted amounts would be admitted now.
    would_pass: bool,
    /// When it would; nothing if never.
    retry_after_seconds: Option<f64>,
    limits: BTreeMap<LimitName, Left>,
    /// Every limit at every level, the entity's own first.
    levels: Vec<LimitStatus>,
}

#[derive(Debug, Serialize)]
struct Left {
    /// The least of all levels; below zero is debt.
    available: i64,
    capacity: u64,
    burst: u64,
}

impl Available {
    fn of(entity: EntityId, resource: Resource, peek: Peek) -> Self {
        let mut limits: BTreeMap<LimitName, Left> = BTreeMap::new();
        for status in &peek.statuses {
            limits
                .entry(status.limit.name().clone())
                .and_modify(|left| left.available = left.available.min(status.available))
                .or_insert_with(|| Left {
                    available: status.available,
                    capacity: status.limit.capacity().get(),
                    burst: status.limit.burst().get(),
                });
        }
        let longest = peek.statuses.iter().map(|status| status.retry_after).max();
        Self {
            entity_id: entity,
            resource,
            would_pass: peek.would_pass(),
            retry_after_seconds: longest.unwrap_or(RetryAfter::Now).seconds(),
            limits,
            levels: peek.statuses,
        }
    }
}

impl Text for Available {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![status_table(&self.levels).render(view)];
        if self.levels.iter().any(|status| status.requested > 0) {
            lines.push(match (self.would_pass, self.retry_after_seconds) {
                (true, _) => view.paint.good("the call would be admitted now"),
                (false, Some(seconds)) => format!("the call would be admitted in {} s", decimal(seconds, 1)),
                (false, None) => view
                    .paint
                    .bad("the call can never be admitted: it is more than a burst"),
            });
        }
        lines.join("\n")
    }
}

/// How limits stand, as rows.
pub(crate) fn status_table(statuses: &[LimitStatus]) -> Table {
    let asked = statuses.iter().any(|status| status.requested > 0);
    let mut columns = vec![
        ("Entity", Align::Left),
        ("Limit", Align::Left),
        ("Available", Align::Right),
        ("Capacity", Align::Right),
        ("Burst", Align::Right),
    ];
    if asked {
        columns.extend([("Asked", Align::Right), ("", Align::Left)]);
    }
    let mut table = Table::new(columns);
    for status in statuses {
        let mut row = vec![
            status.entity.to_string(),
            status.limit.name().to_string(),
            grouped(status.available),
            grouped(status.limit.capacity().get()),
            grouped(status.limit.burst().get()),
        ];
        if asked {
            row.push(grouped(status.requested));
            row.push(if status.exceeded { "exceeded" } else { "" }.to_owned());
        }
        table.row(row);
    }
    table
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<Answer> {
    let limiter = context.limiter().await?;
    let mut acquire = limiter.acquire(arguments.entity.as_str(), arguments.resource.as_str());
    for (limit, tokens) in &arguments.consume {
        acquire = acquire.consume(limit.as_str(), *tokens);
    }
    let peek = acquire.peek().await?;
    Ok(Answer::of(Available::of(
        arguments.entity,
        arguments.resource,
        peek,
    )))
}
