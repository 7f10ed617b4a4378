//! `deploy`: making the stack what it should be.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;
use zae_limiter::stack::{Change, Outcome, Plan, Stack, StackOptions};
use zae_limiter::{ConfigChange, ConfigLevel, RateLimiter};

use super::options::Wanted;
use super::plan::Allowed;
use super::progress::Progress;
use super::watch::{Watched, observer, watch};
use crate::answer::{Answer, Text};
use crate::ask::confirm;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::View;

#[derive(Debug, Args)]
#[command(
    after_help = "Shows the plan, asks, and shows what happens. Ctrl-C leaves: the deployment goes on, and running it again attaches to it.

Examples:
  zae-limiter deploy -n my-app --region eu-west-1
  zae-limiter deploy -n my-app options.yaml --yes
  zae-limiter deploy -n my-app --permission-boundary PowerUserAccess --role-name-format 'pb-{}'
  zae-limiter deploy -n my-app --plan my-app.plan --yes --output json"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Do what this plan of `plan --out` says, and nothing if the stack has changed since
    #[arg(long, value_name = "FILE", conflicts_with = "file", help_heading = "Options")]
    plan: Option<PathBuf>,
    /// Do not ask
    #[arg(short, long, help_heading = "Options")]
    yes: bool,
    /// Wait for the end (the default)
    #[arg(long, overrides_with = "no_wait", help_heading = "Options")]
    wait: bool,
    /// Leave as soon as CloudFormation has begun
    #[arg(long, help_heading = "Options")]
    no_wait: bool,
    #[command(flatten)]
    allowed: Allowed,
}

/// A stack that was deployed.
#[derive(Debug, Serialize)]
pub(super) struct Deployed {
    name: String,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Text for Deployed {
    fn text(&self, view: &View) -> String {
        let did = match self.outcome.change {
            Change::None => "is as it should be: nothing was changed",
            Change::Awaited => "is as it should be: somebody else has changed it",
            Change::Created => "was created",
            Change::Imported => "was created around the table that was there",
            Change::Updated => "was updated",
        };
        let mut lines = vec![view.paint.good(&format!("stack {} {did}", self.name))];
        lines.extend(
            self.outcome
                .outputs
                .iter()
                .map(|(name, value)| format!("  {name}: {value}")),
        );
        lines.extend(
            self.outcome
                .warnings
                .iter()
                .map(|warning| format!("{} {warning}", view.paint.changed("warning:"))),
        );
        lines.join("\n")
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<Answer> {
    let stack = super::stack(context, arguments.wanted.options()?).await?;
    let stack = arguments.allowed.on(stack);
    let plan = match &arguments.plan {
        Some(file) => {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file).map_err(Error::reading(name))?;
            Plan::from_json(&text)?
        }
        None => stack.plan().await?,
    };
    let progress = Progress::new(&context.terminal);
    progress.plan(&plan);
    let wait = !arguments.no_wait;
    Box::pin(apply(stack, &plan, &progress, arguments.yes, wait, context)).await
}

/// Asks, applies the plan, and writes into the table what no resource can hold.
pub(super) async fn apply(
    stack: Stack,
    plan: &Plan,
    progress: &Progress,
    yes: bool,
    wait: bool,
    context: &Context,
) -> Result<Answer> {
    if !plan.is_empty() && !plan.is_refused() {
        confirm("Deploy this?", yes)?;
    }
    let begun = Arc::new(Notify::new());
    let name = stack.name().clone();
    let stack = stack.observer(observer(progress, &begun));
    let outcome = match watch(Box::pin(stack.apply(plan)), progress, &begun, wait).await? {
        Watched::Done(outcome) => outcome,
        Watched::Detached => return Ok(detached(progress, name.as_str(), "deploy", wait)),
    };
    if outcome.changed() {
        let limiter = context.limiter().await?;
        limiter.write_version().await?;
        keep_retention(&limiter, outcome.audit_retention_days).await?;
    }
    let deployed = Deployed {
        name: name.to_string(),
        outcome,
    };
    if progress.is_json() {
        let mut result = serde_json::to_value(&deployed).unwrap_or_default();
        result["event"] = "done".into();
        progress.result(&result);
        return Ok(Answer::nothing());
    }
    Ok(Answer::of(deployed))
}

/// Deploys the stack of the context with default options, without asking.
pub(crate) async fn ensure(context: &Context) -> Result<()> {
    let progress = Progress::new(&context.terminal);
    let stack = super::stack(context, StackOptions::default()).await?;
    let plan = stack.plan().await?;
    progress.expect(plan.changes.len());
    Box::pin(apply(stack, &plan, &progress, true, true, context))
        .await
        .map(|_| ())
}

async fn keep_retention(limiter: &RateLimiter, days: u32) -> Result<()> {
    let stored = limiter.get_config(&ConfigLevel::System).await?;
    if stored.and_then(|config| config.system.audit_retention_days) != Some(days) {
        let change = ConfigChange::new().audit_retention_days(days);
        limiter.set_config(&ConfigLevel::System, change).await?;
    }
    Ok(())
}

/// What to say when the one who waited goes.
pub(super) fn detached(progress: &Progress, name: &str, command: &str, wait: bool) -> Answer {
    let message = format!(
        "left: the operation on stack {name} goes on; `zae-limiter {command} -n {name}` attaches to it again, \
         `zae-limiter status -n {name}` tells how it stands"
    );
    let exit = if wait { Exit::Interrupted } else { Exit::Success };
    if progress.is_json() {
        progress.result(&json!({ "event": "detached", "message": message }));
        return Answer::nothing().with_exit(exit);
    }
    Answer::document(message).with_exit(exit)
}
