//! One entity.

use maud::{Markup, html};
use zae_limiter::pagination::Page;
use zae_limiter::records::{EntityRecord, to_json};
use zae_limiter::{EntityId, Mode};

use super::window_choice::window_choice;
use super::{events, level_name, series};
use crate::ui::level::Level;
use crate::ui::load::{EntityPage, LimitRow, Loaded};
use crate::ui::page::{Nav, Section, View};
use crate::ui::params::Params;
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::text::{rate_of, time};
use crate::ui::url::Url;

pub(crate) fn entity(data: &EntityPage, edit: bool) -> View {
    let here = Url::entity(&data.id)
        .with_some("resource", data.resource.as_ref())
        .with("window", data.window);
    View::new(Nav::Entities, data.id.to_string(), here.clone())
        .lead(lead(data, edit))
        .section(limits(data))
        .section(usage(data, &here))
        .section(children(data))
        .section(audit(data))
}

fn lead(data: &EntityPage, edit: bool) -> Markup {
    html! {
        @match &data.record {
            Err(failure) => { (failure.to_html()) }
            Ok(None) => { p { "An entity without a record: it has no name, no parent and no metadata." } }
            Ok(Some(record)) => { (about(data, record)) }
        }
        @if edit {
            p.actions { a.button href=(Url::to("/ui/limits/edit").with("entity", &data.id)) {
                "Set limits on every resource"
            } }
        }
    }
}

fn about(data: &EntityPage, record: &EntityRecord) -> Markup {
    html! {
        dl.about {
            @if record.name != record.id.as_str() { dt { "Name" } dd { (record.name) } }
            dt { "Parents" }
            dd {
                @match &data.parents {
                    Err(failure) => { (failure.to_html()) }
                    Ok(parents) => {
                        @if parents.is_empty() { "none" }
                        @for (index, parent) in parents.iter().enumerate() {
                            @if index > 0 { " › " }
                            a href=(Url::entity(parent)) { (parent) }
                        }
                        @if record.parent.is_some() {
                            @if record.cascade { ", charged too" } @else { ", not charged" }
                        }
                    }
                }
            }
            dt { "Created" } dd { (time(record.created_at)) }
            @for (name, value) in &record.metadata {
                dt { (name) }
                dd { @match to_json(value) {
                    serde_json::Value::String(text) => { (text) }
                    other => { code { (other) } }
                } }
            }
        }
    }
}

fn limits(data: &EntityPage) -> Section {
    Section::new("Limits").loaded(&data.limits, |section, rows| {
        let empty = Empty::new(
            "No limits apply to this entity.",
            html! {
                "Set some with " code { "zae-limiter entity set-limits " (data.id) " -r gpt-4 -l rpm:100" }
                ", or defaults for everyone with " code { "zae-limiter system set-defaults -l rpm:100" } "."
            },
        );
        // Most limits are enforced.
        let with_mode = rows.iter().any(|row| row.mode != Mode::Enforce);
        let mode = if with_mode {
            Align::Start
        } else {
            Align::ExportOnly
        };
        let table = Table::new("limits", format!("Limits of {}", data.id), empty)
            .column("resource", "Resource", Align::Start)
            .column("limit_name", "Limit", Align::Start)
            .column("level", "Level", Align::Drawing)
            .column("available", "Available", Align::End)
            .column("burst", "Burst", Align::End)
            .column("capacity", "Capacity", Align::End)
            .column("refill", "Refill", Align::End)
            .column("from", "Comes from", Align::Start)
            .column("used", "Bucket", Align::Start)
            .column("mode", "Mode", mode)
            .rows(rows.iter().map(|row| limit(data, row)));
        section.table(table)
    })
}

fn limit(data: &EntityPage, row: &LimitRow) -> Vec<Cell> {
    let most = row.limit.burst().get().saturating_add(row.topped_up);
    vec![
        Cell::Link(row.resource.to_string(), Url::bucket(&data.id, &row.resource)),
        Cell::code(row.limit.name()),
        Cell::Level(Level::of(
            &row.limit,
            row.topped_up,
            row.available,
            row.used,
            row.money,
        )),
        Cell::amount(row.available, true, row.money),
        Cell::amount(most, true, row.money),
        Cell::amount(row.limit.capacity().get(), true, row.money),
        Cell::text(rate_of(&row.limit, row.money)),
        row.from
            .map_or(Cell::Empty, |source| Cell::text(level_name::source(source))),
        Cell::text(if row.has_bucket { "in use" } else { "not used yet" }),
        Cell::text(row.mode.as_str()),
    ]
}

fn usage(data: &EntityPage, here: &Url) -> Section {
    let choice = html! {
        div.choices {
            @if data.resources.len() > 1 {
                div.choice role="group" aria-label="Resource" {
                    @for resource in &data.resources {
                        a href=(here.clone().with("resource", resource))
                            aria-current=[(data.resource.as_ref() == Some(resource)).then_some("true")] { (resource) }
                    }
                }
            }
            (window_choice(here, data.window))
        }
    };
    Section::new("Usage")
        .markup(choice)
        .loaded(&data.usage, |section, usage| {
            let on = data
                .resource
                .as_ref()
                .map_or(String::new(), |resource| format!(" on {resource}"));
            let caption = format!("Usage of {}{on}", data.id);
            section
                .markup(series::charts(&usage.windows, data.window, usage.money.as_ref()))
                .table(series::table(
                    caption,
                    &usage.windows,
                    false,
                    usage.money.as_ref(),
                    |_| None,
                ))
        })
}

fn children(data: &EntityPage) -> Section {
    Section::new("Children").loaded(&data.children, |section, page| {
        let empty = Empty::new(
            "It has no children.",
            html! { "Entities that name it as their parent appear here: "
            code { "zae-limiter entity create child-1 --parent " (data.id) } },
        );
        let next = page
            .next
            .as_ref()
            .map(|cursor| Url::to(format!("{}/children", Url::entity(&data.id))).after(cursor));
        section.table(children_table(data.id.as_str(), &page.items, empty).next(next))
    })
}

/// The pages of children after the first.
pub(crate) fn children_page(id: &EntityId, params: &Params, page: &Loaded<Page<EntityRecord>>) -> View {
    let here = Url::to(format!("{}/children", Url::entity(id)));
    let section = Section::new("Children").loaded(page, |section, page| {
        let empty = Empty::new("There are no more children.", html! {});
        let next = page.next.as_ref().map(|cursor| here.clone().after(cursor));
        section.table(children_table(id.as_str(), &page.items, empty).next(next))
    });
    let lead = html! { p { "Of " a href=(Url::entity(id)) { (id) } } };
    let here = here.clone().with_some("after", params.get("after"));
    View::new(Nav::Entities, "Children", here)
        .lead(lead)
        .section(section)
}

fn children_table(of: &str, children: &[EntityRecord], empty: Empty) -> Table {
    Table::new("children", format!("Children of {of}"), empty)
        .column("entity_id", "Entity", Align::Start)
        .column("name", "Name", Align::Start)
        .column("cascade", "Charges the parent", Align::Start)
        .column("created_at", "Created", Align::Start)
        .rows(children.iter().map(|child| {
            vec![
                Cell::Link(child.id.to_string(), Url::entity(&child.id)),
                Cell::text(&child.name),
                Cell::text(if child.cascade { "yes" } else { "no" }),
                Cell::Time(child.created_at),
            ]
        }))
}

fn audit(data: &EntityPage) -> Section {
    Section::new("Audit trail").loaded(&data.audit, |section, trail| {
        let log = Url::to("/ui/audit").with("entity", &data.id);
        let next = trail.next.as_ref().map(|cursor| log.after(cursor));
        section.table(events::table(format!("Changes to {}", data.id), trail, false).next(next))
    })
}
