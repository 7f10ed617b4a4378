//! `system`: manage the system-wide default limits.

use clap::{Args, Subcommand};
use zae_limiter::ConfigLevel;

use super::config::{LimitArguments, delete_config, show, store};
use crate::command_output::CommandOutput;
use crate::context::Context;
use crate::error::Result;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set the system defaults, replacing the current ones
    #[command(after_help = "Examples:
  zae-limiter system set-defaults -l rpm:100 -l tpm:10000/min:15000
  zae-limiter system set-defaults -l rps:10/sec:20 --on-unavailable allow")]
    SetDefaults(LimitArguments),
    /// Show the system defaults
    #[command(after_help = "Example:
  zae-limiter system get-defaults")]
    GetDefaults,
    /// Delete the system defaults
    #[command(after_help = "Examples:
  zae-limiter system delete-defaults
  zae-limiter system delete-defaults --yes       # without a prompt")]
    DeleteDefaults(Delete),
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Skip the confirmation prompt
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    let level = ConfigLevel::System;
    match command {
        Command::SetDefaults(arguments) => store(&context.repository().await?, &level, arguments).await,
        Command::GetDefaults => show(&context.repository().await?, &level).await,
        Command::DeleteDefaults(arguments) => delete_config(context, &level, "system", arguments.yes).await,
    }
}
