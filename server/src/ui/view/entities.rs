//! The list of entities.

use maud::{Markup, html};

use crate::ui::load::{EntityList, ListFrom, Loaded};
use crate::ui::page::{Nav, Section, View};
use crate::ui::params::Params;
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::url::Url;

pub(crate) fn entities(params: &Params, list: &Loaded<EntityList>) -> View {
    let here = Url::to("/ui/entities")
        .with_some("prefix", params.get("prefix"))
        .with_some("resource", params.get("resource"))
        .with_some("from", params.get("from"))
        .with_some("after", params.get("after"));
    let search = html! {
        form.fields action="/ui/entities" {
            div { label for="prefix" { "Id begins with" }
                input #prefix name="prefix" value=[params.get("prefix")] autocomplete="off" spellcheck="false"; }
            div { label for="resource" { "On resource" }
                input #resource name="resource" value=[params.get("resource")] placeholder="all" autocomplete="off"
                    spellcheck="false"; }
            button type="submit" { "Find" }
        }
    };
    View::new(Nav::Entities, "Entities", here.clone()).section(
        Section::new("Find").markup(search).loaded(list, |section, list| {
            section.markup(origin(list)).table(table(list, &here))
        }),
    )
}

/// Which entities the list can have.
fn origin(list: &EntityList) -> Markup {
    let records = Url::to("/ui/entities").with("from", "records");
    html! {
        p.note {
            @match list.from {
                ListFrom::Records => {
                    "Entities that have a record, in no order. Each page reads at most 1 MB of the table and can be short. "
                    a href="/ui/entities" { "List those with buckets or limits instead" } "."
                }
                ListFrom::Buckets => {
                    "Entities with a bucket or limits on "
                    @match &list.resource {
                        Some(resource) => { code { (resource) } }
                        None => { (list.known.names.len()) " of " (list.known.total) " resources" }
                    }
                    ", in order. One that was never used is found by its whole id. "
                    a href=(records) { "List records instead" } "."
                }
            }
        }
    }
}

fn table(list: &EntityList, here: &Url) -> Table {
    let empty = match &list.prefix {
        Some(prefix) => Empty::new(
            format!("No entity begins with {prefix}."),
            html! {
                "Only resources that have limits of their own are searched. Name the resource, or type the whole id."
            },
        ),
        None => Empty::new(
            "There are no entities yet.",
            html! {
                "Create one with " code { "zae-limiter entity create user-1" }
                ", or make a call: an entity needs no record to be limited."
            },
        ),
    };
    let next = list.next.as_ref().map(|after| here.clone().with("after", after));
    let with_records = list.rows.iter().any(|row| row.record.is_some());
    let mut table = Table::new("entities", "Entities", empty)
        .column("entity_id", "Entity", Align::Start)
        .next(next);
    if with_records {
        table = table
            .column("name", "Name", Align::Start)
            .column("parent_id", "Parent", Align::Start)
            .column("created_at", "Created", Align::Start);
    }
    table.rows(list.rows.iter().map(|row| {
        let mut cells = vec![Cell::Link(row.id.to_string(), Url::entity(&row.id))];
        if with_records {
            let record = row.record.as_ref();
            cells.push(record.map_or(Cell::Empty, |record| Cell::text(&record.name)));
            cells.push(
                record
                    .and_then(|record| record.parent.as_ref())
                    .map_or(Cell::Empty, |parent| {
                        Cell::Link(parent.to_string(), Url::entity(parent))
                    }),
            );
            cells.push(record.map_or(Cell::Empty, |record| Cell::Time(record.created_at)));
        }
        cells
    }))
}
