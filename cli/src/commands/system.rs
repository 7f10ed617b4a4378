//! `system`: limits for everybody on everything.

use clap::{Args, Subcommand};
use zae_limiter::ConfigLevel;

use super::config::{LimitArguments, deleted, show, store};
use crate::answer::Answer;
use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set the limits of the system, in place of those it has
    #[command(after_help = "Examples:
  zae-limiter system set-defaults -l rpm:100 -l tpm:10000/min:15000
  zae-limiter system set-defaults -l rps:10/sec:20 --on-unavailable allow")]
    SetDefaults(LimitArguments),
    /// Show the limits of the system
    GetDefaults,
    /// Delete the limits of the system
    DeleteDefaults(Delete),
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer> {
    let level = ConfigLevel::System;
    match command {
        Command::SetDefaults(arguments) => {
            let (limits, policy) = arguments.parts();
            store(&context.limiter().await?, &level, limits, policy).await
        }
        Command::GetDefaults => show(&context.limiter().await?, &level).await,
        Command::DeleteDefaults(arguments) => deleted(context, &level, "system", arguments.yes).await,
    }
}
