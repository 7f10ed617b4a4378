//! `check`: check that this command and the table are compatible.

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::StreamReader;
use zae_limiter::versions::{CLIENT_VERSION, Compatibility, VersionRecord};

use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::View;

#[derive(Debug, Args)]
#[command(
    after_help = "Also lists the functions that read the table's stream, if the stack can be read.
Exits with 0 if the command and the table are compatible and no foreign function reads the stream, and with 1 if not.

Example:
  zae-limiter -n my-app check"
)]
pub(crate) struct Arguments {}

#[derive(Debug, Serialize)]
struct CompatibilityReport {
    name: String,
    compatible: bool,
    state: &'static str,
    client_version: &'static str,
    schema_version: Option<String>,
    client_min_version: Option<String>,
    problem: Option<String>,
    /// The functions that read the table's stream, if they could be listed.
    stream_readers: Option<Vec<StreamReader>>,
}

impl Text for CompatibilityReport {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![self.compatibility(view)];
        for reader in self.stream_readers.iter().flatten() {
            let function = &reader.function_arn;
            let state = &reader.state;
            lines.push(if reader.own {
                format!("stream reader: {function} ({state})")
            } else {
                let foreign = view.paint.bad("foreign stream reader:");
                format!("{foreign} {function} ({state}, mapping {})", reader.mapping)
            });
        }
        lines.join("\n")
    }
}

impl CompatibilityReport {
    fn compatibility(&self, view: &View) -> String {
        let name = &self.name;
        match &self.problem {
            None => view.paint.good(&format!("table {name} is compatible")),
            Some(problem) => format!(
                "{} {problem}",
                view.paint.bad(&format!("table {name} is not compatible:"))
            ),
        }
    }
}

fn state(compatibility: &Compatibility) -> &'static str {
    match compatibility {
        Compatibility::Compatible => "compatible",
        Compatibility::NeedsMigration { .. } => "needs_migration",
        Compatibility::SchemaTooNew { .. } => "schema_too_new",
        Compatibility::ClientTooOld { .. } => "client_too_old",
        _ => "unreadable",
    }
}

pub(crate) async fn run(_: Arguments, context: &Context) -> Result<CommandOutput> {
    let repository = context.repository().await?;
    let record: Option<VersionRecord> = repository.version().await?;
    let (state, problem) = match record.as_ref().map(Compatibility::of) {
        Some(found) => (state(&found), found.problem()),
        None => (
            "not_initialized",
            Some("it has no version record; the first change or `zae-limiter migrate` writes one".to_owned()),
        ),
    };
    let compatible = problem.is_none();
    let report = CompatibilityReport {
        name: repository.name().to_string(),
        compatible,
        state,
        client_version: CLIENT_VERSION,
        schema_version: record.as_ref().map(|record| record.schema_version.clone()),
        client_min_version: record.map(|record| record.client_min_version),
        problem,
        stream_readers: super::stack::stream_readers(context).await,
    };
    let alone = report.stream_readers.iter().flatten().all(|reader| reader.own);
    let exit = if compatible && alone {
        Exit::Success
    } else {
        Exit::Error
    };
    Ok(CommandOutput::new(report).with_exit(exit))
}
