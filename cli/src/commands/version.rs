//! `version`: what this command is, and what the table says it is.

use clap::Args;
use serde::Serialize;
use zae_limiter::{CLIENT_VERSION, Timestamp, VersionRecord};

use crate::answer::{Answer, Text};
use crate::context::Context;
use crate::error::Result;
use crate::output::View;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter version --client
  zae-limiter -n my-app version --output json")]
pub(crate) struct Arguments {
    /// Only this command's version; the table is not asked
    #[arg(long)]
    client: bool,
}

#[derive(Debug, Serialize)]
struct Versions {
    client_version: &'static str,
    /// The format of the table that this command reads and writes.
    schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<Table>,
}

#[derive(Debug, Serialize)]
struct Table {
    name: String,
    /// False if nobody has written its version yet.
    initialized: bool,
    schema_version: Option<String>,
    client_min_version: Option<String>,
    lambda_version: Option<String>,
    updated_at: Option<Timestamp>,
    updated_by: Option<String>,
}

impl Table {
    fn of(name: String, record: Option<VersionRecord>) -> Self {
        let initialized = record.is_some();
        let (schema, least, lambda, at, by) = match record {
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
            client_min_version: least,
            lambda_version: lambda,
            updated_at: at,
            updated_by: by,
        }
    }
}

impl Text for Versions {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![format!(
            "zae-limiter {} (table format {})",
            self.client_version, self.schema_version
        )];
        if let Some(table) = &self.table {
            lines.push(match (&table.schema_version, &table.client_min_version) {
                (Some(schema), Some(least)) => {
                    format!(
                        "table {}: format {schema}, for clients from {least} on",
                        table.name
                    )
                }
                _ => format!("table {}: not initialized", table.name),
            });
            if let (Some(at), Some(by)) = (table.updated_at, &table.updated_by) {
                lines.push(format!("  written by {by} at {}", view.zone.show(at)));
            }
        }
        lines.join("\n")
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<Answer> {
    let table = if arguments.client {
        None
    } else {
        let limiter = context.limiter().await?;
        Some(Table::of(limiter.name().to_string(), limiter.version().await?))
    };
    Ok(Answer::of(Versions {
        client_version: CLIENT_VERSION,
        schema_version: VersionRecord::SCHEMA_VERSION,
        table,
    }))
}
