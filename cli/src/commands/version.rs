//! `version`: the versions of this command and the table.

use clap::Args;
use serde::Serialize;
use zae_limiter::Timestamp;
use zae_limiter::versions::{CLIENT_VERSION, VersionRecord};

use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::View;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter version --client
  zae-limiter -n my-app version --output json")]
pub(crate) struct Arguments {
    /// Show only the version of this command, without reading the table
    #[arg(long)]
    client: bool,
}

#[derive(Debug, Serialize)]
struct VersionReport {
    client_version: &'static str,
    /// The table schema that this command reads and writes.
    schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<TableVersion>,
    /// Why the table was not read, if none was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct TableVersion {
    name: String,
    /// Whether the table has a version record.
    initialized: bool,
    schema_version: Option<String>,
    client_min_version: Option<String>,
    lambda_version: Option<String>,
    updated_at: Option<Timestamp>,
    updated_by: Option<String>,
}

impl TableVersion {
    fn new(name: String, record: Option<VersionRecord>) -> Self {
        let initialized = record.is_some();
        let (schema, client_min, lambda, at, by) = match record {
            Some(record) => (
                Some(record.schema_version),
                Some(record.client_min_version),
                record.lambda_version,
                Some(record.updated_at),
                record.updated_by,
            ),
            None => (None, None, None, None, None),
        };
        Self {
            name,
            initialized,
            schema_version: schema,
            client_min_version: client_min,
            lambda_version: lambda,
            updated_at: at,
            updated_by: by,
        }
    }
}

impl Text for VersionReport {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![format!(
            "zae-limiter {} (table schema {})",
            self.client_version, self.schema_version
        )];
        if let Some(table) = &self.table {
            lines.push(match (&table.schema_version, &table.client_min_version) {
                (Some(schema), Some(client_min)) => {
                    format!(
                        "table {}: schema {schema}, for clients {client_min} or newer",
                        table.name
                    )
                }
                _ => format!("table {}: not initialized", table.name),
            });
            if let (Some(at), Some(by)) = (table.updated_at, &table.updated_by) {
                lines.push(format!("  updated by {by} at {}", view.zone.show(at)));
            }
        }
        lines.extend(self.problem.iter().map(|problem| format!("no table: {problem}")));
        lines.join("\n")
    }
}

/// The version of the table; `None` without a region, where no table can be meant.
async fn table(context: &Context) -> Result<Option<TableVersion>> {
    let repository = match context.repository().await {
        Err(Error::NoRegion) if context.given_name().is_none() => return Ok(None),
        repository => repository?,
    };
    let record = repository.get_version().await?;
    Ok(Some(TableVersion::new(repository.name().to_string(), record)))
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let named = context.given_name().is_some() || context.location.embedded.is_some();
    let (table, problem) = if arguments.client {
        (None, None)
    } else {
        match table(context).await {
            // The version of the command is wanted wherever it runs.
            Err(error) if !named => (None, Some(error.to_string())),
            table => (table?, None),
        }
    };
    Ok(CommandOutput::new(VersionReport {
        client_version: CLIENT_VERSION,
        schema_version: VersionRecord::SCHEMA_VERSION,
        table,
        problem,
    }))
}
