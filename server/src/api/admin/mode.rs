//! `/v1/mode`: whether the limits of a level are enforced; and `/v1/buckets/refresh`, which makes a change hold at once.

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use zae_limiter::{ConfigLevel, Mode, PageRequest};

use super::ActingRepository;
use super::limits::LevelQuery;
use super::page;
use crate::api::problems::{BodyProblems, Problems};
use crate::extract::{JsonBody, QueryParameters};
use crate::problem::Problem;

/// Whether limits are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModeName {
    /// A call that the limits do not allow is refused.
    Enforce,
    /// Calls are counted. One that the limits do not allow passes and takes nothing.
    Observe,
    /// Every call passes. Nothing is taken or counted.
    Bypass,
    /// Every call is refused.
    Disabled,
}

impl From<ModeName> for Mode {
    fn from(mode: ModeName) -> Self {
        match mode {
            ModeName::Enforce => Self::Enforce,
            ModeName::Observe => Self::Observe,
            ModeName::Bypass => Self::Bypass,
            ModeName::Disabled => Self::Disabled,
        }
    }
}

impl From<Mode> for ModeName {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Enforce => Self::Enforce,
            Mode::Observe => Self::Observe,
            Mode::Bypass => Self::Bypass,
            Mode::Disabled => Self::Disabled,
        }
    }
}

/// The mode of a level.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LevelMode {
    /// `system`, `resource`, `entity` or `entity_default`.
    level: String,
    /// The mode that it stores. Without one, the next level decides; limits are enforced if none does.
    mode: Option<ModeName>,
}

impl LevelMode {
    fn new(level: &ConfigLevel, mode: Option<Mode>) -> Self {
        Self {
            level: level.kind().to_string(),
            mode: mode.map(ModeName::from),
        }
    }
}

/// Shows the stored mode of a level
#[utoipa::path(
    get,
    path = "/v1/mode",
    tag = "modes",
    params(LevelQuery),
    responses((status = 200, description = "The mode of the level", body = LevelMode), Problems),
)]
pub(crate) async fn show(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<LevelQuery>,
) -> Result<Json<LevelMode>, Problem> {
    let level = query.level()?;
    let mode = repository.get_mode(&level).await?;
    Ok(Json(LevelMode::new(&level, mode)))
}

/// A mode for a level.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetMode {
    /// The mode.
    mode: ModeName,
}

/// Sets the mode of a level
///
/// Its limits stay. Calls follow it within a minute, or with the next write to each bucket after `/v1/buckets/refresh`.
#[utoipa::path(
    put,
    path = "/v1/mode",
    tag = "modes",
    params(LevelQuery),
    request_body = SetMode,
    responses(
        (status = 200, description = "The mode of the level now", body = LevelMode),
        Problems,
        BodyProblems,
    ),
)]
pub(crate) async fn set(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<LevelQuery>,
    JsonBody(request): JsonBody<SetMode>,
) -> Result<Json<LevelMode>, Problem> {
    let level = query.level()?;
    let record = repository.set_mode(&level, request.mode.into()).await?;
    Ok(Json(LevelMode::new(&level, record.mode)))
}

/// Deletes the mode of a level
///
/// The next level decides from then on.
#[utoipa::path(
    delete,
    path = "/v1/mode",
    tag = "modes",
    params(LevelQuery),
    responses((status = 204, description = "The level has no mode"), Problems),
)]
pub(crate) async fn delete(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<LevelQuery>,
) -> Result<StatusCode, Problem> {
    repository.delete_mode(&query.level()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which buckets, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RefreshQuery {
    /// The entity. Without one, the buckets are those of the resource, or all.
    entity: Option<String>,
    /// The resource. Without one, the buckets are those of the entity on every resource, or all.
    resource: Option<String>,
    /// At most this many buckets: 1 to 1,000, 100 unless set.
    page_size: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

/// What was refreshed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Refreshed {
    /// How many buckets of this page.
    buckets: u64,
    /// The `cursor` of the next page; null if this was the last.
    next: Option<String>,
}

/// Makes a change hold with the next write to each bucket
///
/// Clients then read limits and modes again, instead of within a minute. One page of buckets at a time: repeat the request
/// with `cursor` until `next` is null.
#[utoipa::path(
    post,
    path = "/v1/buckets/refresh",
    tag = "modes",
    params(RefreshQuery),
    responses((status = 200, description = "A page of buckets was refreshed", body = Refreshed), Problems),
)]
pub(crate) async fn refresh(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<RefreshQuery>,
) -> Result<Json<Refreshed>, Problem> {
    let request: PageRequest = page::request(query.page_size, query.cursor.as_deref())?;
    let level = LevelQuery::new(query.entity, query.resource).level()?;
    let refreshed = repository.refresh_buckets(&level, &request).await?;
    Ok(Json(Refreshed {
        buckets: refreshed.buckets,
        next: refreshed.next.map(|cursor| cursor.to_string()),
    }))
}
