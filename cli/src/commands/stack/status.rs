//! `status`: a stack and its table at a glance.

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::{Health, StackOptions, Status};
use zae_limiter::versions::Compatibility;

use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::{View, grouped};

#[derive(Debug, Args)]
#[command(
    after_help = "Ends with 1 if there is no stack, if it has failed, or if its table does not answer.

Examples:
  zae-limiter status -n my-app
  zae-limiter status -n my-app --output json"
)]
pub(crate) struct Arguments {}

#[derive(Debug, Serialize)]
struct Glance {
    name: String,
    exists: bool,
    stack: Option<Status>,
    table: Table,
}

#[derive(Debug, Serialize)]
struct Table {
    /// Whether it answers.
    available: bool,
    schema_version: Option<String>,
    compatible: Option<bool>,
    /// As DynamoDB last counted, which it does every six hours; nothing where it is not told.
    items: Option<i64>,
    bytes: Option<i64>,
    /// Why it does not answer.
    problem: Option<String>,
}

impl Text for Glance {
    fn text(&self, view: &View) -> String {
        let Some(stack) = &self.stack else {
            return format!(
                "there is no stack {}; deploy it with `zae-limiter deploy -n {}`",
                self.name, self.name
            );
        };
        let health = match stack.health {
            Health::Healthy => view.paint.good(&stack.status),
            Health::InProgress => view.paint.changed(&stack.status),
            Health::Failed => view.paint.bad(&stack.status),
        };
        let mut lines = vec![format!("Stack:    {} {health}", stack.name)];
        lines.extend(stack.reason.iter().map(|reason| format!("          {reason}")));
        lines.push(format!("Release:  {}", stack.version.as_deref().unwrap_or("-")));
        lines.push(format!("Created:  {}", stack.created));
        lines.extend(stack.updated.iter().map(|updated| format!("Updated:  {updated}")));
        lines.push(match (&self.table.problem, &self.table.schema_version) {
            (Some(problem), _) => format!("Table:    {} {problem}", view.paint.bad("does not answer:")),
            (None, Some(schema)) => format!("Table:    {} (format {schema})", view.paint.good("answers")),
            (None, None) => format!("Table:    {} (no version record yet)", view.paint.good("answers")),
        });
        if let (Some(items), Some(bytes)) = (self.table.items, self.table.bytes) {
            let (items, bytes) = (grouped(items), grouped(bytes));
            lines.push(format!(
                "          {items} items, {bytes} bytes (counted every six hours)"
            ));
        }
        lines.push(format!("Retained: {}", stack.retained.join(", ")));
        lines.extend(
            stack
                .outputs
                .iter()
                .map(|(name, value)| format!("  {name}: {value}")),
        );
        lines.join("\n")
    }
}

pub(crate) async fn run(_: Arguments, context: &Context) -> Result<CommandOutput> {
    let stack = super::stack(context, StackOptions::default()).await?;
    let status = stack.status().await?;
    let size = size(context).await;
    let table = match context.repository().await?.version().await {
        Ok(record) => Table {
            available: true,
            items: size.map(|(items, _)| items),
            bytes: size.map(|(_, bytes)| bytes),
            compatible: record
                .as_ref()
                .map(|record| Compatibility::of(record) == Compatibility::Compatible),
            schema_version: record.map(|record| record.schema_version),
            problem: None,
        },
        Err(error) => Table {
            available: false,
            compatible: None,
            items: None,
            bytes: None,
            schema_version: None,
            problem: Some(crate::connect::explain(&error)),
        },
    };
    let well = status
        .as_ref()
        .is_some_and(|status| status.health != Health::Failed)
        && table.available;
    let glance = Glance {
        name: stack.name().to_string(),
        exists: status.is_some(),
        stack: status,
        table,
    };
    Ok(CommandOutput::new(glance).with_exit(if well { Exit::Success } else { Exit::Error }))
}

/// Items and bytes of the table. Somebody who may not ask for them learns the rest.
async fn size(context: &Context) -> Option<(i64, i64)> {
    let client = crate::connect::dynamo(&context.location).await.ok()?;
    let name = context.name().ok()?;
    let described = client
        .describe_table()
        .table_name(name.as_str())
        .send()
        .await
        .ok()?;
    let table = described.table?;
    Some((table.item_count?, table.table_size_bytes?))
}
