//! The audit log.

use zae_limiter::audit::{AuditEvent, AuditSubject};
use zae_limiter::pagination::Cursor;
use zae_limiter::{PageRequest, Repository};

use super::{Loaded, all, known_resources};
use crate::ui::Ui;
use crate::ui::failure::Failure;
use crate::ui::params::Params;

/// The audit log of a subject.
#[derive(Debug, Clone)]
pub(crate) struct AuditLog {
    /// None: the system and all known resources together.
    pub(crate) subject: Option<AuditSubject>,
    pub(crate) trail: Trail,
}

/// Events, newest first.
#[derive(Debug, Clone)]
pub(crate) struct Trail {
    /// The events to show, then earlier ones that tell what those changed.
    pub(crate) events: Vec<AuditEvent>,
    /// How many of them are to be shown.
    pub(crate) shown: usize,
    pub(crate) next: Option<Cursor>,
}

/// A page of events about a subject, with the page that follows to tell what the last ones changed.
pub(super) async fn trail(
    repository: &Repository,
    subject: &AuditSubject,
    request: &PageRequest,
    size: usize,
) -> Loaded<Trail> {
    let page = repository.list_audit_events(subject, request).await?;
    let mut events = page.items;
    let shown = events.len();
    if let Some(cursor) = &page.next {
        let earlier = PageRequest::new(size).after(cursor.clone());
        events.extend(repository.list_audit_events(subject, &earlier).await?.items);
    }
    let next = page.next;
    Ok(Trail { events, shown, next })
}

/// Events about an entity, a resource, the system, or about the system and all known resources together. Events are
/// stored by subject, so that the last list ends after one page.
pub(crate) async fn audit_log(ui: &Ui, params: &Params, size: usize) -> Loaded<AuditLog> {
    let repository = ui.app.limiter.repository();
    let request = match params.cursor()? {
        Some(cursor) => PageRequest::new(size).after(cursor),
        None => PageRequest::new(size),
    };
    let subject = subject(params)?;
    if let Some(subject) = subject {
        let trail = trail(repository, &subject, &request, size).await?;
        let subject = Some(subject);
        return Ok(AuditLog { subject, trail });
    }
    let known = known_resources(repository).await?;
    let resources = known.names.into_iter().map(AuditSubject::Resource);
    let loads = resources.chain([AuditSubject::System]).map(|subject| {
        let request = PageRequest::new(size);
        async move { repository.list_audit_events(&subject, &request).await }
    });
    let loaded: Vec<_> = all(loads).await;
    let mut events = vec![];
    for page in loaded {
        events.extend(page?.items);
    }
    events.sort_by_key(|event: &AuditEvent| std::cmp::Reverse(event.id));
    let trail = Trail {
        shown: events.len().min(size),
        events,
        next: None,
    };
    let subject = None;
    Ok(AuditLog { subject, trail })
}

fn subject(params: &Params) -> Loaded<Option<AuditSubject>> {
    match (params.entity()?, params.resource()?) {
        (Some(entity), None) => Ok(Some(AuditSubject::Entity(entity))),
        (None, Some(resource)) => Ok(Some(AuditSubject::Resource(resource))),
        (None, None) => Ok((params.get("subject") == Some("system")).then_some(AuditSubject::System)),
        (Some(entity), Some(_)) => Err(Failure::invalid(
            "entity",
            entity.as_str(),
            "choose an entity or a resource, not both",
        )),
    }
}
