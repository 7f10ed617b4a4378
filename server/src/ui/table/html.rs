//! A table as HTML.

use maud::{Markup, html};

use super::{Align, Cell, Column, Table};
use crate::ui::text::{grouped, time};
use crate::ui::url::Url;

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
                table id=(self.id) {
                    caption.sr-only { (self.caption) }
                    thead { tr { @for column in &self.columns {
                        th scope="col" class=(class(column)) { (column.title) }
                    } } }
                    tbody { @for row in &self.rows { tr {
                        @for (index, (column, cell)) in self.columns.iter().zip(row).enumerate() {
                            @if index == 0 { th scope="row" class=(class(column)) { (content(cell)) } }
                            @else { td class=(class(column)) { (content(cell)) } }
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
    }
}

fn content(cell: &Cell) -> Markup {
    html! {
        @match cell {
            Cell::Empty => { span.nothing { "–" } }
            Cell::Text(text) => { (text) }
            Cell::Code(text) => { code { (text) } }
            Cell::Link(text, url) => { a href=(url) { (text) } }
            Cell::Number(number) => { (grouped(*number)) }
            Cell::AtLeast(number) => { abbr title="At least: not all entities were read" { "≥ " } (grouped(*number)) }
            Cell::Time(moment) => { (time(*moment)) }
            Cell::Level(level) => { (level.to_svg()) }
        }
    }
}
