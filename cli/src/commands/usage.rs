//! `usage`: usage by hour, day, and month.

mod list;
mod redrive;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, Subcommand};
use zae_limiter::usage::{UsageQuery, WindowKind};
use zae_limiter::{EntityId, LimitName, Repository, Resource, Timestamp};

use crate::command_output::CommandOutput;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::parse;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List usage by window, newest first
    #[command(after_help = "Examples:
  zae-limiter usage list --entity-id user-1 --window daily --start 7d
  zae-limiter usage list --resource gpt-4 --window hourly --start 2026-01-31 --end 2026-02-01
  zae-limiter usage list -e user-1 -r gpt-4 -w hourly --plot")]
    List(list::List),
    /// Show usage totals
    #[command(after_help = "Examples:
  zae-limiter usage summary --entity-id user-1 --start 30d
  zae-limiter usage summary --resource gpt-4 --window monthly --output json")]
    Summary(summary::Summary),
    /// Count the dead letters of the aggregator
    #[command(
        long_about = "Count the dead letters of the aggregator.\n\nDelivers the records in its dead-letter queue again, counts \
                      each exactly once, and deletes the messages. Run it after the cause is fixed; it is safe to run \
                      again, and while the aggregator runs.",
        after_help = "Examples:
  zae-limiter usage redrive --name limiter
  zae-limiter usage redrive --output json"
    )]
    Redrive(redrive::Redrive),
}

/// Which usage to show.
#[derive(Debug, Args)]
#[group(id = "scope", required = true, multiple = true, args = ["entity_id", "resource"])]
struct Filter {
    /// Usage of this entity
    #[arg(short, long, value_name = "ENTITY")]
    entity_id: Option<EntityId>,
    /// Usage of this resource
    #[arg(short, long)]
    resource: Option<Resource>,
    /// Windows that start at or after this time: 2026-01-31T12:00:00Z, 2026-01-31, or an age such as 24h
    #[arg(long, value_name = "TIME", value_parser = parse::timestamp)]
    start: Option<Timestamp>,
    /// Windows that start at or before this time
    #[arg(long, value_name = "TIME", value_parser = parse::timestamp)]
    end: Option<Timestamp>,
}

impl Filter {
    fn query(&self, window: Option<WindowKind>) -> Result<UsageQuery> {
        let mut query = match (&self.entity_id, &self.resource) {
            (Some(entity), Some(resource)) => UsageQuery::of_entity(entity)?.resource(resource)?,
            (Some(entity), None) => UsageQuery::of_entity(entity)?,
            (None, Some(resource)) => UsageQuery::of_resource(resource)?,
            (None, None) => return Err(Error::usage("pass --entity-id or --resource")),
        };
        if let Some(window) = window {
            query = query.window(window);
        }
        if let Some(start) = self.start {
            query = query.from(start);
        }
        if let Some(end) = self.end {
            query = query.until(end);
        }
        Ok(query)
    }
}

/// The limits of these resources that count money.
async fn money_limits(
    repository: &Repository,
    resources: BTreeSet<Resource>,
) -> Result<BTreeMap<Resource, LimitName>> {
    let mut limits = BTreeMap::new();
    for resource in resources {
        let limit = repository.resolve_money_limit(&resource).await?;
        limits.insert(resource, limit);
    }
    Ok(limits)
}

/// Why there may be no usage: on a table of a stack, only its aggregator counts it.
fn why_nothing(context: &Context) -> &'static str {
    if context.location.embedded.is_some() {
        "no acquire was counted in this time; `zae-limiter resource capacity` shows what is in use now"
    } else {
        "the aggregator counts usage a few seconds after the acquires; `zae-limiter status` shows whether the stack has one"
    }
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::List(arguments) => list::run(arguments, context).await,
        Command::Summary(arguments) => summary::run(arguments, context).await,
        Command::Redrive(arguments) => redrive::run(arguments, context).await,
    }
}

/// What the table stores. An embedded table has no aggregator that counts in the background.
async fn counted(context: &Context) -> Result<Repository> {
    let repository = context.repository().await?;
    repository.catch_up_usage().await?;
    Ok(repository)
}
