//! `migrate`: migrate the table to the current schema version.

use clap::Args;
use serde::Serialize;
use zae_limiter::versions::{Migrate, MigrationReport, Version};

use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::{Align, TextTable, View, grouped};

#[derive(Debug, Args)]
#[command(
    after_help = "A migration can be stopped at any time and resumed by running it again.

Examples:
  zae-limiter -n my-app migrate --dry-run
  zae-limiter -n my-app migrate"
)]
pub(crate) struct Arguments {
    /// Only count the records that would change
    #[arg(long)]
    dry_run: bool,
    /// Migrate from this version instead of the recorded one
    #[arg(long, value_name = "VERSION")]
    from: Option<Version>,
}

#[derive(Debug, Serialize)]
struct MigrationOutput {
    dry_run: bool,
    steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    name: &'static str,
    description: &'static str,
    version: String,
    found: u64,
    written: u64,
    removed: u64,
    problems: Vec<String>,
}

impl From<MigrationReport> for MigrationOutput {
    fn from(report: MigrationReport) -> Self {
        let steps = report.steps.into_iter().map(|step| Step {
            name: step.name,
            description: step.description,
            version: step.version.to_string(),
            found: step.found,
            written: step.written,
            removed: step.removed,
            problems: step.problems,
        });
        Self {
            dry_run: report.dry_run,
            steps: steps.collect(),
        }
    }
}

impl Text for MigrationOutput {
    fn text(&self, view: &View) -> String {
        if self.steps.is_empty() {
            return "the table is up to date".to_owned();
        }
        let mut table = TextTable::new([
            ("Migration", Align::Left),
            ("To", Align::Left),
            ("Found", Align::Right),
            ("Written", Align::Right),
            ("Removed", Align::Right),
        ]);
        for step in &self.steps {
            let counts = [step.found, step.written, step.removed].map(grouped);
            table.row(
                [step.name.to_owned(), step.version.clone()]
                    .into_iter()
                    .chain(counts),
            );
        }
        let mut lines = vec![table.render(view)];
        for problem in self.steps.iter().flat_map(|step| &step.problems) {
            lines.push(format!("{} {problem}", view.paint.bad("skipped:")));
        }
        if self.dry_run {
            lines.push("dry run: nothing was written".to_owned());
        }
        lines.join("\n")
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let mut migration = Migrate::pending();
    if arguments.dry_run {
        migration = migration.dry_run();
    }
    if let Some(version) = arguments.from {
        migration = migration.from(version);
    }
    let report = MigrationOutput::from(context.repository().await?.migrate(migration).await?);
    let complete = report.steps.iter().all(|step| step.problems.is_empty());
    Ok(CommandOutput::new(report).with_exit(if complete { Exit::Success } else { Exit::Error }))
}
