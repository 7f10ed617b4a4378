//! `migrate`: bringing the table of an older version up to date.

use clap::Args;
use serde::Serialize;
use zae_limiter::{Migrate, MigrationReport, Version};

use crate::answer::{Answer, Text};
use crate::context::Context;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::{Align, Table, View, grouped};

#[derive(Debug, Args)]
#[command(after_help = "It may be stopped at any time and run again.

Examples:
  zae-limiter -n my-app migrate --dry-run
  zae-limiter -n my-app migrate")]
pub(crate) struct Arguments {
    /// Only count what would be done
    #[arg(long)]
    dry_run: bool,
    /// Take the table to be of this version, whatever its record says
    #[arg(long, value_name = "VERSION")]
    from: Option<Version>,
}

#[derive(Debug, Serialize)]
struct Migrated {
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

impl From<MigrationReport> for Migrated {
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

impl Text for Migrated {
    fn text(&self, view: &View) -> String {
        if self.steps.is_empty() {
            return "the table is up to date".to_owned();
        }
        let mut table = Table::new([
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
            lines.push(format!("{} {problem}", view.paint.bad("left alone:")));
        }
        if self.dry_run {
            lines.push("nothing was written: this was a dry run".to_owned());
        }
        lines.join("\n")
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<Answer> {
    let mut how = Migrate::pending();
    if arguments.dry_run {
        how = how.dry_run();
    }
    if let Some(version) = arguments.from {
        how = how.from(version);
    }
    let migrated = Migrated::from(context.limiter().await?.migrate(how).await?);
    let whole = migrated.steps.iter().all(|step| step.problems.is_empty());
    Ok(Answer::of(migrated).with_exit(if whole { Exit::Success } else { Exit::Error }))
}
