//! `drift`: reports resources that were changed outside of CloudFormation.

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::{Drift, StackOptions, Verdict};

use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::View;

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0, or with 2 if something has drifted and --detailed-exitcode is given.

Examples:
  zae-limiter drift -n my-app --detailed-exitcode"
)]
pub(crate) struct Arguments {
    /// Exit with 2 if something has drifted
    #[arg(long)]
    detailed_exitcode: bool,
}

#[derive(Debug, Serialize)]
struct Found {
    name: String,
    #[serde(flatten)]
    drift: Drift,
}

impl Text for Found {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![match self.drift.verdict {
            Verdict::InSync => view
                .paint
                .good(&format!("stack {} matches its template", self.name)),
            Verdict::Drifted => view.paint.bad(&format!("stack {} has drifted", self.name)),
            Verdict::Unknown => format!("drift of stack {} could not be detected", self.name),
        }];
        lines.extend(self.drift.reason.iter().map(|reason| format!("  {reason}")));
        for resource in &self.drift.drifted {
            let what = if resource.deleted {
                "was deleted"
            } else {
                "differs"
            };
            lines.push(format!(
                "  {} ({}) {what}",
                resource.logical_id, resource.resource_type
            ));
            for property in &resource.properties {
                lines.push(format!(
                    "    {}: {} instead of {}",
                    property.path, property.actual, property.expected
                ));
            }
        }
        lines.extend(
            self.drift
                .unknown
                .iter()
                .map(|id| format!("  {id} could not be checked")),
        );
        if !self.drift.unchecked.is_empty() {
            lines.push(format!(
                "  not checked by CloudFormation: {}",
                self.drift.unchecked.join(", ")
            ));
        }
        lines.join("\n")
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let stack = super::stack(context, StackOptions::default()).await?;
    let drift = super::of_a_stack(context, &stack, stack.drift().await).await?;
    let exit = match drift.verdict {
        Verdict::Unknown => Exit::Error,
        Verdict::Drifted if arguments.detailed_exitcode => Exit::CHANGES,
        _ => Exit::Success,
    };
    let name = stack.name().to_string();
    Ok(CommandOutput::new(Found { name, drift }).with_exit(exit))
}
