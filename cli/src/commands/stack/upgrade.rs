//! `upgrade`: a stack of an earlier release, brought to this one.

use clap::Args;
use zae_limiter::Migrate;
use zae_limiter::stack::Error as StackError;

use super::options::Wanted;
use super::plan::Allowed;
use super::{deploy, progress::Progress};
use crate::answer::Answer;
use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Args)]
#[command(
    after_help = "The same as deploy for a stack that exists; the table is brought up to date after it. Give the options
that the stack was deployed with: those that are left out go back to their defaults, as the plan shows.

Examples:
  zae-limiter upgrade -n my-app options.yaml"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Do not ask
    #[arg(short, long, help_heading = "Options")]
    yes: bool,
    #[command(flatten)]
    allowed: Allowed,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<Answer> {
    let stack = super::stack(context, arguments.wanted.options()?).await?;
    let stack = arguments.allowed.on(stack);
    if stack.status().await?.is_none() {
        let stack = stack.name().to_string();
        return Err(StackError::NoSuchStack { stack }.into());
    }
    let plan = stack.plan().await?;
    let progress = Progress::new(&context.terminal);
    progress.plan(&plan);
    let answer = Box::pin(deploy::apply(
        stack,
        &plan,
        &progress,
        arguments.yes,
        true,
        context,
    ))
    .await?;
    context.limiter().await?.migrate(Migrate::pending()).await?;
    Ok(answer)
}
