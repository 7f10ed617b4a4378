//! `delete`: deletes a stack and lists what it keeps.

use clap::Args;
use serde::Serialize;
use zae_limiter::stack::{Deleted, Deletion, Kept, StackOptions};

use super::progress::Progress;
use super::watch::{Watch, Watched};
use crate::command_output::{CommandOutput, Text};
use crate::confirm::confirm_by_name;
use crate::connect::Place;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::View;

#[derive(Debug, Args)]
#[command(
    after_help = "Keeps the table and the archive bucket unless --purge is given. --name is required.

Examples:
  zae-limiter delete -n my-app
  zae-limiter delete -n my-app --purge --yes"
)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Arguments {
    /// Skip the confirmation prompt
    #[arg(short, long)]
    yes: bool,
    /// Also delete the table and the archive bucket with all their data
    #[arg(long)]
    purge: bool,
    /// Keep a resource that made the deletion fail, by logical id (repeatable)
    #[arg(long, value_name = "ID")]
    retain: Vec<String>,
    /// Delete a stack that another tool deploys: one with parameters, or without the tag ManagedBy=zae-limiter
    #[arg(long)]
    adopt: bool,
    /// The role that CloudFormation assumes for the deletion (RoleARN)
    #[arg(long, value_name = "ARN")]
    service_role: Option<String>,
    /// Wait until the deletion ends (the default)
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Exit as soon as CloudFormation has started
    #[arg(long, conflicts_with = "purge")]
    no_wait: bool,
}

#[derive(Debug, Serialize)]
struct Gone {
    name: String,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    deleted: Deleted,
}

impl Text for Gone {
    fn text(&self, view: &View) -> String {
        let mut lines = vec![if self.deleted.existed {
            view.paint.good(&format!("stack {} was deleted", self.name))
        } else {
            format!("stack {} does not exist in {}", self.name, self.place)
        }];
        let mut tell = |what: &str, list: &[Kept]| {
            lines.extend(list.iter().map(|kept| format!("  {what}: {}", named(kept))));
        };
        tell("deleted with its data", &self.deleted.purged);
        tell("kept", &self.deleted.kept);
        if self.deleted.queues {
            lines.push(format!(
                "  SQS blocks the names of deleted queues for {} seconds; an earlier deployment waits that long",
                Deleted::NAMES_BLOCKED.as_secs()
            ));
        }
        lines.join("\n")
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<CommandOutput> {
    let name = context
        .given_name()
        .cloned()
        .ok_or_else(|| Error::usage("delete needs --name: it has no default"))?;
    let stack = super::stack(context, StackOptions::default()).await?;
    let stack = stack.adopt(arguments.adopt);
    let stack = match &arguments.service_role {
        Some(role) => stack.service_role(role),
        None => stack,
    };
    let planned = stack.plan_delete().await?;
    let place = match &planned.place {
        Some(place) => Place::new(
            Some(place.account.clone()),
            Some(place.region.clone()),
            &context.location,
        ),
        None => Place::of_caller(&stack, &context.location).await,
    };
    if let Some(question) = question(&planned, name.as_str(), &place, arguments.purge) {
        confirm_by_name(&question, name.as_str(), arguments.yes)?;
    }
    let progress = Progress::new(&context.terminal, context.location.endpoint());
    let watch = Watch::new(&progress, !arguments.no_wait);
    let stack = stack.observer(watch.observer());
    let how = Deletion {
        purge: arguments.purge,
        retain: arguments.retain,
    };
    match watch.over(Box::pin(stack.delete_with(&how))).await? {
        Watched::Detached => Ok(watch.detached(name.as_str(), "delete")),
        Watched::Done(deleted) => {
            let gone = Gone {
                name: name.to_string(),
                place,
                deleted,
            };
            if progress.is_json() {
                let mut result = serde_json::to_value(&gone).unwrap_or_default();
                result["event"] = "done".into();
                progress.result(&result);
                return Ok(CommandOutput::empty());
            }
            Ok(CommandOutput::new(gone))
        }
    }
}

/// A resource with its kind, such as `table my-app`.
fn named(kept: &Kept) -> String {
    let kind = match kept.resource_type.as_str() {
        "AWS::DynamoDB::Table" => "table",
        "AWS::S3::Bucket" => "bucket",
        "AWS::S3::BucketPolicy" => "policy of bucket",
        "AWS::Logs::LogGroup" => "log group",
        other => other,
    };
    format!("{kind} {}", kept.physical_id)
}

/// What the user confirms: everything that is deleted, what is kept, and where. `None` if nothing would be deleted.
fn question(planned: &Deleted, name: &str, place: &Place, purge: bool) -> Option<String> {
    let kept: Vec<_> = planned.kept.iter().map(named).collect();
    let kept = kept.join(", ");
    Some(match (planned.existed, purge, kept.is_empty()) {
        (false, false, _) | (false, true, true) => return None,
        (false, true, false) => {
            format!("delete {kept} with all its data, left by a deleted stack {name}, in {place}")
        }
        (true, _, true) => format!("delete stack {name} in {place}"),
        (true, true, false) => format!("delete stack {name} in {place}, and {kept} with all data"),
        (true, false, false) => format!("delete stack {name} in {place}. Kept: {kept}"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn planned(existed: bool) -> Deleted {
        let kept = |kind: &str, name: &str| Kept {
            logical_id: "X".to_owned(),
            resource_type: kind.to_owned(),
            physical_id: name.to_owned(),
        };
        Deleted {
            existed,
            kept: vec![
                kept("AWS::DynamoDB::Table", "my-app"),
                kept("AWS::S3::Bucket", "my-app-archive"),
                kept("AWS::Logs::LogGroup", "/aws/lambda/my-app"),
            ],
            ..Deleted::default()
        }
    }

    #[test]
    fn a_question_names_the_kind_of_each_resource_and_the_place() {
        let place = Place {
            account: Some("123456789012".to_owned()),
            region: Some("eu-west-1".to_owned()),
            endpoint: None,
        };
        let ask = |existed, purge| question(&planned(existed), "my-app", &place, purge).unwrap();
        let all = "table my-app, bucket my-app-archive, log group /aws/lambda/my-app";
        let at = "account 123456789012, region eu-west-1";
        assert_eq!(
            ask(true, false),
            format!("delete stack my-app in {at}. Kept: {all}")
        );
        assert_eq!(
            ask(true, true),
            format!("delete stack my-app in {at}, and {all} with all data")
        );
        assert_eq!(
            ask(false, true),
            format!("delete {all} with all its data, left by a deleted stack my-app, in {at}")
        );
    }

    #[test]
    fn nothing_is_asked_only_if_nothing_would_be_deleted() {
        let place = Place {
            account: None,
            region: None,
            endpoint: None,
        };
        let asks = |planned: &Deleted, purge| question(planned, "my-app", &place, purge).is_some();
        let nothing = Deleted::default();
        assert!(!asks(&nothing, false) && !asks(&nothing, true));
        assert!(
            !asks(&planned(false), false),
            "a table that a deleted stack has left stays"
        );
        assert!(asks(&planned(false), true), "it is purged");
        assert!(asks(&planned(true), false) && asks(&planned(true), true));
        let without_data = Deleted {
            existed: true,
            ..Deleted::default()
        };
        assert!(asks(&without_data, false));
    }
}
