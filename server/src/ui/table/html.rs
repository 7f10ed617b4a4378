//! A table as HTML.

use maud::{Markup, html};

use super::{Align, Cell, Column, Table};
use crate::ui::differences::{Difference, Old};
use crate::ui::text::{amount, grouped, time};
use crate::ui::url::Url;

/// Longer text, in bytes, may take several lines.
const LONG: usize = 24;

impl Table {
    /// The table with links to its exports, or what to do if it has no rows. `here` is the address of the page.
    pub(crate) fn to_html(&self, here: &Url) -> Markup {
        if self.rows.is_empty() && self.next.is_none() {
            return html! {
                div.empty {
                    p.empty-message { (self.empty.message) }
                    p { (self.empty.advice) }
                }
            };
        }
        let export = |format| here.clone().with("export", format!("{}.{format}", self.id));
        html! {
            // Wide tables scroll on their own; a focused region scrolls with the arrow keys.
            div.table-frame role="region" aria-label=(self.caption) tabindex="0" {
                // On phones rows are cards, whose cells name their column. The roles keep it a table for screen readers.
                table.cards id=(self.id) role="table" {
                    caption.sr-only { (self.caption) }
                    thead role="rowgroup" { tr role="row" {
                        @for column in self.columns.iter().filter(|column| column.align != Align::ExportOnly) {
                            th scope="col" role="columnheader" class=(class(column)) { (column.title) }
                        }
                    } }
                    tbody role="rowgroup" { @for row in &self.rows { tr role="row" {
                        @for (index, (column, cell)) in self.shown(row).enumerate() {
                            @if index == 0 {
                                th scope="row" role="rowheader" class=(class(column)) { (content(cell)) }
                            } @else {
                                td role="cell" class=(class(column)) data-title=(column.title) { (content(cell)) }
                            }
                        }
                    } } }
                }
            }
            div.table-foot {
                @if let Some(next) = &self.next {
                    a.button href=(next) rel="next" { "Next page" }
                }
                span.exports {
                    "Export "
                    a href=(export("csv")) download { "CSV" span.sr-only { " of " (self.caption) } }
                    " · "
                    a href=(export("json")) { "JSON" span.sr-only { " of " (self.caption) } }
                }
            }
        }
    }
}

fn class(column: &Column) -> &'static str {
    match column.align {
        Align::Start => "text",
        Align::End => "number",
        Align::Drawing => "drawing",
        Align::ExportOnly => "",
    }
}

fn changes_list(changes: &[Difference]) -> Markup {
    html! {
        @if changes.is_empty() { span.nothing { "no difference" } }
        @else {
            ul.changes { @for change in changes { li {
                span.what { (change.what) } " "
                @if let Old::Known(old) = &change.old {
                    del { (old.as_deref().unwrap_or("none")) } span.arrow { " → " }
                }
                ins { (change.new.as_deref().unwrap_or("none")) }
            } } }
        }
    }
}

/// The end of the id, which is whole on hover and when it is opened.
fn event(id: &str, details: &str) -> Markup {
    let end = id.len().saturating_sub(6);
    html! {
        details.event {
            summary title=(id) { code { "…" (id.get(end..).unwrap_or(id)) } }
            code { (id) }
            @if !details.is_empty() { pre { (details) } }
        }
    }
}

fn content(cell: &Cell) -> Markup {
    html! {
        @match cell {
            Cell::Empty => { span.nothing { "–" } }
            Cell::Text(text) if text.len() > LONG => { span.long { (text) } }
            Cell::Text(text) => { (text) }
            Cell::Code(text) => { code { (text) } }
            Cell::Link(text, url) => { a href=(url) { (text) } }
            Cell::Number(number) => { (grouped(*number)) }
            Cell::AtLeast(number) => { abbr title="At least: not all entities were read" { "≥ " } (grouped(*number)) }
            Cell::Money { amount: money, complete: true } => { (amount(*money, true)) }
            Cell::Money { amount: money, complete: false } => {
                abbr title="At least: not all entities were read" { "≥ " } (amount(*money, true))
            }
            Cell::Time(timestamp) => { (time(*timestamp)) }
            Cell::Level(level) => { (level.to_svg()) }
            Cell::Changes(changes) => { (changes_list(changes)) }
            Cell::Event { id, details } => { (event(id, details)) }
        }
    }
}
