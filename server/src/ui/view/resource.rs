//! One resource.

use maud::html;
use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigOrigin, EntityId, LimitName};

use super::window_choice::window_choice;
use super::{events, level_name, mode, series};
use crate::ui::chart::noun;
use crate::ui::load::{EntityUsage, ResourcePage};
use crate::ui::page::{Nav, Section, View};
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::text::rate_of;
use crate::ui::url::Url;

pub(crate) fn resource(data: &ResourcePage, edit: bool) -> View {
    let here = Url::resource(&data.resource).with("window", data.window);
    let entities = Url::to("/ui/entities").with("resource", &data.resource);
    let change = Url::to("/ui/limits/edit").with("resource", &data.resource);
    let lead = html! {
        p.actions {
            a.button href=(entities) { "Entities" }
            @if edit { a.button href=(change) { "Change defaults" } }
        }
    };
    View::new(Nav::Resources, data.resource.to_string(), here.clone())
        .lead(lead)
        .section(defaults(data))
        .section(usage(data, &here))
        .section(busiest(data))
        .section(own_limits(data))
        .section(audit(data))
}

fn defaults(data: &ResourcePage) -> Section {
    Section::new("Defaults").loaded(&data.defaults, |section, record| {
        let stored = [
            record.as_ref(),
            data.system.as_ref().ok().and_then(Option::as_ref),
        ];
        let modes = [ConfigOrigin::Resource, ConfigOrigin::System]
            .into_iter()
            .zip(stored);
        let mode = modes
            .into_iter()
            .find_map(|(from, record)| Some((record?.mode?, from)));
        let section = section.markup(html! {
            @if let Some((mode, from)) = mode { (mode::note(mode, from)) }
            @if let Some(prices) = record.as_ref().and_then(|record| record.prices.as_ref()) {
                p { "Prices, tokens by the million: " (level_name::prices(prices)) }
            }
        });
        let own = record.as_ref().filter(|record| !record.limits.is_empty());
        let (record, from) = match (own, &data.system) {
            (Some(record), _) => (Some(record), "resource"),
            (None, Ok(Some(system))) => (Some(system), "system"),
            (None, _) => (None, ""),
        };
        section.table(defaults_table(data, record, from))
    })
}

fn defaults_table(data: &ResourcePage, record: Option<&ConfigRecord>, from: &str) -> Table {
    let empty = Empty::new(
        "No limits apply to this resource.",
        html! {
            "Set defaults with " code { "zae-limiter resource set-defaults " (data.resource) " -l rpm:100" } "."
        },
    );
    let limits = record.into_iter().flat_map(|record| record.limits.iter());
    Table::new("defaults", format!("Defaults of {}", data.resource), empty)
        .column("limit_name", "Limit", Align::Start)
        .column("capacity", "Capacity", Align::End)
        .column("burst", "Burst", Align::End)
        .column("refill", "Refill", Align::End)
        .column("from", "Comes from", Align::Start)
        .rows(limits.map(|limit| {
            let money = data.money.as_ref() == Some(limit.name());
            vec![
                Cell::code(limit.name()),
                Cell::amount(limit.capacity().get(), true, money),
                Cell::amount(limit.burst().get(), true, money),
                Cell::text(rate_of(limit, money)),
                Cell::text(from),
            ]
        }))
}

fn usage(data: &ResourcePage, here: &Url) -> Section {
    let section = Section::new("Usage").markup(window_choice(here, data.window));
    section.loaded(&data.usage, |section, usage| {
        let section = section.markup(series::charts(&usage.windows, data.window, usage.money.as_ref()));
        let section = if usage.windows.iter().all(|total| total.complete) {
            section
        } else {
            section.markup(html! {
                p.note { "Some windows have more entities than are added up here: their numbers are lower bounds." }
            })
        };
        let explorer = Url::to("/ui/usage")
            .with("resource", &data.resource)
            .with("window", data.window);
        section.table(series::table(
            format!("Usage of {}", data.resource),
            &usage.windows,
            true,
            usage.money.as_ref(),
            |total| Some(explorer.clone().with("at", total.window.start())),
        ))
    })
}

fn busiest(data: &ResourcePage) -> Section {
    let title = format!("Busiest entities of this {}", noun(data.window));
    Section::new(title).loaded(&data.now, |section, usage| {
        let table = entities_table(
            "busiest",
            "Busiest entities",
            &usage.entities,
            usage.money.as_ref(),
        );
        let section = section.table(table);
        if usage.total.complete {
            return section;
        }
        section.markup(
            html! { p.note { "Chosen among the first " (usage.total.entities) " entities in order." } },
        )
    })
}

/// What each entity used, with a column per limit.
pub(super) fn entities_table(
    id: &'static str,
    caption: &str,
    usage: &[EntityUsage],
    money: Option<&LimitName>,
) -> Table {
    let limits: std::collections::BTreeSet<_> = usage.iter().flat_map(|usage| usage.tokens.keys()).collect();
    let mut table = Table::new(id, caption, series::nothing_counted())
        .column("entity_id", "Entity", Align::Start)
        .column("total_events", "Acquires", Align::End);
    let with_refusals = usage.iter().any(|usage| usage.refusals > 0);
    if with_refusals {
        table = table.column("refusals", "Refused", Align::End);
    }
    let with_observed = usage.iter().any(|usage| usage.observed > 0);
    if with_observed {
        table = table.column("observed", "Only observed", Align::End);
    }
    for limit in &limits {
        table = table.column(
            limit.as_str(),
            format!("{limit} {}", series::unit(limit, money)),
            Align::End,
        );
    }
    table.rows(usage.iter().map(|usage| {
        let mut row = vec![
            Cell::Link(
                usage.entity.to_string(),
                Url::bucket(&usage.entity, &usage.resource),
            ),
            Cell::Number(usage.acquires),
        ];
        if with_refusals {
            row.push(Cell::Number(usage.refusals));
        }
        if with_observed {
            row.push(Cell::Number(usage.observed));
        }
        row.extend(limits.iter().map(|limit| {
            usage.tokens.get(*limit).map_or(Cell::Empty, |tokens| {
                Cell::amount(*tokens, true, money == Some(*limit))
            })
        }));
        row
    }))
}

fn own_limits(data: &ResourcePage) -> Section {
    Section::new("Entities with limits of their own").loaded(&data.with_own_limits, |section, page| {
        let empty = Empty::new(
            "Every entity has the defaults.",
            html! {
                "Give one limits of its own with "
                code { "zae-limiter entity set-limits user-1 -r " (data.resource) " -l rpm:1000" } "."
            },
        );
        let tree = Url::to("/ui/limits").with("resource", &data.resource);
        let next = page.next.as_ref().map(|cursor| tree.after(cursor));
        let row = |entity: &EntityId| vec![Cell::Link(entity.to_string(), Url::entity(entity))];
        let table = Table::new("own-limits", "Entities with limits of their own", empty)
            .column("entity_id", "Entity", Align::Start)
            .rows(page.items.iter().map(row))
            .next(next);
        section.table(table)
    })
}

fn audit(data: &ResourcePage) -> Section {
    Section::new("Audit trail").loaded(&data.audit, |section, trail| {
        let log = Url::to("/ui/audit").with("resource", &data.resource);
        let next = trail.next.as_ref().map(|cursor| log.after(cursor));
        let caption = format!("Changes to the defaults of {}", data.resource);
        section.table(events::table(caption, trail, false).next(next))
    })
}
