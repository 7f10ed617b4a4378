//! The overview.

use maud::{Markup, html};
use zae_limiter::BreakerState;

use super::series;
use super::window_choice::window_choice;
use crate::ui::chart::noun;
use crate::ui::load::{EntityUsage, Overview, StackReport, TableHealth};
use crate::ui::options::StackHealth;
use crate::ui::page::{Nav, Section, View};
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::text::{amount, grouped, time};
use crate::ui::url::Url;

pub(crate) fn overview(data: &Overview) -> View {
    let kind = data.window.kind();
    let here = Url::overview().with("window", kind);
    let lead = html! {
        p { "Usage of the " (noun(kind)) " that began at " (time(data.window.start())) "." }
        (window_choice(&here, kind))
    };
    View::new(Nav::Overview, "Overview", here)
        .lead(lead)
        .section(Section::new("Health").markup(html! {
            div.facts { (table_health(data)) (stack_health(data)) (process(data)) }
        }))
        .section(busiest(data))
        .section(refused(data))
}

fn fact(title: &str, tone: &str, status: &str, more: &Markup) -> Markup {
    html! {
        div.fact {
            h3 { (title) }
            p.status { span class={ "dot " (tone) } aria-hidden="true" {} (status) }
            (more)
        }
    }
}

fn table_health(data: &Overview) -> Markup {
    match &data.table {
        Ok(TableHealth {
            problem: Some(problem),
            ..
        }) => fact(
            "Table",
            "bad",
            "Responds, but is incompatible",
            &html! { p { (problem) } },
        ),
        Ok(TableHealth { schema, .. }) => {
            let format = schema.as_deref().map_or_else(
                || "No version record yet".to_owned(),
                |schema| format!("Format {schema}"),
            );
            fact("Table", "good", "Responds", &html! { p { (format) } })
        }
        Err(failure) => fact("Table", "bad", failure.title, &failure.to_html()),
    }
}

fn stack_health(data: &Overview) -> Markup {
    match &data.stack {
        StackReport::NotChecked => fact(
            "Stack",
            "none",
            "Not checked by this server",
            &html! { p { "Run " code { "zae-limiter status" } "." } },
        ),
        StackReport::None => fact(
            "Stack",
            "none",
            "None: embedded file",
            &html! { p { "The table is in a file. This process counts its usage." } },
        ),
        StackReport::Health(StackHealth {
            status,
            healthy,
            facts,
            ..
        }) => {
            let tone = if *healthy { "good" } else { "bad" };
            let facts = html! { dl { @for (name, value) in facts { dt { (name) } dd { (value) } } } };
            fact("Stack", tone, status, &facts)
        }
        StackReport::Unknown(cause) => fact("Stack", "bad", "Unknown", &html! { p.cause { (cause) } }),
    }
}

fn process(data: &Overview) -> Markup {
    let stats = &data.process;
    let (tone, status) = match stats.breaker {
        BreakerState::Closed => ("good", "Calls reach the table"),
        _ => ("bad", "The circuit breaker is open"),
    };
    let counts = html! {
        dl {
            dt { "Granted" } dd.number { (grouped(stats.granted)) }
            dt { "Refused" } dd.number { (grouped(stats.refused)) }
            dt { "Unavailable" } dd.number { (grouped(stats.unavailable)) }
        }
    };
    fact("This process", tone, status, &counts)
}

fn busiest(data: &Overview) -> Section {
    let section = Section::new("Busiest resources");
    section.loaded(&data.resources, |section, resources| {
        let used: Vec<_> = resources
            .iter()
            .filter(|usage| usage.total.entities > 0)
            .collect();
        let empty = if resources.is_empty() {
            Empty::new(
                "No resource has limits yet.",
                html! {
                    "Set defaults with " code { "zae-limiter resource set-defaults gpt-4 -l rpm:100" }
                    ". Resources without limits of their own do not appear here."
                },
            )
        } else {
            series::nothing_counted()
        };
        let table = Table::new("busiest", "Busiest resources", empty)
            .column("resource", "Resource", Align::Start)
            .column("total_events", "Acquires", Align::End)
            .column("entities", "Entities", Align::End)
            .column("tokens", "Tokens by limit", Align::Start)
            .rows(used.iter().map(|usage| {
                let (resource, total) = (&usage.resource, &usage.total);
                let tokens = total.tokens.iter();
                let tokens: Vec<_> = tokens
                    .map(|(limit, tokens)| {
                        let money = usage.money.as_ref() == Some(limit);
                        format!("{limit} {}", amount(*tokens, money))
                    })
                    .collect();
                vec![
                    Cell::Link(resource.to_string(), Url::resource(resource)),
                    Cell::count(total.acquires, total.complete),
                    Cell::count(total.entities, total.complete),
                    Cell::text(tokens.join(" · ")),
                ]
            }));
        let left_out = data
            .known
            .as_ref()
            .map_or(0, |known| known.total - known.names.len());
        let section = section.table(table);
        if left_out == 0 {
            return section;
        }
        section.markup(html! { p.note { (left_out) " more resources were not read." } })
    })
}

fn refused(data: &Overview) -> Section {
    Section::new("Most refused entities").loaded(&data.refused, |section, refused| {
        section.table(refused_table(data, refused))
    })
}

fn refused_table(data: &Overview, refused: &[EntityUsage]) -> Table {
    let empty = Empty::new(
        "No refusals were counted.",
        html! {
            "No acquire was refused, the refusals of the last minute are not counted yet, or the aggregator of this table does not "
            "count refusals. The server's "
            code { "/metrics" } " counts them by resource and limit, and this process has refused "
            (grouped(data.process.refused)) " calls since it started."
        },
    );
    Table::new("refused", "Most refused entities", empty)
        .column("entity_id", "Entity", Align::Start)
        .column("resource", "Resource", Align::Start)
        .column("refusals", "Refused", Align::End)
        .column("observed", "Only observed", Align::End)
        .column("total_events", "Admitted", Align::End)
        .rows(refused.iter().map(|usage| {
            vec![
                Cell::Link(
                    usage.entity.to_string(),
                    Url::bucket(&usage.entity, &usage.resource),
                ),
                Cell::Link(usage.resource.to_string(), Url::resource(&usage.resource)),
                Cell::Number(usage.refusals),
                Cell::Number(usage.observed),
                Cell::Number(usage.acquires),
            ]
        }))
}
