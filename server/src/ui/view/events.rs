//! Audit events as a table.

use maud::html;
use serde_json::{Map, Value};
use zae_limiter::ConfigLevel;
use zae_limiter::audit::{AuditEvent, AuditSubject};
use zae_limiter::records::to_json;

use crate::ui::differences::{Difference, differences};
use crate::ui::load::Trail;
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::url::Url;

/// A row per event. `with_subject` adds what each is about.
pub(super) fn table(caption: impl Into<String>, trail: &Trail, with_subject: bool) -> Table {
    let empty = Empty::new(
        "There are no audit events.",
        html! {
            "Changes to entities and limits appear here with who made them. Events are kept for 90 days unless the system "
            "configuration says otherwise."
        },
    );
    let mut table = Table::new("audit", caption, empty)
        .column("timestamp", "Time", Align::Start)
        .column("action", "Action", Align::Start)
        .column("principal", "By", Align::Start);
    // What is not about an entity is about the resource that it names.
    let resource = if with_subject {
        table = table.column("subject", "About", Align::Start);
        Align::ExportOnly
    } else {
        Align::Start
    };
    let changed = differences(&trail.events, trail.shown);
    table
        .column("resource", "Resource", resource)
        .column("changes", "What changed", Align::Start)
        .column("details", "Details", Align::ExportOnly)
        .column("event_id", "Event", Align::Start)
        .rows(
            trail
                .events
                .iter()
                .zip(changed)
                .map(|(event, changed)| row(event, changed, with_subject)),
        )
}

fn row(event: &AuditEvent, changed: Vec<Difference>, with_subject: bool) -> Vec<Cell> {
    let mut row = vec![
        Cell::Time(event.timestamp),
        Cell::text(event.action.to_string()),
        event.principal.clone().map_or(Cell::Empty, Cell::Text),
    ];
    if with_subject {
        row.push(subject(&event.subject));
    }
    row.push(match event.resource.as_deref() {
        None => Cell::Empty,
        Some(ConfigLevel::DEFAULT_RESOURCE) => Cell::text("every resource"),
        Some(resource) => Cell::code(resource),
    });
    row.push(Cell::Changes(changed));
    let details = event.details.iter();
    let details: Map<String, Value> = details
        .map(|(name, value)| (name.clone(), to_json(value)))
        .collect();
    row.push(if details.is_empty() {
        Cell::Empty
    } else {
        Cell::code(&Value::Object(details.clone()))
    });
    row.push(Cell::Event {
        id: event.id.to_string(),
        details: indented(&details),
    });
    row
}

/// The details as JSON, with a line per member; empty if there are none.
fn indented(details: &Map<String, Value>) -> String {
    if details.is_empty() {
        return String::new();
    }
    format!("{:#}", Value::Object(details.clone()))
}

fn subject(subject: &AuditSubject) -> Cell {
    match subject {
        AuditSubject::Entity(entity) => Cell::Link(entity.to_string(), Url::entity(entity)),
        AuditSubject::Resource(resource) => Cell::Link(resource.to_string(), Url::resource(resource)),
        AuditSubject::System => Cell::text("system"),
    }
}
