//! `audit`: who changed what.

mod archive;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;
use zae_limiter::{AuditEvent, AuditSubject, Timestamp, Ulid};

use super::pages::{self, total};
use super::shown::{json_map, plain};
use crate::answer::{Answer, Text};
use crate::context::Context;
use crate::error::Result;
use crate::output::{Align, Table, View};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List audit events, newest first
    #[command(after_help = "Examples:
  zae-limiter audit list --entity-id user-1
  zae-limiter audit list -e '$SYSTEM'               (changes of the system's limits)
  zae-limiter audit list -e '$RESOURCE:gpt-4' -l 10 (of a resource's limits, the latest ten)")]
    List(List),
    /// Put audit events into the archive that were written before it was switched on
    #[command(
        after_help = "It reads the whole table, and writes the same objects that the archiver writes: it may be run \
twice, beside the archiver, and again after it was stopped.

Ends with 1 if there is no archive, or if events had to be left out.

Examples:
  zae-limiter -n my-app audit archive --since 2026-01-01 --dry-run
  zae-limiter -n my-app audit archive --since 90d
  zae-limiter -n my-app audit archive --since 2026-01-01 --until 2026-02-01 --bucket my-archive"
    )]
    Archive(archive::Arguments),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// An entity, `$RESOURCE:NAME` or `$SYSTEM`
    #[arg(short, long, value_name = "ID")]
    entity_id: AuditSubject,
    /// At most so many [default: all]
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
    /// Only events before this one
    #[arg(long, value_name = "EVENT", value_parser = event_id)]
    start_event_id: Option<Ulid>,
}

fn event_id(text: &str) -> Result<Ulid, String> {
    Ulid::parse(text).ok_or_else(|| "it must be the 26 characters of an event's id".to_owned())
}

#[derive(Debug, Serialize)]
struct Events {
    entity_id: String,
    events: Vec<Event>,
    count: usize,
    truncated: bool,
}

#[derive(Debug, Serialize)]
struct Event {
    event_id: String,
    timestamp: Timestamp,
    action: String,
    principal: Option<String>,
    resource: Option<String>,
    details: BTreeMap<String, Value>,
}

impl From<AuditEvent> for Event {
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

impl Event {
    /// The particulars in a line: limits in their text form, the rest as it is.
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
                                    .map_or_else(|_| plain(limit), |limit| limit.to_string())
                            })
                            .collect()
                    });
                match limits {
                    Some(limits) => limits.join(" "),
                    None => format!("{name}={}", plain(value)),
                }
            });
        parts.collect::<Vec<_>>().join(" ")
    }
}

impl Text for Events {
    fn text(&self, view: &View) -> String {
        let total = total(self.count, "event", "events", self.truncated);
        if self.count == 0 {
            return total;
        }
        let mut table = Table::new([
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

pub(crate) async fn run(command: Command, context: &Context) -> Result<Answer> {
    match command {
        Command::List(arguments) => list(arguments, context).await,
        Command::Archive(arguments) => Box::pin(archive::run(arguments, context)).await,
    }
}

async fn list(arguments: List, context: &Context) -> Result<Answer> {
    let limiter = context.limiter().await?;
    let (limiter, subject) = (&limiter, &arguments.entity_id);
    // Ids sort by time, and the list is newest first.
    let before = |event: &AuditEvent| arguments.start_event_id.is_none_or(|start| event.id < start);
    let listed = pages::all(
        arguments.limit,
        |page| async move { limiter.audit_events(subject, &page).await },
        before,
    )
    .await?;
    let events: Vec<Event> = listed.items.into_iter().map(Event::from).collect();
    Ok(Answer::of(Events {
        entity_id: subject.to_string(),
        count: events.len(),
        truncated: listed.truncated,
        events,
    }))
}
