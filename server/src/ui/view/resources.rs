//! The list of resources.

use maud::html;

use crate::ui::load::{KnownResources, Loaded};
use crate::ui::page::{Nav, Section, View};
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::url::Url;

pub(crate) fn resources(known: &Loaded<KnownResources>) -> View {
    let here = Url::to("/ui/resources");
    let open = html! {
        form.fields action="/ui/resources" {
            div { label for="resource" { "Resource" }
                input #resource name="resource" required autocomplete="off" spellcheck="false"; }
            button type="submit" { "Open" }
        }
        p.note {
            "Resources that have defaults, or on which an entity has limits of its own. A resource that uses the "
            "system's defaults is opened by its name."
        }
    };
    let section = Section::new("Resources").markup(open);
    View::new(Nav::Resources, "Resources", here)
        .section(section.loaded(known, |section, known| section.table(table(known))))
}

fn table(known: &KnownResources) -> Table {
    let empty = Empty::new(
        "No resource has limits yet.",
        html! { "Set defaults with " code { "zae-limiter resource set-defaults gpt-4 -l rpm:100" } "." },
    );
    let mark = |yes| Cell::text(if yes { "yes" } else { "no" });
    let all = known.with_defaults.union(&known.with_entity_limits);
    Table::new("resources", "Resources", empty)
        .column("resource", "Resource", Align::Start)
        .column("defaults", "Has defaults", Align::Start)
        .column("entity_limits", "Entities with own limits", Align::Start)
        .rows(all.map(|resource| {
            vec![
                Cell::Link(resource.to_string(), Url::resource(resource)),
                mark(known.with_defaults.contains(resource)),
                mark(known.with_entity_limits.contains(resource)),
            ]
        }))
}
