//! The audit log.

use maud::html;
use zae_limiter::audit::AuditSubject;

use super::events;
use crate::ui::load::{AuditLog, Loaded};
use crate::ui::page::{Nav, Section, View};
use crate::ui::params::Params;
use crate::ui::url::Url;

pub(crate) fn audit(params: &Params, log: &Loaded<AuditLog>) -> View {
    let here = ["entity", "resource", "subject", "after"]
        .into_iter()
        .fold(Url::to("/ui/audit"), |url, name| {
            url.with_some(name, params.get(name))
        });
    let fields = html! {
        form.fields action="/ui/audit" {
            div { label for="entity" { "About entity" }
                input #entity name="entity" value=[params.get("entity")] autocomplete="off" spellcheck="false"; }
            div { label for="resource" { "or resource" }
                input #resource name="resource" value=[params.get("resource")] autocomplete="off" spellcheck="false"; }
            button type="submit" { "Show" }
            a.button href="/ui/audit?subject=system" { "System" }
            a.button href="/ui/audit" { "All defaults" }
        }
    };
    let title = match log.as_ref().map(|log| &log.subject) {
        Ok(Some(AuditSubject::Entity(entity))) => format!("Changes to {entity}"),
        Ok(Some(AuditSubject::Resource(resource))) => format!("Changes to the defaults of {resource}"),
        Ok(Some(AuditSubject::System)) => "Changes to the system's defaults".to_owned(),
        Ok(None) => "Latest changes to the defaults of the system and its resources".to_owned(),
        Err(_) => "Changes".to_owned(),
    };
    View::new(Nav::Audit, "Audit log", here.clone())
        .section(Section::new("Whose changes").markup(fields))
        .section(Section::new(title).loaded(log, |section, log| {
            let next = log.trail.next.as_ref().map(|cursor| here.after(cursor));
            section.table(events::table("Audit events", &log.trail, log.subject.is_none()).next(next))
        }))
}
