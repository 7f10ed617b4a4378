//! `/v1/audit`.

use axum::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use zae_limiter::audit::{AuditEvent, AuditSubject};
use zae_limiter::records::to_json;
use zae_limiter::{EntityId, Error, PageRequest, Resource};

use super::ActingRepository;
use super::page::{self, PageOf};
use crate::api::problems::Problems;
use crate::extract::QueryParameters;
use crate::problem::{Problem, ProblemKind};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Events about this entity. Not together with a resource.
    entity: Option<String>,
    /// Events about the defaults of this resource. With neither, events about the system's defaults.
    resource: Option<String>,
    /// At most this many items: 1 to 1,000, 100 unless set.
    page_size: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

impl ListQuery {
    fn subject(&self) -> Result<AuditSubject, Problem> {
        Ok(match (&self.entity, &self.resource) {
            (Some(entity), None) => AuditSubject::Entity(EntityId::parse(entity).map_err(Error::from)?),
            (None, Some(resource)) => AuditSubject::Resource(Resource::parse(resource).map_err(Error::from)?),
            (None, None) => AuditSubject::System,
            (Some(_), Some(_)) => {
                let detail = "entity and resource cannot be combined";
                return Err(Problem::new(ProblemKind::InvalidRequest, detail));
            }
        })
    }
}

/// A change.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "fields are named as in the JSON of the command"
)]
pub(crate) struct Event {
    /// Its id, which sorts by time.
    event_id: String,
    /// When it happened.
    timestamp: String,
    /// What was done, such as `limits_set`.
    action: String,
    /// Who did it, if that is known.
    principal: Option<String>,
    /// The resource, or `_default_`, if one is concerned.
    resource: Option<String>,
    /// The particulars.
    details: Map<String, Value>,
}

impl From<AuditEvent> for Event {
    fn from(event: AuditEvent) -> Self {
        let details = event.details.iter();
        Self {
            event_id: event.id.to_string(),
            timestamp: event.timestamp.to_string(),
            action: event.action.to_string(),
            details: details
                .map(|(key, value)| (key.clone(), to_json(value)))
                .collect(),
            principal: event.principal,
            resource: event.resource,
        }
    }
}

/// Lists audit events
///
/// Newest first.
#[utoipa::path(
    get,
    path = "/v1/audit",
    tag = "audit",
    params(ListQuery),
    responses((status = 200, description = "A page of events", body = PageOf<Event>), Problems),
)]
pub(crate) async fn list(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<ListQuery>,
) -> Result<Json<PageOf<Event>>, Problem> {
    let subject = query.subject()?;
    let read = async |page: &PageRequest| repository.list_audit_events(&subject, page).await;
    page::respond(query.page_size, query.cursor.as_deref(), read).await
}
