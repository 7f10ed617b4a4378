//! Stored limits as a tree of four levels.

use std::time::SystemTime;

use maud::{Markup, html};
use zae_limiter::records::ConfigRecord;
use zae_limiter::{ConfigLevel, EntityId, LimitName, Resource};

use super::level_name;
use crate::config_level::resource_of;
use crate::ui::load::{LimitsTree, Loaded, ResourceLevels};
use crate::ui::page::{Nav, Section, View};
use crate::ui::params::Params;
use crate::ui::table::{Align, Cell, Empty, Table};
use crate::ui::url::Url;

pub(crate) fn limits(params: &Params, tree: &Loaded<LimitsTree>, edit: bool) -> View {
    let here = Url::to("/ui/limits")
        .with_some("resource", params.get("resource"))
        .with_some("after", params.get("after"));
    let lead = html! {
        p {
            "The most specific level that has limits applies as a whole: an entity on a resource, then the entity, then the "
            "resource, then the system."
        }
        @if params.get("changed").is_some() {
            p.notice role="status" { "The change is stored. Live buckets follow within a minute." }
        }
    };
    View::new(Nav::Limits, "Limits", here.clone())
        .lead(lead)
        .section(Section::new("Levels").loaded(tree, |section, tree| section.markup(levels(tree, edit))))
        .section(Section::new("As a table").loaded(tree, |section, tree| section.table(table(tree, &here))))
}

fn edit_link(url: &Url, what: &str, edit: bool) -> Markup {
    html! {
        @if edit { " " a.edit href=(url) { "Change" span.sr-only { " the limits of " (what) } } }
    }
}

/// What a level stores, in a line.
fn stored(record: Option<&ConfigRecord>, money: Option<&LimitName>, otherwise: &str) -> Markup {
    let stores = |record: &&ConfigRecord| {
        let has_limits = !record.limits.is_empty() || record.temporary.is_some();
        has_limits || record.on_unavailable.is_some() || record.mode.is_some() || record.prices.is_some()
    };
    let record = record.filter(stores);
    html! {
        @match record {
            None => { span.inherits { (otherwise) } }
            Some(record) => {
                @for limit in record.limits.iter() { code.limit { (level_name::limit(limit, money)) } " " }
                @if record.limits.is_empty() { span.inherits { (otherwise) } " " }
                @if let Some(temporary) = record.temporary_at(SystemTime::now().into()) {
                    span.policy { "until " (temporary.until) ":" } " "
                    @for limit in temporary.limits.iter() { code.limit { (level_name::limit(limit, money)) } " " }
                }
                @if let Some(policy) = record.on_unavailable {
                    span.policy { "while unavailable: " (level_name::policy(policy)) }
                }
                @if let Some(mode) = record.mode { " " span.policy { "mode: " (mode) } }
                @if let Some(prices) = &record.prices { " " span.policy { "prices: " (level_name::prices(prices)) } }
            }
        }
    }
}

/// The limit that counts money at a level.
fn money(record: Option<&ConfigRecord>) -> Option<&LimitName> {
    Some(&record?.prices.as_ref()?.money_limit)
}

fn levels(tree: &LimitsTree, edit: bool) -> Markup {
    let system = money(tree.system.as_ref());
    let change = Url::to("/ui/limits/edit");
    html! {
        ul.tree {
            li {
                span.level-kind { "System" }
                (stored(tree.system.as_ref(), system, "no limits: calls on other resources need limits of their own"))
                (edit_link(&change, "the system", edit))
                ul {
                    @for levels in &tree.resources { li { (resource(levels, tree, edit)) } }
                    @if tree.resources.is_empty() { li { span.inherits { "No resource has limits of its own." } } }
                    @if tree.open.is_none() && tree.known.total > tree.known.names.len() {
                        li { a href="/ui/resources" { (tree.known.total - tree.known.names.len()) " more resources" } }
                    }
                }
            }
            @if !tree.entity_defaults.items.is_empty() {
                li {
                    span.level-kind { "Entities on every resource" }
                    ul { @for (entity, record) in &tree.entity_defaults.items { li {
                        a href=(Url::entity(entity)) { (entity) } " "
                        (stored(record.as_ref(), system, "no limits"))
                        (edit_link(&change.clone().with("entity", entity), entity.as_str(), edit))
                    } } }
                }
            }
        }
    }
}

fn resource(levels: &ResourceLevels, tree: &LimitsTree, edit: bool) -> Markup {
    let change = Url::to("/ui/limits/edit").with("resource", &levels.resource);
    let open = Url::to("/ui/limits").with("resource", &levels.resource);
    let money = money(levels.defaults.as_ref()).or_else(|| money(tree.system.as_ref()));
    html! {
        span.level-kind { "Resource" }
        a href=(Url::resource(&levels.resource)) { (levels.resource) } " "
        (stored(levels.defaults.as_ref(), money, "the system's limits"))
        (edit_link(&change, levels.resource.as_str(), edit))
        @if !levels.entities.items.is_empty() {
            ul {
                @for (entity, record) in &levels.entities.items { li {
                    span.level-kind { "Entity" }
                    a href=(Url::entity(entity)) { (entity) } " "
                    @if record.is_some() { (stored(record.as_ref(), money, "no limits")) } @else { span.inherits { "own limits" } }
                    (edit_link(&change.clone().with("entity", entity), entity.as_str(), edit))
                } }
                @if tree.open.is_none() {
                    li { a href=(open) { "Show the limits of entities on " (levels.resource) } }
                } @else if let Some(cursor) = &levels.entities.next {
                    li { a href=(open.clone().after(cursor)) rel="next" { "More entities" } }
                }
            }
        }
    }
}

fn table(tree: &LimitsTree, here: &Url) -> Table {
    let empty = Empty::new(
        "No limits are stored.",
        html! { "Set defaults with " code { "zae-limiter system set-defaults -l rpm:100" } "." },
    );
    let mut rows = vec![];
    rows.extend(
        tree.system
            .as_ref()
            .map(|record| row(&ConfigLevel::System, Some(record))),
    );
    for levels in &tree.resources {
        let level = ConfigLevel::Resource(levels.resource.clone());
        rows.extend(levels.defaults.as_ref().map(|record| row(&level, Some(record))));
        let of =
            |entity: &EntityId, resource: &Resource| ConfigLevel::Entity(entity.clone(), resource.clone());
        let entities = levels.entities.items.iter();
        rows.extend(entities.map(|(entity, record)| row(&of(entity, &levels.resource), record.as_ref())));
    }
    let defaults = tree.entity_defaults.items.iter();
    rows.extend(
        defaults.map(|(entity, record)| row(&ConfigLevel::EntityDefault(entity.clone()), record.as_ref())),
    );
    let opened = tree.open.as_ref().and_then(|_| tree.resources.first());
    let next = opened.and_then(|levels| levels.entities.next.as_ref());
    Table::new("levels", "Stored limits by level", empty)
        .column("level", "Level", Align::Start)
        .column("entity_id", "Entity", Align::Start)
        .column("resource", "Resource", Align::Start)
        .column("limits", "Limits", Align::Start)
        .column("on_unavailable", "While unavailable", Align::Start)
        .column("mode", "Mode", Align::Start)
        .column("config_version", "Version", Align::End)
        .rows(rows)
        .next(next.map(|cursor| here.clone().after(cursor)))
}

/// An entity whose record was not read shows no limits: its resource is not opened.
fn row(level: &ConfigLevel, record: Option<&ConfigRecord>) -> Vec<Cell> {
    let entity = level.entity();
    vec![
        Cell::text(level.kind().as_str()),
        entity.map_or(Cell::Empty, |entity| {
            Cell::Link(entity.to_string(), Url::entity(entity))
        }),
        resource_of(level).map_or(Cell::Empty, |resource| {
            Cell::Link(resource.to_string(), Url::resource(resource))
        }),
        record
            .filter(|record| !record.limits.is_empty())
            .map_or(Cell::Empty, |record| {
                Cell::code(&level_name::limits(Some(record)))
            }),
        record
            .and_then(|record| record.on_unavailable)
            .map_or(Cell::Empty, |policy| Cell::text(level_name::policy(policy))),
        record
            .and_then(|record| record.mode)
            .map_or(Cell::Empty, |mode| Cell::text(mode.as_str())),
        record.map_or(Cell::Empty, |record| Cell::number(record.config_version)),
    ]
}
