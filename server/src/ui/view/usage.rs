//! The usage explorer.

use maud::{Markup, html};
use zae_limiter::usage::{Window, WindowKind};
use zae_limiter::{EntityId, Resource};

use super::resource::entities_table;
use super::series;
use crate::ui::chart::noun;
use crate::ui::load::{Loaded, UsageOfEntity, UsageOfResource, UsageOfWindow};
use crate::ui::page::{Nav, Section, View};
use crate::ui::params::Params;
use crate::ui::text::time;
use crate::ui::url::Url;

/// What was asked for.
#[derive(Debug, Clone)]
pub(crate) struct UsageForm<'a> {
    pub(crate) params: &'a Params,
    pub(crate) window: WindowKind,
}

impl UsageForm<'_> {
    fn here(&self) -> Url {
        let url = Url::to("/ui/usage");
        let names = ["entity", "resource", "window", "from", "until", "at", "after"];
        names
            .into_iter()
            .fold(url, |url, name| url.with_some(name, self.params.get(name)))
    }

    fn view(&self, section: Section) -> View {
        View::new(Nav::Usage, "Usage", self.here())
            .section(Section::new("What to show").markup(self.fields()))
            .section(section)
    }

    fn fields(&self) -> Markup {
        let value = |name| self.params.get(name);
        // Browsers take times without a zone only.
        let local_time = |name| {
            self.params
                .get(name)
                .map(|text| text.trim_end_matches('Z').to_owned())
        };
        html! {
            form.fields action="/ui/usage" {
                div { label for="entity" { "Entity" }
                    input #entity name="entity" value=[value("entity")] placeholder="everyone" autocomplete="off"
                        spellcheck="false"; }
                div { label for="resource" { "Resource" }
                    input #resource name="resource" value=[value("resource")] required autocomplete="off"
                        spellcheck="false"; }
                div { label for="window" { "Window" }
                    select #window name="window" { @for kind in WindowKind::ALL {
                        option value=(kind) selected[kind == self.window] { (noun(kind)) }
                    } } }
                div { label for="from" { "From (UTC)" }
                    input #from name="from" type="datetime-local" value=[local_time("from")]; }
                div { label for="until" { "Until (UTC)" }
                    input #until name="until" type="datetime-local" value=[local_time("until")]; }
                button type="submit" { "Show" }
            }
            p.note { "Without a range: the last 24 hours, 30 days or 12 months. At most 100 windows are shown." }
        }
    }
}

/// Nothing was asked for yet: the resources to choose from.
pub(crate) fn usage_start(form: &UsageForm<'_>, known: &Loaded<Vec<Resource>>) -> View {
    let section = Section::new("Resources").loaded(known, |section, resources| {
        section.markup(html! {
            @if resources.is_empty() {
                div.empty {
                    p.empty-message { "No resource has limits yet." }
                    p { "Type the name of a resource, or set defaults with "
                        code { "zae-limiter resource set-defaults gpt-4 -l rpm:100" } "." }
                }
            } @else {
                ul.chips { @for resource in resources {
                    li { a href=(Url::to("/ui/usage").with("resource", resource).with("window", form.window)) { (resource) } }
                } }
            }
        })
    });
    form.view(section)
}

pub(crate) fn usage_of_entity(
    form: &UsageForm<'_>,
    entity: &EntityId,
    resource: &Resource,
    usage: &Loaded<UsageOfEntity>,
) -> View {
    let title = format!("{entity} on {resource}");
    let section = Section::new(title.clone()).loaded(usage, |section, usage| {
        section
            .markup(series::charts(&usage.windows, form.window, usage.money.as_ref()))
            .table(series::table(
                format!("Usage of {title}"),
                &usage.windows,
                false,
                usage.money.as_ref(),
                |_| None,
            ))
    });
    form.view(section)
}

pub(crate) fn usage_of_resource(
    form: &UsageForm<'_>,
    resource: &Resource,
    usage: &Loaded<UsageOfResource>,
) -> View {
    let section = Section::new(format!("Everyone on {resource}")).loaded(usage, |section, usage| {
        let of = Url::to("/ui/usage")
            .with("resource", resource)
            .with("window", form.window);
        section
            .markup(series::charts(&usage.windows, form.window, usage.money.as_ref()))
            .table(series::table(
                format!("Usage of {resource}"),
                &usage.windows,
                true,
                usage.money.as_ref(),
                |total| Some(of.clone().with("at", total.window.start())),
            ))
    });
    form.view(section)
}

pub(crate) fn usage_of_window(
    form: &UsageForm<'_>,
    resource: &Resource,
    window: Window,
    usage: &Loaded<UsageOfWindow>,
) -> View {
    let title = format!("{resource} in one {}", noun(window.kind()));
    let section = Section::new(title)
        .markup(html! { p { "From " (time(window.start())) " until " (time(window.end())) "." } })
        .loaded(usage, |section, usage| {
            let next = usage.next.as_ref().map(|cursor| form.here().after(cursor));
            let caption = format!("Usage of {resource} by entity");
            section
                .table(entities_table("entities", &caption, &usage.entities, usage.money.as_ref()).next(next))
        });
    form.view(section)
}
