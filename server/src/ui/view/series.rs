//! Usage over time: a chart per limit, and a table.

use std::collections::BTreeSet;

use maud::{Markup, html};
use zae_limiter::LimitName;
use zae_limiter::usage::WindowKind;

use crate::ui::chart::Chart;
use crate::ui::load::WindowTotal;
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::url::Url;

fn limits(windows: &[WindowTotal]) -> BTreeSet<&LimitName> {
    windows.iter().flat_map(|total| total.tokens.keys()).collect()
}

pub(super) fn is_empty(windows: &[WindowTotal]) -> bool {
    windows.iter().all(|total| total.entities == 0)
}

/// What a table says if nothing was counted.
pub(super) fn nothing_counted() -> Empty {
    Empty::new(
        "No usage was counted in this time.",
        html! {
            "Usage is counted a few seconds after the calls: by the aggregator of a stack, or by the server of an embedded "
            "table. Choose another time, or see whether the aggregator runs with " code { "zae-limiter check" } "."
        },
    )
}

const DOLLARS: &str = "dollars";

/// What a limit counts.
pub(super) fn unit(limit: &LimitName, money: Option<&LimitName>) -> &'static str {
    if money == Some(limit) { DOLLARS } else { "tokens" }
}

/// Acquires and each limit, if there is anything to draw.
pub(super) fn charts(windows: &[WindowTotal], kind: WindowKind, money: Option<&LimitName>) -> Markup {
    if is_empty(windows) {
        return html! {};
    }
    let chart = |title: &str, unit, value: &dyn Fn(&WindowTotal) -> i64| Chart {
        title: title.to_owned(),
        unit,
        kind,
        money: unit == DOLLARS,
        bars: windows.iter().map(|total| (total.window, value(total))).collect(),
    };
    html! {
        div.charts {
            (chart("Acquires", "acquires", &|total| total.acquires).to_svg())
            @for limit in limits(windows) {
                (chart(limit.as_str(), unit(limit, money), &|total| total.tokens.get(limit).copied().unwrap_or(0)).to_svg())
            }
        }
    }
}

/// A row per window with usage, newest first. `of` gives the address of one window.
pub(super) fn table(
    caption: String,
    windows: &[WindowTotal],
    by_entities: bool,
    money: Option<&LimitName>,
    of: impl Fn(&WindowTotal) -> Option<Url>,
) -> Table {
    let limits = limits(windows);
    let mut table = Table::new("usage", caption, nothing_counted())
        .column("window_start", "Window", Align::Start)
        .column("window_end", "Until", Align::Start);
    if by_entities {
        table = table.column("entities", "Entities", Align::End);
    }
    table = table.column("total_events", "Acquires", Align::End);
    for limit in &limits {
        table = table.column(
            limit.as_str(),
            format!("{limit} {}", unit(limit, money)),
            Align::End,
        );
    }
    let has_links = windows.iter().any(|total| of(total).is_some());
    if has_links {
        table = table.column("by_entity", "By entity", Align::Drawing);
    }
    let used = windows.iter().rev().filter(|total| total.entities > 0);
    table.rows(used.map(|total| {
        let mut row = vec![Cell::Time(total.window.start()), Cell::Time(total.window.end())];
        if by_entities {
            row.push(Cell::count(total.entities, total.complete));
        }
        row.push(Cell::count(total.acquires, total.complete));
        for limit in &limits {
            let tokens = total.tokens.get(*limit);
            row.push(tokens.map_or(Cell::Empty, |tokens| {
                Cell::amount(*tokens, total.complete, money == Some(*limit))
            }));
        }
        if has_links {
            let url = of(total);
            row.push(url.map_or(Cell::Empty, |url| Cell::Link("Entities".to_owned(), url)));
        }
        row
    }))
}
