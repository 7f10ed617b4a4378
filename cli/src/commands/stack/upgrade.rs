//! `upgrade`: updates a stack that an earlier release deployed.

use clap::Args;
use zae_limiter::stack::{Plan, StackOptions};
use zae_limiter::versions::Migrate;

use super::deploy::Deployment;
use super::options::Wanted;
use super::plan::Allowed;
use crate::command_output::CommandOutput;
use crate::context::Context;
use crate::error::{Error, Result};

#[derive(Debug, Args)]
#[command(
    after_help = "Like deploy, for a stack that exists: a file or flags change some of the options that it was deployed with, and the
others stay the same. Afterwards the table is migrated.

Examples:
  zae-limiter upgrade -n my-app
  zae-limiter upgrade -n my-app --lambda-memory 512 --yes"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Skip the confirmation prompt
    #[arg(short, long, help_heading = "Options")]
    yes: bool,
    /// Refuse if more than the functions would change
    #[arg(long, help_heading = "Options")]
    lambda_only: bool,
    /// Retry a change that was rolled back, as --retry-rolled-back does
    #[arg(short, long, help_heading = "Options")]
    force: bool,
    #[command(flatten)]
    allowed: Allowed,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let deployed = super::stack(context, StackOptions::default()).await?;
    let deployed = super::of_a_stack(context, &deployed, deployed.deployed_options().await).await?;
    let options = arguments.wanted.changes_to(&deployed)?;
    let warning = super::archive_warning(&options);
    let mut stack = arguments.allowed.on(super::stack(context, options).await?);
    if arguments.force {
        stack = stack.retry_rolled_back(true);
    }
    let deployment = Deployment {
        command: "upgrade",
        yes: arguments.yes,
        wait: true,
        shows_plan: true,
        warning,
        accepts: if arguments.lambda_only {
            functions_alone
        } else {
            |_| Ok(())
        },
    };
    let done = Box::pin(deployment.run(stack, None, context)).await?;
    // The functions of the new release come before its table, so not while the stack still changes.
    if done.to_the_end {
        context.repository().await?.migrate(Migrate::pending()).await?;
    }
    Ok(done.output)
}

/// An error if a plan changes more than the functions and what calls or watches them. Tags name the release and change
/// with it.
fn functions_alone(plan: &Plan) -> Result<()> {
    let others: Vec<&str> = plan
        .changes
        .iter()
        .filter(|change| !change.resource_type.starts_with("AWS::Lambda::"))
        .filter(|change| !change.tags_only && !change.follows)
        .map(|change| change.logical_id.as_str())
        .chain(plan.outputs.iter().map(|output| output.name.as_str()))
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "--lambda-only was given, but {} would change as well; omit it, or upgrade with the release that deployed the stack",
        others.join(", ")
    )))
}
