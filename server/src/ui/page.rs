//! A page: its sections, and the frame around them.

use axum::response::Html;
use maud::{DOCTYPE, Markup, html};

use super::assets;
use super::failure::Failure;
use super::table::Table;
use super::url::Url;

/// The views that the navigation names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nav {
    Overview,
    Entities,
    Resources,
    Limits,
    Usage,
    Audit,
}

impl Nav {
    const ALL: [(Self, &'static str, &'static str); 6] = [
        (Self::Overview, "Overview", "/ui"),
        (Self::Entities, "Entities", "/ui/entities"),
        (Self::Resources, "Resources", "/ui/resources"),
        (Self::Limits, "Limits", "/ui/limits"),
        (Self::Usage, "Usage", "/ui/usage"),
        (Self::Audit, "Audit", "/ui/audit"),
    ];
}

/// Part of a section.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    Markup(Markup),
    Table(Table),
}

/// A part of a page with a heading.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    title: String,
    blocks: Vec<Block>,
    /// Why a part of it could not be loaded.
    failure: Option<Failure>,
}

impl Section {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            blocks: vec![],
            failure: None,
        }
    }

    pub(crate) fn markup(mut self, markup: Markup) -> Self {
        self.blocks.push(Block::Markup(markup));
        self
    }

    pub(crate) fn table(mut self, table: Table) -> Self {
        self.blocks.push(Block::Table(table));
        self
    }

    /// What could be loaded, or why it could not.
    pub(crate) fn loaded<T>(
        mut self,
        loaded: &Result<T, Failure>,
        show: impl FnOnce(Self, &T) -> Self,
    ) -> Self {
        match loaded {
            Ok(value) => show(self, value),
            Err(failure) => {
                self.failure.get_or_insert_with(|| failure.clone());
                self.markup(failure.to_html())
            }
        }
    }
}

/// A page before it is framed.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) nav: Nav,
    pub(crate) title: String,
    /// The address of this very page.
    pub(crate) here: Url,
    /// Below the title.
    pub(crate) lead: Markup,
    pub(crate) sections: Vec<Section>,
}

impl View {
    pub(crate) fn new(nav: Nav, title: impl Into<String>, here: Url) -> Self {
        Self {
            nav,
            title: title.into(),
            here,
            lead: html! {},
            sections: vec![],
        }
    }

    pub(crate) fn lead(mut self, lead: Markup) -> Self {
        self.lead = lead;
        self
    }

    pub(crate) fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// The table of this name.
    pub(crate) fn find_table(&self, id: &str) -> Option<&Table> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks
            .filter_map(|block| match block {
                Block::Table(table) => Some(table),
                Block::Markup(_) => None,
            })
            .find(|table| table.id == id)
    }

    /// Why a part of it could not be loaded.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.sections.iter().find_map(|section| section.failure.as_ref())
    }

    fn content(&self) -> Markup {
        html! {
            header.page-head { h1 { (self.title) } (self.lead) }
            @for section in &self.sections {
                section.card {
                    h2 { (section.title) }
                    @for block in &section.blocks {
                        @match block {
                            Block::Markup(markup) => { (markup) }
                            Block::Table(table) => { (table.to_html(&self.here)) }
                        }
                    }
                }
            }
        }
    }
}

/// What the frame of every page shows.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// The name of the table.
    pub(crate) table: String,
    pub(crate) edit: bool,
    /// Whether the browser has a session that can be ended.
    pub(crate) signed_in: bool,
    /// Who is logged in, if that is known.
    pub(crate) principal: Option<String>,
}

impl Frame {
    /// The whole document of a view.
    pub(crate) fn document(&self, view: &View) -> Html<String> {
        let nav = html! {
            nav aria-label="Views" { ul { @for (nav, name, path) in Nav::ALL {
                li { a href=(path) aria-current=[(nav == view.nav).then_some("page")] { (name) } }
            } } }
            form.search action="/ui/entities" role="search" {
                label.sr-only for="search" { "Find entities by the beginning of their id" }
                input #search name="prefix" type="search" placeholder="Find an entity ( / )" autocomplete="off"
                    spellcheck="false";
            }
        };
        Html(self.html(&view.title, &nav, &view.content()).into_string())
    }

    /// A page for people who may not see any other.
    pub(crate) fn bare(&self, title: &str, content: &Markup) -> Html<String> {
        Html(self.html(title, &html! {}, content).into_string())
    }

    fn html(&self, title: &str, nav: &Markup, content: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) " · " (self.table) " · zae-limiter" }
                    link rel="icon" type="image/svg+xml" href=(assets::ICON.address());
                    link rel="stylesheet" href=(assets::STYLE.address());
                    script src=(assets::SCRIPT.address()) defer {}
                }
                body {
                    a.skip href="#main" { "Skip to content" }
                    header.top {
                        a.brand href="/ui" { "zae-limiter" span.table-name { (self.table) } }
                        (nav)
                    }
                    main #main tabindex="-1" { (content) }
                    footer {
                        span { @if self.edit { "Changes are allowed and audited" } @else { "Read-only" } }
                        @if let Some(principal) = &self.principal {
                            span { "Signed in as " (principal) }
                        }
                        @if self.signed_in {
                            form method="post" action="/ui/logout" { button.quiet { "Sign out" } }
                        }
                        span.zone data-zone { "Times are in UTC" }
                    }
                }
            }
        }
    }
}
