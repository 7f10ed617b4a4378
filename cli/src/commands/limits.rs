//! `limits`: manage the limits of all levels with one file.
//!
//! The file manages the levels that it contains, and those that it contained when it was last applied. All other levels
//! are left unchanged.

mod reports;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use zae_limiter_limits::{Comparison, Manifest};

use reports::{DiffReport, PlanReport};

use crate::command_output::CommandOutput;
use crate::confirm::confirm;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Format;
use crate::parse::now;

/// Parses a limits file; the message, if it is refused.
pub(crate) fn check_file(text: &str) -> std::result::Result<(), String> {
    Manifest::parse(text)
        .map(drop)
        .map_err(|invalid| invalid.to_string())
}

/// The help that `plan`, `apply`, and `diff` share, after the examples of the command.
macro_rules! file_help {
    ($examples:literal) => {
        concat!(
            "The file is YAML or JSON. Use - for standard input.

  system:
    on_unavailable: block
    limits: [\"rpm:100\", \"tpm:10000/min:15000\"]
  resources:
    gpt-4:
      limits: {rpm: 500, tpm: 50000/min, tpd: {capacity: 1000000, period: day}}
      prices: {input: $2.50, output: $10}   # per million tokens
  entities:
    user-1:
      limits: [\"rpm:1000\"]              # on every resource without its own limits
      resources:
        gpt-4: {limits: {rpm: 2000}}

A level in the file is replaced as a whole. A level that was in the file when it was last applied, and no longer is, \
is deleted. All other levels are left unchanged.

Examples:
",
            $examples
        )
    };
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what apply would change
    #[command(after_help = file_help!("  zae-limiter limits plan limits.yaml
  zae-limiter limits plan limits.yaml --detailed-exitcode"))]
    Plan(CompareArguments),
    /// Set the limits in the table to those in the file
    #[command(after_help = file_help!("  zae-limiter limits apply limits.yaml
  zae-limiter limits apply limits.yaml --yes       # without a prompt"))]
    Apply(ApplyArguments),
    /// Compare the file with the table line by line, including unmanaged levels
    #[command(after_help = file_help!("  zae-limiter limits diff limits.yaml"))]
    Diff(CompareArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// Limits file
    file: PathBuf,
    /// Exit with 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArguments {
    /// Limits file
    file: PathBuf,
    /// Skip the confirmation prompt
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::Plan(CompareArguments {
            file,
            detailed_exitcode,
        }) => {
            let comparison = compare(&file, context).await?;
            let exit = exit(&comparison, detailed_exitcode);
            let plan = PlanReport::new(comparison.changes().clone(), false);
            Ok(CommandOutput::new(plan).with_exit(exit))
        }
        Command::Diff(CompareArguments {
            file,
            detailed_exitcode,
        }) => {
            let comparison = compare(&file, context).await?;
            let exit = exit(&comparison, detailed_exitcode);
            let unmanaged = comparison.unmanaged().await.map_err(Error::of_limits(&file))?;
            let diff = DiffReport::new(comparison.changes().clone(), unmanaged);
            Ok(CommandOutput::new(diff).with_exit(exit))
        }
        Command::Apply(ApplyArguments { file, yes }) => {
            let comparison = compare(&file, context).await?;
            if !comparison.changes().is_empty() && !yes {
                let plan = PlanReport::new(comparison.changes().clone(), false);
                let terminal = crate::output::Terminal {
                    format: Format::Table,
                    ..context.terminal
                };
                eprintln!("{}", CommandOutput::new(plan).render(&terminal)?);
                confirm("Apply these changes?", yes)?;
            }
            let changes = comparison.apply(now()).await.map_err(Error::of_limits(&file))?;
            Ok(CommandOutput::new(PlanReport::new(changes, true)))
        }
    }
}

async fn compare(file: &Path, context: &Context) -> Result<Comparison> {
    let text = read(file)?;
    // Parsed first, so that mistakes in the file are reported in any state of the table.
    let manifest = Manifest::parse(&text).map_err(|invalid| Error::manifest(file, &text, &invalid))?;
    let repository = context.repository().await?;
    Comparison::of_parsed(&repository, manifest, &text)
        .await
        .map_err(Error::of_limits(file))
}

fn exit(comparison: &Comparison, detailed: bool) -> Exit {
    if detailed && !comparison.changes().is_empty() {
        Exit::CHANGES
    } else {
        Exit::Success
    }
}

fn read(file: &Path) -> Result<String> {
    if file == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).map_err(Error::reading("standard input"));
    }
    std::fs::read_to_string(file).map_err(Error::reading(file.display().to_string()))
}
