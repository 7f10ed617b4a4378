//! `plan`: shows what a deployment would do.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::Plan;

use super::options::Wanted;
use crate::command_output::{CommandOutput, Text};
use crate::connect::Place;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{Format, View};

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0, or with 2 if there are changes and --detailed-exitcode is given, or with 1 if the deployment would be
refused.

Examples:
  zae-limiter plan -n my-app --lambda-memory 512
  zae-limiter plan -n my-app options.yaml --detailed-exitcode
  zae-limiter plan -n my-app options.yaml --out my-app.plan && zae-limiter deploy -n my-app --plan my-app.plan"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Exit with 2 if there are changes
    #[arg(long, help_heading = "Options")]
    detailed_exitcode: bool,
    /// Print the plan as JSON, as --output json does
    #[arg(long, help_heading = "Options")]
    json: bool,
    /// Store the plan for `deploy --plan`
    #[arg(long, value_name = "FILE", help_heading = "Options")]
    out: Option<PathBuf>,
    /// Compare templates instead of asking CloudFormation for a change set
    #[arg(long, help_heading = "Options")]
    offline: bool,
    #[command(flatten)]
    allowed: Allowed,
}

/// What the caller allows explicitly.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Permissions")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Allowed {
    /// Allow the loss of something that holds data, such as AuditArchiveBucket or RateLimitsTable/GSI3 (repeatable)
    #[arg(long, value_name = "NAME")]
    allow_loss: Vec<String>,
    /// Downgrade a stack that a later release deployed
    #[arg(long)]
    allow_downgrade: bool,
    /// Retry a change that was rolled back
    #[arg(long)]
    retry_rolled_back: bool,
    /// Delete a stack whose creation failed, and create it again
    #[arg(long)]
    recreate_failed: bool,
    /// Take over a stack that another tool deploys: one with parameters, or without the tag ManagedBy=zae-limiter
    #[arg(long)]
    adopt: bool,
    /// Undo drift as well, even if the template has not changed (REVERT_DRIFT)
    #[arg(long)]
    revert_drift: bool,
    /// The role that CloudFormation assumes for the operation (RoleARN)
    #[arg(long, value_name = "ARN")]
    service_role: Option<String>,
}

impl Allowed {
    pub(super) fn on(&self, stack: zae_limiter::stack::Stack) -> zae_limiter::stack::Stack {
        let stack = stack
            .allow_loss(self.allow_loss.iter().cloned())
            .allow_downgrade(self.allow_downgrade)
            .retry_rolled_back(self.retry_rolled_back)
            .recreate_failed(self.recreate_failed)
            .adopt(self.adopt)
            .revert_drift(self.revert_drift);
        match &self.service_role {
            Some(role) => stack.service_role(role),
            None => stack,
        }
    }
}

/// The plan as the library serializes it, which `deploy --plan` reads.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    plan: Plan,
    #[serde(skip)]
    endpoint: Option<String>,
}

impl Text for Shown {
    fn text(&self, _: &View) -> String {
        text(&self.plan, self.endpoint.as_deref())
    }
}

/// The plan for people, with the endpoint unless it is that of AWS.
pub(super) fn text(plan: &Plan, endpoint: Option<&str>) -> String {
    match endpoint {
        Some(url) => format!("endpoint {url}\n{plan}"),
        None => plan.to_string(),
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let options = arguments.wanted.options()?;
    let warning = super::archive_warning(&options);
    let stack = arguments.allowed.on(super::stack(context, options).await?);
    let mut plan = if arguments.offline {
        stack.plan_offline().await?
    } else {
        stack.plan().await?
    };
    plan.warnings.extend(warning);
    if plan.account.is_none() {
        // Comparing templates for a new stack needs no account.
        plan.account = Place::of_caller(&stack, &context.location).await.account;
    }
    if let Some(file) = &arguments.out {
        std::fs::write(file, plan.to_json()).map_err(Error::writing(file.display().to_string()))?;
    }
    // A plan that is only shown is not going to be applied.
    if arguments.out.is_none() && !arguments.json && context.terminal.format == Format::Table {
        stack.discard(&plan).await;
    }
    let exit = if plan.is_refused() {
        Exit::Error
    } else if arguments.detailed_exitcode && !plan.is_empty() {
        Exit::CHANGES
    } else {
        Exit::Success
    };
    let output = if arguments.json {
        CommandOutput::document(plan.to_json())
    } else {
        CommandOutput::new(Shown {
            plan,
            endpoint: context.location.endpoint(),
        })
    };
    Ok(output.with_exit(exit))
}
