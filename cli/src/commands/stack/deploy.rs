//! `deploy`: creates or updates the stack.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use zae_limiter::stack::{Change, Mode, Outcome, Plan, Stack, StackName, StackOptions};

use super::options::Wanted;
use super::outputs;
use super::plan::Allowed;
use super::progress::Progress;
use super::watch::{Watch, Watched};
use crate::command_output::{CommandOutput, Text};
use crate::confirm::confirm;
use crate::connect::Place;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::View;

#[derive(Debug, Args)]
#[command(
    after_help = "Shows the plan, asks for confirmation, and shows progress. Ctrl-C detaches: the deployment continues, and running the
command again attaches to it.

Examples:
  zae-limiter deploy -n my-app --region eu-west-1
  zae-limiter deploy -n my-app options.yaml --yes
  zae-limiter deploy -n my-app --permission-boundary PowerUserAccess --role-name-format 'pb-{}'
  zae-limiter deploy -n my-app --plan my-app.plan --yes --output json
  zae-limiter deploy -n my-app options.yaml --mode require-exact"
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Apply a plan of `plan --out`, unless the stack has changed since; the plan names the stack
    #[arg(long, value_name = "FILE", conflicts_with = "file", help_heading = "Options")]
    plan: Option<PathBuf>,
    /// What the command may do
    #[arg(
        long,
        default_value = "apply",
        conflicts_with_all = ["plan", "continue_rollback"],
        help_heading = "Options"
    )]
    mode: DeployMode,
    /// Skip the confirmation prompt
    #[arg(short, long, help_heading = "Options")]
    yes: bool,
    /// Wait until the deployment ends (the default)
    #[arg(long, overrides_with = "no_wait", help_heading = "Options")]
    wait: bool,
    /// Exit as soon as CloudFormation has started
    #[arg(long, help_heading = "Options")]
    no_wait: bool,
    /// First continue a rollback that failed
    #[arg(long, help_heading = "Options")]
    continue_rollback: bool,
    /// Skip a resource in that rollback, by logical id (repeatable)
    #[arg(
        long,
        value_name = "ID",
        requires = "continue_rollback",
        help_heading = "Options"
    )]
    skip: Vec<String>,
    /// Turn termination protection of the stack on, so that it cannot be deleted
    #[arg(
        long,
        overrides_with = "no_termination_protection",
        conflicts_with_all = ["no_wait", "mode"],
        help_heading = "Options"
    )]
    termination_protection: bool,
    /// Turn termination protection off
    #[arg(long, conflicts_with_all = ["no_wait", "mode"], help_heading = "Options")]
    no_termination_protection: bool,
    #[command(flatten)]
    allowed: Allowed,
}

/// [`Mode`], for the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeployMode {
    /// Make every change
    Apply,
    /// As an application does: observe without the permission to deploy, and never change options that another service deployed
    Auto,
    /// Change nothing, and warn of differences
    Observe,
    /// Change nothing, and fail if there are differences
    RequireExact,
}

impl From<DeployMode> for Mode {
    fn from(mode: DeployMode) -> Self {
        match mode {
            DeployMode::Apply => Self::Apply,
            DeployMode::Auto => Self::Auto,
            DeployMode::Observe => Self::Observe,
            DeployMode::RequireExact => Self::RequireExact,
        }
    }
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
            Change::None if !self.outcome.warnings.is_empty() => "was not changed",
            Change::None => "is up to date: nothing was changed",
            Change::Awaited if !self.outcome.warnings.is_empty() => "was changed by another process",
            Change::Awaited => "is up to date: another process changed it",
            Change::Created => "was created",
            Change::Imported => "was created around the existing table",
            Change::Updated => "was updated",
        };
        let mut lines = vec![view.paint.good(&format!("stack {} {did}", self.name))];
        lines.extend(outputs::main_lines(&self.name, &self.outcome.outputs));
        lines.extend(
            self.outcome
                .warnings
                .iter()
                .map(|warning| format!("{} {warning}", view.paint.changed("warning:"))),
        );
        lines.join("\n")
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let stored = arguments.plan.as_deref().map(read_plan).transpose()?;
    let named = match &stored {
        Some(plan) => Some(context.named(StackName::parse(&plan.stack).map_err(zae_limiter::Error::from)?)?),
        None => None,
    };
    let context = named.as_ref().unwrap_or(context);
    let options = arguments.wanted.options()?;
    // A stored plan has options, and warnings, of its own.
    let warning = super::archive_warning(&options).filter(|_| stored.is_none());
    let stack = super::stack(context, options).await?;
    let deployment = Deployment {
        command: "deploy",
        yes: arguments.yes,
        wait: !arguments.no_wait,
        shows_plan: true,
        warning,
        accepts: |_| Ok(()),
    };
    let stack = arguments.allowed.on(stack);
    if arguments.mode != DeployMode::Apply {
        return Box::pin(deployment.ensure(stack, arguments.mode.into(), context)).await;
    }
    if arguments.continue_rollback {
        Box::pin(stack.continue_rollback(&arguments.skip)).await?;
    }
    let protected = stack.clone();
    let done = Box::pin(deployment.run(stack, stored, context)).await?;
    if done.to_the_end && (arguments.termination_protection || arguments.no_termination_protection) {
        Box::pin(protected.set_termination_protection(arguments.termination_protection)).await?;
    }
    Ok(done.output)
}

fn read_plan(file: &Path) -> Result<Plan> {
    let text = std::fs::read_to_string(file).map_err(Error::reading(file.display().to_string()))?;
    Ok(Plan::from_json(&text)?)
}

/// How a stack is deployed.
pub(super) struct Deployment {
    /// The command that attaches to it again.
    pub(super) command: &'static str,
    pub(super) yes: bool,
    pub(super) wait: bool,
    pub(super) shows_plan: bool,
    /// A warning for the plan.
    pub(super) warning: Option<String>,
    /// An error for a plan that goes too far.
    pub(super) accepts: fn(&Plan) -> Result<()>,
}

/// The result of a deployment.
pub(super) struct Finished {
    pub(super) output: CommandOutput,
    /// False if the command exits before the deployment ends.
    pub(super) to_the_end: bool,
}

impl Deployment {
    /// Plans unless a plan is given, shows the plan, asks, applies it, and writes the table's records.
    pub(super) async fn run(self, stack: Stack, stored: Option<Plan>, context: &Context) -> Result<Finished> {
        let progress = Progress::new(&context.terminal, context.location.endpoint());
        let watch = Watch::new(&progress, self.wait);
        let name = stack.name().clone();
        let stack = stack.observer(watch.observer());
        let left = || Finished {
            output: watch.detached(name.as_str(), self.command),
            to_the_end: false,
        };
        let own = stored.is_none();
        let mut plan = match stored {
            Some(plan) => plan,
            // Waits for a running operation first.
            None => match watch.over(Box::pin(stack.plan())).await? {
                Watched::Done(plan) => plan,
                Watched::Detached => return Ok(left()),
            },
        };
        plan.warnings.extend(self.warning.clone());
        if self.shows_plan {
            progress.plan(&plan);
        } else {
            progress.expect(plan.changes.len());
        }
        if let Err(no) = self.consent(&plan) {
            if own {
                stack.discard(&plan).await;
            }
            return Err(no);
        }
        let mut outcome = match plan.unchanged().filter(|_| own) {
            Some(found) => found.clone(),
            None => match watch.over(Box::pin(stack.apply(&plan))).await? {
                Watched::Done(outcome) => outcome,
                Watched::Detached => return Ok(left()),
            },
        };
        outcome = context.repository().await?.record_deployment(outcome).await?;
        Ok(Finished {
            output: done(&name, outcome, &progress),
            to_the_end: true,
        })
    }

    /// Does what an application does in this mode, without a plan.
    async fn ensure(self, stack: Stack, mode: Mode, context: &Context) -> Result<CommandOutput> {
        let may_change = mode == Mode::Auto;
        if may_change && !self.yes {
            let place = Place::of_caller(&stack, &context.location).await;
            let question = format!("Deploy {} in {place} without showing a plan?", stack.name());
            confirm(&question, false)?;
        }
        let progress = Progress::new(&context.terminal, context.location.endpoint());
        let watch = Watch::new(&progress, self.wait);
        let stack = stack.mode(mode).observer(watch.observer());
        let mut outcome = match watch.over(Box::pin(stack.ensure())).await? {
            Watched::Done(outcome) => outcome,
            Watched::Detached => return Ok(watch.detached(stack.name().as_str(), self.command)),
        };
        if may_change && outcome.changed() {
            outcome = context.repository().await?.record_deployment(outcome).await?;
        }
        Ok(done(stack.name(), outcome, &progress))
    }

    /// An error unless the plan may be applied.
    fn consent(&self, plan: &Plan) -> Result<()> {
        (self.accepts)(plan)?;
        if plan.is_empty() || plan.is_refused() {
            return Ok(());
        }
        confirm("Apply this plan?", self.yes)
    }
}

/// The output for a stack that is deployed.
fn done(name: &StackName, outcome: Outcome, progress: &Progress) -> CommandOutput {
    let deployed = Deployed {
        name: name.to_string(),
        outcome,
    };
    if !progress.is_json() {
        return CommandOutput::new(deployed);
    }
    let mut result = serde_json::to_value(&deployed).unwrap_or_default();
    result["event"] = "done".into();
    progress.result(&result);
    CommandOutput::empty()
}

/// Deploys the stack of the context to a local cloud, which runs its functions on this machine, without asking.
pub(crate) async fn ensure(context: &Context) -> Result<()> {
    let architecture = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        other => other,
    };
    let options = StackOptions::builder().lambda_architecture(architecture).build();
    let stack = super::stack(context, options.unwrap_or_default()).await?;
    let deployment = Deployment {
        command: "deploy",
        yes: true,
        wait: true,
        shows_plan: false,
        warning: None,
        accepts: |_| Ok(()),
    };
    Box::pin(deployment.run(stack, None, context)).await.map(|_| ())
}
