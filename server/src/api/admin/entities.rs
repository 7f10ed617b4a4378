//! `/v1/entities`.

use axum::Json;
use axum::http::{StatusCode, header};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use zae_limiter::error::NotFound;
use zae_limiter::records::{EntityRecord, to_json};
use zae_limiter::{EntityChange, EntityId, Error, NewEntity, PageRequest};

use super::ActingRepository;
use super::page::{self, PageOf};
use crate::api::problems::{BodyProblems, EntityProblems, ProblemBody, Problems};
use crate::extract::{JsonBody, PathParameters, QueryParameters};
use crate::problem::Problem;

/// An entity.
#[derive(Debug, Serialize, ToSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "fields are named as in the JSON of the command"
)]
pub(crate) struct Entity {
    /// Its id.
    entity_id: String,
    /// A name for people.
    name: String,
    /// Its parent, if it has one.
    parent_id: Option<String>,
    /// Whether what it acquires counts on the parent too.
    cascade: bool,
    /// Notes of the application.
    metadata: Map<String, Value>,
    /// When it was created.
    created_at: String,
}

impl From<EntityRecord> for Entity {
    fn from(record: EntityRecord) -> Self {
        let notes = record.metadata.iter();
        Self {
            entity_id: record.id.to_string(),
            metadata: notes.map(|(key, value)| (key.clone(), to_json(value))).collect(),
            parent_id: record.parent.map(|parent| parent.to_string()),
            cascade: record.cascade,
            created_at: record.created_at.to_string(),
            name: record.name,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only the children of this entity.
    parent: Option<String>,
    /// At most this many items: 1 to 1,000, 100 unless set.
    page_size: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// Lists entities
#[utoipa::path(
    get,
    path = "/v1/entities",
    tag = "entities",
    params(ListQuery),
    responses((status = 200, description = "A page of entities", body = PageOf<Entity>), Problems),
)]
pub(crate) async fn list(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<ListQuery>,
) -> Result<Json<PageOf<Entity>>, Problem> {
    let read = async |page: &PageRequest| match &query.parent {
        Some(parent) => repository.list_children(parent, page).await,
        None => repository.list_entities(page).await,
    };
    page::respond(query.page_size, query.cursor.as_deref(), read).await
}

/// An entity to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateEntity {
    /// Its id.
    #[schema(example = "user-1")]
    entity_id: String,
    /// A name for people; the id unless set.
    name: Option<String>,
    /// The entity above it, which must exist.
    parent_id: Option<String>,
    /// Whether what it acquires counts on the parent too.
    #[serde(default)]
    cascade: bool,
    /// Notes of the application.
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// Creates an entity
#[utoipa::path(
    post,
    path = "/v1/entities",
    tag = "entities",
    request_body = CreateEntity,
    responses(
        (status = 201, description = "The entity is created", body = Entity),
        (status = 409, description = "It exists already", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The parent is invalid", body = ProblemBody, content_type = "application/problem+json"),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn create(
    ActingRepository(repository): ActingRepository,
    JsonBody(request): JsonBody<CreateEntity>,
) -> Result<(StatusCode, [(header::HeaderName, String); 1], Json<Entity>), Problem> {
    let mut entity = NewEntity::new(request.entity_id)
        .cascade(request.cascade)
        .metadata(request.metadata);
    if let Some(name) = request.name {
        entity = entity.name(name);
    }
    if let Some(parent) = request.parent_id {
        entity = entity.parent(parent);
    }
    let record = repository.create_entity(entity).await?;
    // Ids have no characters that a path would have to escape.
    let location = [(header::LOCATION, format!("/v1/entities/{}", record.id))];
    Ok((StatusCode::CREATED, location, Json(record.into())))
}

/// Shows an entity
#[utoipa::path(
    get,
    path = "/v1/entities/{entity}",
    tag = "entities",
    params(("entity" = String, Path, description = "The entity")),
    responses(
        (status = 200, description = "The entity", body = Entity),
        EntityProblems,
        Problems,
    ),
)]
pub(crate) async fn show(
    ActingRepository(repository): ActingRepository,
    PathParameters(entity): PathParameters<String>,
) -> Result<Json<Entity>, Problem> {
    let entity = EntityId::parse(&entity).map_err(Error::from)?;
    let found = repository.get_entity(&entity).await?;
    let record = found.ok_or(Error::NotFound(NotFound::Entity { entity }))?;
    Ok(Json(record.into()))
}

/// What to change about an entity. What is missing stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(clippy::option_option, reason = "missing, null, or a value")]
pub(crate) struct UpdateEntity {
    /// Another name for people.
    name: Option<String>,
    /// Another parent; null for none.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    parent_id: Option<Option<String>>,
    /// Whether what it acquires counts on the parent too.
    cascade: Option<bool>,
    /// Other notes, in place of all that it has.
    metadata: Option<Map<String, Value>>,
    /// Why, for the audit trail.
    reason: Option<String>,
}

/// Tells null from a missing field.
#[expect(clippy::option_option, reason = "missing, null, or a value")]
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Changes an entity
#[utoipa::path(
    patch,
    path = "/v1/entities/{entity}",
    tag = "entities",
    params(("entity" = String, Path, description = "The entity")),
    request_body = UpdateEntity,
    responses(
        (status = 200, description = "The entity as it is now", body = Entity),
        EntityProblems,
        (status = 422, description = "The parent is invalid", body = ProblemBody, content_type = "application/problem+json"),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn update(
    ActingRepository(repository): ActingRepository,
    PathParameters(entity): PathParameters<String>,
    JsonBody(request): JsonBody<UpdateEntity>,
) -> Result<Json<Entity>, Problem> {
    let mut change = EntityChange::new();
    if let Some(name) = request.name {
        change = change.name(name);
    }
    change = match request.parent_id {
        Some(Some(parent)) => change.parent(parent),
        Some(None) => change.without_parent(),
        None => change,
    };
    if let Some(cascade) = request.cascade {
        change = change.cascade(cascade);
    }
    if let Some(metadata) = request.metadata {
        change = change.replace_metadata(metadata);
    }
    if let Some(reason) = request.reason {
        change = change.reason(reason);
    }
    let record = repository.update_entity(entity, change).await?;
    Ok(Json(record.into()))
}

/// Deletes an entity
///
/// With its buckets, limits and usage. Its audit events stay.
#[utoipa::path(
    delete,
    path = "/v1/entities/{entity}",
    tag = "entities",
    params(("entity" = String, Path, description = "The entity")),
    responses(
        (status = 204, description = "The entity is deleted"),
        EntityProblems,
        (status = 409, description = "It has children", body = ProblemBody, content_type = "application/problem+json"),
        Problems,
    ),
)]
pub(crate) async fn delete(
    ActingRepository(repository): ActingRepository,
    PathParameters(entity): PathParameters<String>,
) -> Result<StatusCode, Problem> {
    repository.delete_entity(entity).await?;
    Ok(StatusCode::NO_CONTENT)
}
