//! `top-up` and `reset`: changing what is left of limits now.

use clap::Args;
use serde::Serialize;
use zae_limiter::{EntityId, LimitName, ResetReport, Resource, TopUpReport};

use crate::command_output::{CommandOutput, Text};
use crate::confirm::confirm;
use crate::context::Context;
use crate::error::Result;
use crate::money::MoneyLimits;
use crate::output::View;
use crate::parse;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter top-up team-1 gpt-4 spend:200 --reason \"approved by finance\"
  zae-limiter top-up team-1 budget 'usd:$50' --idempotency-key ticket-4711 --output json

A quota gets more for the period that runs. A rate gets tokens up to its burst.")]
pub(crate) struct TopUp {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// Limit and how much to add: tokens, or money such as usd:$50
    #[arg(value_name = "LIMIT:AMOUNT", value_parser = parse::amount)]
    amount: (LimitName, u64),
    #[command(flatten)]
    circumstances: Circumstances,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter reset team-1 gpt-4 --limit spend --reason \"a loop in the batch job\"
  zae-limiter reset team-1 gpt-4 --all --yes       # without a prompt

A reset of a limit on calls in flight revokes the permits of all calls in flight on the bucket.")]
pub(crate) struct Reset {
    /// Entity
    #[arg(value_name = "ENTITY")]
    entity: EntityId,
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Resource,
    /// Limit to reset (repeatable)
    #[arg(short, long = "limit", value_name = "NAME", required_unless_present = "all")]
    limits: Vec<LimitName>,
    /// Reset all limits of the entity on the resource
    #[arg(long, conflicts_with = "limits")]
    all: bool,
    #[command(flatten)]
    circumstances: Circumstances,
    /// Skip the confirmation prompt
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct Circumstances {
    /// Reason, for the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Make the change once under this key, however often the command is run
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

pub(crate) async fn top_up(arguments: TopUp, context: &Context) -> Result<CommandOutput> {
    let (limit, amount) = arguments.amount;
    let repository = context.repository().await?;
    let mut change = repository.top_up(&arguments.entity, &arguments.resource, &limit, amount);
    if let Some(reason) = arguments.circumstances.reason {
        change = change.reason(reason);
    }
    if let Some(key) = arguments.circumstances.idempotency_key {
        change = change.idempotency_key(key);
    }
    let report = change.await?;
    let money = MoneyLimits::of_call(&repository, &report.entity_id, [&report.resource]).await;
    Ok(CommandOutput::new(ToppedUp { report, money }))
}

#[derive(Debug, Serialize)]
struct ToppedUp {
    #[serde(flatten)]
    report: TopUpReport,
    #[serde(skip)]
    money: MoneyLimits,
}

impl Text for ToppedUp {
    fn text(&self, view: &View) -> String {
        let Self { report, money } = self;
        let (entity, resource, limit) = (&report.entity_id, &report.resource, &report.limit_name);
        let by = money.amount(resource, limit, report.added);
        let first = if report.repeated {
            format!("made before under this key: {limit} of {entity} on {resource} was topped up by {by}")
        } else {
            format!("topped up {limit} of {entity} on {resource} by {by}")
        };
        let end = report
            .period_end
            .map(|end| format!(" until {}", view.zone.show(end)));
        let left = money.amount(resource, limit, report.left);
        let left = format!("left: {left}{}", end.unwrap_or_default());
        let mut lines = vec![first, left];
        if report.added < report.amount {
            lines.push("the limit is at its burst: the rest was not added".to_owned());
        }
        lines.join("\n")
    }
}

pub(crate) async fn reset(arguments: Reset, context: &Context) -> Result<CommandOutput> {
    let names: Vec<_> = arguments.limits.iter().map(LimitName::as_str).collect();
    let what = if arguments.all {
        "all limits".to_owned()
    } else {
        names.join(", ")
    };
    let question = format!("Reset {what} of {} on {}?", arguments.entity, arguments.resource);
    confirm(&question, arguments.yes)?;
    let repository = context.repository().await?;
    let mut change = repository.reset(&arguments.entity, &arguments.resource);
    for limit in &arguments.limits {
        change = change.limit(limit);
    }
    if let Some(reason) = arguments.circumstances.reason {
        change = change.reason(reason);
    }
    if let Some(key) = arguments.circumstances.idempotency_key {
        change = change.idempotency_key(key);
    }
    Ok(CommandOutput::new(change.await?))
}

impl Text for ResetReport {
    fn text(&self, _: &View) -> String {
        let (entity, resource) = (&self.entity_id, &self.resource);
        let names: Vec<_> = self.limits.iter().map(LimitName::as_str).collect();
        let mut text = match (names.is_empty(), self.repeated) {
            (true, _) => format!("nothing to reset: {entity} has used nothing on {resource}"),
            (false, true) => {
                format!(
                    "made before under this key: {} of {entity} on {resource}",
                    names.join(", ")
                )
            }
            (false, false) => format!("reset {} of {entity} on {resource}", names.join(", ")),
        };
        if self.permits_revoked {
            text.push_str("\nthe permits of calls in flight were revoked");
        }
        text
    }
}
