//! `audit`: show and archive the audit trail.

pub(super) mod archive;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;
use zae_limiter::Timestamp;
use zae_limiter::audit::{AuditEvent, AuditSubject};
use zae_limiter::records::Ulid;

use super::pagination::{self, total};
use super::record_reports::{json_map, unquoted};
use crate::command_output::{CommandOutput, Text};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Align, TextTable, View};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List audit events, newest first
    #[command(after_help = "Examples:
  zae-limiter audit list --entity-id user-1
  zae-limiter audit list -e '$SYSTEM'                  # changes of system defaults
  zae-limiter audit list -e '$RESOURCE:gpt-4' -l 10    # the latest 10 of a resource")]
    List(List),
    /// Archive audit events that were written before archival was enabled
    #[command(
        after_help = "Scans the whole table and writes the same objects as the archiver, so it is safe to run it \
more than once, while the archiver runs, and again after an interruption.

Exits with 1 if there is no archive or if events had to be left out.

Examples:
  zae-limiter -n my-app audit archive --since 2026-01-01 --dry-run
  zae-limiter -n my-app audit archive --since 90d
  zae-limiter -n my-app audit archive --since 2026-01-01 --until 2026-02-01 --bucket my-archive"
    )]
    Archive(archive::Arguments),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Entity, `$RESOURCE:NAME`, or `$SYSTEM`
    #[arg(short, long, value_name = "ID")]
    entity_id: AuditSubject,
    /// List at most N [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
    /// Only events older than this one
    #[arg(long, value_name = "EVENT", value_parser = event_id)]
    start_event_id: Option<Ulid>,
}

fn event_id(text: &str) -> Result<Ulid, String> {
    Ulid::parse(text).ok_or_else(|| "must be an event ID of 26 characters".to_owned())
}

#[derive(Debug, Serialize)]
struct EventList {
    entity_id: String,
    events: Vec<EventReport>,
    count: usize,
    truncated: bool,
}

#[derive(Debug, Serialize)]
struct EventReport {
    event_id: String,
    timestamp: Timestamp,
    action: String,
    principal: Option<String>,
    resource: Option<String>,
    details: BTreeMap<String, Value>,
}

impl From<AuditEvent> for EventReport {
    fn from(event: AuditEvent) -> Self {
        Self {
            event_id: event.id.to_string(),
            timestamp: event.timestamp,
            action: event.action.to_string(),
            principal: event.principal,
            resource: event.resource,
            details: json_map(&event.details),
        }
    }
}

impl EventReport {
    /// The details in one line, with limits in their text form.
    fn summary(&self) -> String {
        let parts = self
            .details
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| {
                let limits: Option<Vec<String>> =
                    value.as_array().filter(|_| name == "limits").map(|limits| {
                        limits
                            .iter()
                            .map(|limit| {
                                serde_json::from_value::<zae_limiter::Limit>(limit.clone())
                                    .map_or_else(|_| unquoted(limit), |limit| limit.to_string())
                            })
                            .collect()
                    });
                match limits {
                    Some(limits) => limits.join(" "),
                    None => format!("{name}={}", unquoted(value)),
                }
            });
        parts.collect::<Vec<_>>().join(" ")
    }
}

impl Text for EventList {
    fn text(&self, view: &View) -> String {
        let total = total(self.count, "event", "events", self.truncated);
        if self.count == 0 {
            return total;
        }
        let mut table = TextTable::new([
            ("Time", Align::Left),
            ("Action", Align::Left),
            ("Principal", Align::Left),
            ("Resource", Align::Left),
            ("Details", Align::Left),
        ]);
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        for event in &self.events {
            table.row([
                view.zone.show(event.timestamp),
                event.action.clone(),
                or_dash(&event.principal),
                or_dash(&event.resource),
                event.summary(),
            ]);
        }
        format!("{}\n{total}", table.render(view))
    }
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::List(arguments) => list(arguments, context).await,
        Command::Archive(arguments) => Box::pin(archive::run(arguments, context)).await,
    }
}

async fn list(arguments: List, context: &Context) -> Result<CommandOutput> {
    let repository = context.repository().await?;
    let (repository, subject) = (&repository, &arguments.entity_id);
    // IDs sort by time, and the list is newest first.
    let before = |event: &AuditEvent| arguments.start_event_id.is_none_or(|start| event.id < start);
    let collected = pagination::collect(
        arguments.limit,
        |page| async move { repository.list_audit_events(subject, &page).await },
        before,
    )
    .await?;
    let events: Vec<EventReport> = collected.items.into_iter().map(EventReport::from).collect();
    Ok(CommandOutput::new(EventList {
        entity_id: subject.to_string(),
        count: events.len(),
        truncated: collected.truncated,
        events,
    }))
}
