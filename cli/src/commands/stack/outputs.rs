//! `outputs`: all outputs of the stack. Other commands show the few that an application needs.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::StackOptions;

use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::output::View;

/// What applications and their roles are configured with.
const MAIN: [&str; 7] = [
    "TableName",
    "AcquireOnlyPolicyArn",
    "FullAccessPolicyArn",
    "ReadOnlyPolicyArn",
    "AppRoleArn",
    "AuditArchiveBucketName",
    "DashboardName",
];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter outputs -n my-app
  zae-limiter outputs -n my-app --output json")]
pub(crate) struct Arguments {}

#[derive(Debug, Serialize)]
struct Outputs {
    name: String,
    outputs: BTreeMap<String, String>,
}

impl Text for Outputs {
    fn text(&self, _: &View) -> String {
        if self.outputs.is_empty() {
            return format!("stack {} has no outputs", self.name);
        }
        let lines = self
            .outputs
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The main outputs, a line each, and where to find the others.
pub(super) fn main_lines(stack: &str, outputs: &BTreeMap<String, String>) -> Vec<String> {
    let main: Vec<_> = MAIN
        .iter()
        .filter_map(|name| Some(format!("  {name}: {}", outputs.get(*name)?)))
        .collect();
    let others = outputs.len() - main.len();
    let more = (others > 0).then(|| format!("  {others} more: `zae-limiter outputs -n {stack}`"));
    main.into_iter().chain(more).collect()
}

pub(crate) async fn run(_: Arguments, context: &Context) -> Result<CommandOutput> {
    let stack = super::stack(context, StackOptions::default()).await?;
    let status = super::of_a_stack(context, &stack, stack.existing_status().await).await?;
    Ok(CommandOutput::new(Outputs {
        name: status.name,
        outputs: status.outputs,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_outputs_come_first_and_the_others_are_counted() {
        let outputs = ["Other", "TableName", "Another"].map(|name| (name.to_owned(), "x".to_owned()));
        let lines = main_lines("demo", &outputs.into());
        assert_eq!(
            lines,
            ["  TableName: x", "  2 more: `zae-limiter outputs -n demo`"]
        );
        assert!(main_lines("demo", &BTreeMap::new()).is_empty());
    }
}
