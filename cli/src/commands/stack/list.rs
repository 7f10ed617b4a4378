//! `list`: the stacks of this project in the account and region.

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::{Discovered, Stack, StackOptions};

use crate::command_output::{CommandOutput, Text};
use crate::commands::pagination::total;
use crate::connect::Place;
use crate::context::Context;
use crate::error::Result;
use crate::output::{Align, TextTable, View};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  zae-limiter list --region eu-west-1")]
pub(crate) struct Arguments {}

#[derive(Debug, Serialize)]
struct Stacks {
    #[serde(flatten)]
    place: Place,
    stacks: Vec<Discovered>,
    count: usize,
}

impl Text for Stacks {
    fn text(&self, view: &View) -> String {
        let total = total(self.count, "stack", "stacks", false);
        let total = format!("{total} in {}", self.place);
        if self.count == 0 {
            return total;
        }
        let mut table = TextTable::new([
            ("Name", Align::Left),
            ("Status", Align::Left),
            ("Created by", Align::Left),
            ("Release", Align::Left),
            ("Region", Align::Left),
            ("Created", Align::Left),
        ]);
        for stack in &self.stacks {
            table.row([
                stack.user_name.clone(),
                stack.status.clone(),
                stack.owner.to_string(),
                stack.version.clone().unwrap_or_else(|| "-".to_owned()),
                stack.region.clone(),
                stack.created.clone(),
            ]);
        }
        format!("{}\n{total}", table.render(view))
    }
}

pub(crate) async fn run(_: Arguments, context: &Context) -> Result<CommandOutput> {
    let stacks = Stack::discover(&context.location.aws().await?).await?;
    let place = match stacks.first() {
        Some(found) => Place::new(
            Some(found.account.clone()),
            Some(found.region.clone()),
            &context.location,
        ),
        None => {
            let stack = super::stack(context, StackOptions::default()).await?;
            Place::of_caller(&stack, &context.location).await
        }
    };
    Ok(CommandOutput::new(Stacks {
        place,
        count: stacks.len(),
        stacks,
    }))
}
