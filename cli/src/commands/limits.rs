//! `limits`: the limits of all levels as one file. The file manages the levels that it names, and those that it named
//! when it was last applied; all others are left alone.

mod apply;
mod difference;
pub(crate) mod form;
mod manifest;
mod shown;
mod state;
mod stored;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use zae_limiter::RateLimiter;

use difference::Changes;
use manifest::Manifest;
use shown::{Diff, Plan};
use state::{Record, State};

use crate::answer::Answer;
use crate::ask::confirm;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Format;

const FILE_HELP: &str = "The file is YAML or JSON; - is standard input:

  system:
    on_unavailable: block
    limits: [\"rpm:100\", \"tpm:10000/min:15000\"]
  resources:
    gpt-4:
      limits: {rpm: 500, tpm: 50000/min, tpd: {capacity: 1000000, period: day}}
  entities:
    user-1:
      limits: [\"rpm:1000\"]              # on every resource without limits of its own
      resources:
        gpt-4: {limits: {rpm: 2000}}

A level that the file names is set to what it says, whole. A level that it named when it was last applied, and names no
more, is deleted. Every other level is left alone.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what apply would do
    #[command(after_help = FILE_HELP)]
    Plan(Look),
    /// Make the table's limits what the file says
    #[command(after_help = FILE_HELP)]
    Apply(Apply),
    /// Compare the file with the table, line by line, unmanaged levels included
    #[command(after_help = FILE_HELP)]
    Diff(Look),
}

#[derive(Debug, Args)]
pub(crate) struct Look {
    /// The file
    file: PathBuf,
    /// End with 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// The file
    file: PathBuf,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer> {
    match command {
        Command::Plan(Look {
            file,
            detailed_exitcode,
        }) => {
            let compared = Compared::of(&file, context).await?;
            let exit = compared.exit(detailed_exitcode);
            Ok(Answer::of(Plan::of(compared.changes, false)).with_exit(exit))
        }
        Command::Diff(Look {
            file,
            detailed_exitcode,
        }) => {
            let compared = Compared::of(&file, context).await?;
            let exit = compared.exit(detailed_exitcode);
            let everything = stored::every_level(&compared.limiter).await?;
            let unmanaged = compared
                .changes
                .unmanaged(everything, &compared.record.state.managed);
            Ok(Answer::of(Diff::of(compared.changes, unmanaged)).with_exit(exit))
        }
        Command::Apply(Apply { file, yes }) => {
            let compared = Compared::of(&file, context).await?;
            if !compared.changes.is_empty() && !yes {
                let plan = Plan::of(compared.changes.clone(), false);
                let terminal = crate::output::Terminal {
                    format: Format::Table,
                    ..context.terminal
                };
                eprintln!("{}", Answer::of(plan).render(&terminal)?);
                confirm("Apply these changes?", yes)?;
            }
            let changes = apply::apply(compared).await?;
            Ok(Answer::of(Plan::of(changes, true)))
        }
    }
}

/// A file next to what the table has.
struct Compared {
    limiter: RateLimiter,
    manifest: Manifest,
    /// Of the file as it was read.
    hash: String,
    record: Record,
    changes: Changes,
}

impl Compared {
    async fn of(file: &Path, context: &Context) -> Result<Self> {
        let text = read(file)?;
        let manifest = Manifest::parse(&text).map_err(|mistake| Error::Manifest {
            file: file.to_owned(),
            at: mistake.at,
            problem: mistake.problem,
        })?;
        let limiter = context.limiter().await?;
        let record = Record::read(context).await?;
        let levels = manifest.levels.keys().chain(&record.state.managed).cloned();
        let stored = stored::levels(&limiter, levels).await?;
        Ok(Self {
            changes: Changes::between(&manifest, &stored, &record.state.managed),
            hash: state::hash(&text),
            limiter,
            manifest,
            record,
        })
    }

    fn exit(&self, detailed: bool) -> Exit {
        if detailed && !self.changes.is_empty() {
            Exit::CHANGES
        } else {
            Exit::Success
        }
    }
}

fn read(file: &Path) -> Result<String> {
    if file == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).map_err(Error::reading("standard input"));
    }
    std::fs::read_to_string(file).map_err(Error::reading(file.display().to_string()))
}
