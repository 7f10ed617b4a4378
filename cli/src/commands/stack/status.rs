//! `status`: the status of a stack, its table and its functions.

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::{FunctionStatus, Health, StackOptions, Status};
use zae_limiter::versions::Compatibility;

use super::{functions, outputs};
use crate::command_output::{CommandOutput, Text};
use crate::connect::Place;
use crate::context::Context;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::{View, grouped};

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 1 if the table is unavailable, if the stack has failed, or if there is neither a stack nor a table
that Terraform manages.

Examples:
  zae-limiter status -n my-app
  zae-limiter status -n my-app --output json"
)]
pub(crate) struct Arguments {}

#[derive(Debug, Serialize)]
struct Glance {
    name: String,
    #[serde(flatten)]
    place: Place,
    exists: bool,
    /// Whether Terraform manages the table, which then has no stack.
    terraform: bool,
    stack: Option<Status>,
    table: Table,
    functions: Vec<FunctionStatus>,
}

#[derive(Debug, Serialize)]
struct Table {
    /// Whether it responds.
    available: bool,
    schema_version: Option<String>,
    compatible: Option<bool>,
    /// As DynamoDB last counted, which it does every six hours.
    items: Option<i64>,
    bytes: Option<i64>,
    /// Why it is unavailable.
    problem: Option<String>,
}

impl Table {
    fn lines(&self, view: &View) -> Vec<String> {
        let mut lines = Vec::new();
        lines.push(match (&self.problem, &self.schema_version) {
            (Some(problem), _) => format!("Table:    {} {problem}", view.paint.bad("unavailable:")),
            (None, Some(schema)) => format!("Table:    {} (format {schema})", view.paint.good("available")),
            (None, None) => format!(
                "Table:    {} (no version record yet)",
                view.paint.good("available")
            ),
        });
        if let (Some(items), Some(bytes)) = (self.items, self.bytes) {
            let (items, bytes) = (grouped(items), grouped(bytes));
            lines.push(format!(
                "          {items} items, {bytes} bytes (counted every six hours)"
            ));
        }
        lines
    }
}

impl Glance {
    fn function_lines(&self, view: &View) -> Vec<String> {
        let functions = self.functions.iter();
        functions
            .flat_map(|function| functions::lines(function, view))
            .collect()
    }
}

impl Text for Glance {
    fn text(&self, view: &View) -> String {
        let Some(stack) = &self.stack else {
            if self.terraform {
                let mut lines = vec!["Stack:    none; Terraform manages the table".to_owned()];
                lines.push(format!("Place:    {}", self.place));
                lines.extend(self.table.lines(view));
                lines.extend(self.function_lines(view));
                return lines.join("\n");
            }
            return format!(
                "there is no stack {} in {}; deploy it with `zae-limiter deploy -n {}`, or check --region",
                self.name, self.place, self.name
            );
        };
        let health = match stack.health {
            Health::Healthy => view.paint.good(&stack.status),
            Health::InProgress => view.paint.changed(&stack.status),
            Health::Failed => view.paint.bad(&stack.status),
        };
        let mut lines = vec![format!("Stack:    {} {health}", stack.name)];
        lines.push(format!("Place:    {}", self.place));
        lines.extend(stack.reason.iter().map(|reason| format!("          {reason}")));
        lines.push(format!("Release:  {}", stack.version.as_deref().unwrap_or("-")));
        lines.push(format!("Created:  {}", stack.created));
        lines.extend(stack.updated.iter().map(|updated| format!("Updated:  {updated}")));
        if stack.termination_protection {
            lines.push("          termination protection is on".to_owned());
        }
        lines.extend(self.table.lines(view));
        lines.extend(self.function_lines(view));
        lines.push(format!("Retained: {}", stack.retained.join(", ")));
        lines.extend(outputs::main_lines(&stack.name, &stack.outputs));
        lines.join("\n")
    }
}

pub(crate) async fn run(_: Arguments, context: &Context) -> Result<CommandOutput> {
    let stack = super::stack(context, StackOptions::default()).await?;
    let status = stack.status().await?;
    let size = size(context).await;
    let table = match context.repository().await?.get_version().await {
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
    let terraform = status.is_none() && stack.is_managed_by_terraform().await?;
    let functions = if status.is_some() || terraform {
        stack.function_statuses(status.as_ref()).await?
    } else {
        vec![]
    };
    let place = match &status {
        Some(status) => Place::new(status.account.clone(), status.region.clone(), &context.location),
        None => Place::of_caller(&stack, &context.location).await,
    };
    let works = |status: &Status| status.health != Health::Failed;
    let well = status.as_ref().map_or(terraform, works) && table.available;
    let glance = Glance {
        name: stack.name().to_string(),
        place,
        exists: status.is_some(),
        terraform,
        stack: status,
        table,
        functions,
    };
    Ok(CommandOutput::new(glance).with_exit(if well { Exit::Success } else { Exit::Error }))
}

/// Items and bytes of the table; `None` without the permission to read them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Color, Paint, Zone};

    #[test]
    fn a_table_of_terraform_is_shown_without_a_stack() {
        let mut glance = Glance {
            name: "limiter".to_owned(),
            place: Place {
                account: Some("123456789012".to_owned()),
                region: Some("eu-west-1".to_owned()),
                endpoint: None,
            },
            exists: false,
            terraform: true,
            stack: None,
            table: Table {
                available: true,
                schema_version: Some("0.8.0".to_owned()),
                compatible: Some(true),
                items: Some(3),
                bytes: Some(400),
                problem: None,
            },
            functions: vec![],
        };
        let view = View {
            width: None,
            paint: Paint::new(Color::Never, false),
            zone: Zone::Utc,
        };
        let text = glance.text(&view);
        assert!(text.contains("Terraform manages the table"), "{text}");
        assert!(
            text.contains("available (format 0.8.0)") && text.contains("3 items"),
            "{text}"
        );
        glance.terraform = false;
        assert!(
            glance
                .text(&view)
                .contains("there is no stack limiter in account 123456789012, region eu-west-1")
        );
    }
}
