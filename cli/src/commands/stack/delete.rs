//! `delete`: taking a stack down, and saying what stays.

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::{Deleted, Deletion, StackOptions};

use super::progress::Progress;
use super::watch::{Watch, Watched};
use crate::command_output::{CommandOutput, Text};
use crate::confirm::confirm_by_name;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::View;

#[derive(Debug, Args)]
#[command(
    after_help = "The table and the archive stay, unless --purge is given. --name is required.

Examples:
  zae-limiter delete -n my-app
  zae-limiter delete -n my-app --purge --yes"
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Arguments {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Delete the table and the archive too, with all that is in them
    #[arg(long)]
    purge: bool,
    /// Leave a resource behind, by logical id, if the deletion has failed because of it (repeatable)
    #[arg(long, value_name = "ID")]
    retain: Vec<String>,
    /// Delete a stack that another tool deploys: one with parameters, or without the tag ManagedBy=zae-limiter
    #[arg(long)]
    adopt: bool,
    /// The role that CloudFormation assumes for the deletion (RoleARN)
    #[arg(long, value_name = "ARN")]
    service_role: Option<String>,
    /// Wait for the end (the default)
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Leave as soon as CloudFormation has begun
    #[arg(long, conflicts_with = "purge")]
    no_wait: bool,
}

#[derive(Debug, Serialize)]
struct Gone {
    name: String,
    #[serde(flatten)]
    deleted: Deleted,
}

impl Text for Gone {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![if self.deleted.existed {
            view.paint.good(&format!("stack {} was deleted", self.name))
        } else {
            format!("there was no stack {}", self.name)
        }];
        let mut tell = |what: &str, list: &[zae_limiter::stack::Kept]| {
            lines.extend(
                list.iter()
                    .map(|kept| format!("  {what}: {} ({})", kept.physical_id, kept.resource_type)),
            );
        };
        tell("deleted with its data", &self.deleted.purged);
        tell("stays", &self.deleted.kept);
        if self.deleted.existed {
            lines.push(format!(
                "  for {} seconds SQS blocks the names of deleted queues: a deployment before that waits",
                Deleted::NAMES_BLOCKED.as_secs()
            ));
        }
        lines.join("\n")
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let name = context
        .given_name()
        .cloned()
        .ok_or_else(|| Error::usage("which stack? Name it with --name: delete has no default"))?;
    let stack = super::stack(context, StackOptions::default()).await?;
    let stack = stack.adopt(arguments.adopt);
    let stack = match &arguments.service_role {
        Some(role) => stack.service_role(role),
        None => stack,
    };
    let planned = stack.plan_delete().await?;
    if planned.existed || (arguments.purge && !planned.kept.is_empty()) {
        let kept: Vec<_> = planned
            .kept
            .iter()
            .map(|kept| kept.physical_id.as_str())
            .collect();
        let what = match (arguments.purge, kept.is_empty()) {
            (true, false) if !planned.existed => format!(
                "delete {} with all that is in it, which a stack {name} has left",
                kept.join(", ")
            ),
            (true, false) => format!(
                "delete stack {name}, and {} with all that is in them",
                kept.join(", ")
            ),
            (false, false) => format!("delete stack {name}; {} stay", kept.join(", ")),
            (_, true) => format!("delete stack {name}"),
        };
        confirm_by_name(&what, name.as_str(), arguments.yes)?;
    }
    let progress = Progress::new(&context.terminal);
    let watch = Watch::new(&progress, !arguments.no_wait);
    let stack = stack.observer(watch.observer());
    let how = Deletion {
        purge: arguments.purge,
        retain: arguments.retain,
    };
    match watch.over(Box::pin(stack.delete_with(&how))).await? {
        Watched::Detached => Ok(watch.detached(name.as_str(), "delete")),
        Watched::Done(deleted) => {
            let gone = Gone {
                name: name.to_string(),
                deleted,
            };
            if progress.is_json() {
                let mut result = serde_json::to_value(&gone).unwrap_or_default();
                result["event"] = "done".into();
                progress.result(&result);
                return Ok(CommandOutput::empty());
            }
            Ok(CommandOutput::new(gone))
        }
    }
}
