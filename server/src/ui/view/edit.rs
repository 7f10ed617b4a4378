//! Changing the limits of a level: a form, then a page that shows the change before it happens.

use maud::{Markup, html};
use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigLevel, Limit, OnUnavailable};

use super::level_name;
use crate::config_level::resource_of;
use crate::ui::failure::Failure;
use crate::ui::limit_form::{LimitForm, Row};
use crate::ui::page::{Nav, Section, View};
use crate::ui::url::Url;

/// How many empty rows the form has below those in use.
const SPARE_ROWS: usize = 3;

/// What both pages need.
#[derive(Debug, Clone)]
pub(crate) struct Edit<'a> {
    pub(crate) level: &'a ConfigLevel,
    pub(crate) stored: Option<&'a ConfigRecord>,
    pub(crate) form_token: &'a str,
}

impl Edit<'_> {
    fn view(&self, title: &str, section: Section) -> View {
        let here = self.address("/ui/limits/edit");
        View::new(Nav::Limits, title, here).section(section)
    }

    fn address(&self, path: &str) -> Url {
        Url::to(path)
            .with_some("entity", self.level.entity())
            .with_some("resource", resource_of(self.level))
    }

    fn hidden(&self, seen: &str) -> Markup {
        html! {
            input type="hidden" name="form_token" value=(self.form_token);
            input type="hidden" name="seen" value=(seen);
        }
    }
}

/// The form, with what is wrong with it if it was sent before.
pub(crate) fn edit(edit: &Edit<'_>, form: &LimitForm, problem: Option<&Failure>) -> View {
    let rows = form.rows.iter().cloned();
    let spare = std::iter::repeat_n(Row::default(), SPARE_ROWS);
    let content = html! {
        @if let Some(problem) = problem { (problem.to_html()) }
        form.stack method="post" action=(edit.address("/ui/limits/review")) {
            (edit.hidden(&form.seen))
            div.table-frame role="region" aria-label="Limits" tabindex="0" { table.inputs.cards role="table" {
                caption.sr-only { "Limits; a row without a name is left out" }
                thead role="rowgroup" { tr role="row" {
                    th scope="col" role="columnheader" { "Name" }
                    @for title in ["Capacity", "Every (s)", "Burst", "Refill"] {
                        th.number scope="col" role="columnheader" { (title) }
                    }
                } }
                tbody role="rowgroup" { @for (index, row) in rows.chain(spare).enumerate() { (input_row(index + 1, &row)) } }
            } }
            p.note { "Burst and refill are the capacity unless set. A row without a name is left out." }
            p.note {
                "A quota or a limit on calls in flight is written as the capacity alone: " code { "500 per month in Europe/Berlin" }
                ", " code { "8 at once for 10min" } ". Money is written as " code { "$12.50" } "."
            }
            div {
                label for="policy" { "While the table is unavailable" }
                select #policy name="policy" {
                    option value="" selected[form.policy.is_none()] { "as the next level says" }
                    @for policy in [OnUnavailable::Allow, OnUnavailable::Block] {
                        @let name = level_name::policy(policy);
                        option value=(name) selected[form.policy == Some(policy)] { (name) " calls" }
                    }
                }
            }
            div {
                label for="until" { "Until" }
                input #until name="until" value=(form.until) placeholder="2026-12-01" autocomplete="off"
                    aria-describedby="until-note";
                p.note #until-note {
                    "A date or time in UTC at which these limits end and those that the level has now apply again. Empty: they last."
                }
            }
            div.actions {
                button type="submit" { "Review the change" }
                a.button href="/ui/limits" { "Cancel" }
            }
        }
    };
    let title = format!("Limits of {}", level_name::level(edit.level));
    edit.view(&title, Section::new("Limits").markup(content))
}

fn input_row(number: usize, row: &Row) -> Markup {
    let label = |what: &str| format!("{what} of limit {number}");
    let numbers = [
        ("capacity", "Capacity", "Capacity", &row.capacity),
        ("period", "Every (s)", "Period in seconds", &row.period),
        ("burst", "Burst", "Burst", &row.burst),
        ("refill", "Refill", "Refill", &row.refill),
    ];
    html! {
        tr role="row" {
            td role="cell" data-title="Name" {
                input name="name" value=(row.name) aria-label=(label("Name")) autocomplete="off" spellcheck="false";
            }
            @for (name, title, what, value) in numbers {
                td.number role="cell" data-title=(title) {
                    input name=(name) value=(value) aria-label=(label(what)) inputmode=[(name != "capacity").then_some("numeric")];
                }
            }
        }
    }
}

/// What would change, and the button that changes it.
pub(crate) fn confirm(edit: &Edit<'_>, form: &LimitForm, limits: &[Limit]) -> View {
    let deletes = limits.is_empty() && form.policy.is_none() && form.until.is_empty();
    let stored = edit.stored;
    let before = level_name::limits(stored);
    let after: Vec<_> = limits.iter().map(ToString::to_string).collect();
    let policy = |policy: Option<OnUnavailable>| policy.map_or("as the next level says", level_name::policy);
    let content = html! {
        dl.compare {
            dt { "Current limits" } dd { (or_none(&before)) }
            dt { "New limits" } dd { strong { (or_none(&after.join(" "))) } }
            @if !form.until.is_empty() { dt { "Until" } dd { strong { (form.until) } } }
            dt { "While unavailable now" } dd { (policy(stored.and_then(|record| record.on_unavailable))) }
            dt { "While unavailable then" } dd { strong { (policy(form.policy)) } }
        }
        @if deletes {
            p.alert role="alert" {
                "This level will store nothing: the next level decides from then on."
                @if let Some(mode) = stored.and_then(|record| record.mode) { " Its mode, " (mode) ", goes too." }
                @if stored.is_some_and(|record| record.prices.is_some()) { " Its prices go too." }
            }
        }
        form.stack method="post" action=(edit.address("/ui/limits/apply")) {
            (edit.hidden(&form.seen))
            @for row in &form.rows {
                input type="hidden" name="name" value=(row.name);
                input type="hidden" name="capacity" value=(row.capacity);
                input type="hidden" name="period" value=(row.period);
                input type="hidden" name="burst" value=(row.burst);
                input type="hidden" name="refill" value=(row.refill);
            }
            input type="hidden" name="policy" value=(form.policy.map_or("", level_name::policy));
            input type="hidden" name="until" value=(form.until);
            div.actions {
                button type="submit" { @if deletes { "Delete these limits" } @else { "Change the limits" } }
                a.button href=(edit.address("/ui/limits/edit")) { "Back" }
            }
        }
        p.note { "The change is written to the audit trail. Live buckets follow within a minute." }
    };
    let title = format!("Change the limits of {}?", level_name::level(edit.level));
    edit.view(&title, Section::new("The change").markup(content))
}

fn or_none(text: &str) -> Markup {
    html! { @if text.is_empty() { span.inherits { "none" } } @else { code { (text) } } }
}
