//! `/v1/usage`.

use std::collections::BTreeMap;

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use zae_limiter::usage::{UsageQuery, UsageSnapshot, WindowKind};
use zae_limiter::{PageRequest, Timestamp};

use super::ActingRepository;
use super::page::{self, PageOf};
use crate::api::problems::Problems;
use crate::extract::QueryParameters;
use crate::problem::{Problem, ProblemKind};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// The entity. Entity or resource is required.
    entity: Option<String>,
    /// The resource.
    resource: Option<String>,
    /// `hourly`, `daily` or `monthly`.
    window: Option<String>,
    /// Only windows that begin at this time or later, such as `2026-01-31T12:00:00Z`.
    from: Option<String>,
    /// Only windows that begin before this time.
    until: Option<String>,
    /// At most this many items: 1 to 1,000, 100 unless set.
    page_size: Option<usize>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

impl ListQuery {
    fn usage(&self) -> Result<UsageQuery, Problem> {
        let mut query = match (&self.entity, &self.resource) {
            (Some(entity), Some(resource)) => UsageQuery::of_entity(entity)?.resource(resource)?,
            (Some(entity), None) => UsageQuery::of_entity(entity)?,
            (None, Some(resource)) => UsageQuery::of_resource(resource)?,
            (None, None) => {
                let detail = "entity or resource is required";
                return Err(Problem::new(ProblemKind::InvalidRequest, detail));
            }
        };
        if let Some(window) = &self.window {
            let kind: Result<WindowKind, _> = window.parse();
            query =
                query.window(kind.map_err(|_| {
                    Problem::invalid("window", window, "it must be hourly, daily or monthly")
                })?);
        }
        if let Some(from) = &self.from {
            query = query.from(time("from", from)?);
        }
        if let Some(until) = &self.until {
            query = query.until(time("until", until)?);
        }
        Ok(query)
    }
}

fn time(field: &str, text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text)
        .map_err(|_| Problem::invalid(field, text, "it must be a time such as 2026-01-31T12:00:00Z"))
}

/// What an entity used of a resource in a window.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Usage {
    /// The entity.
    entity_id: String,
    /// The resource.
    resource: String,
    /// `hourly`, `daily` or `monthly`.
    window: String,
    /// When the window begins.
    window_start: String,
    /// When it ends.
    window_end: String,
    /// How many acquires were counted.
    total_events: i64,
    /// How many acquires were refused. 0 also if nothing counts them.
    refusals: i64,
    /// How many acquires passed though the limits did not allow them, because they are only observed.
    observed: i64,
    /// Tokens by limit. A negative number means that more was given back than taken in the window.
    counters: BTreeMap<String, i64>,
    /// Percentages of quotas that were reached in the window, by limit: those that the quotas are told to alert at.
    thresholds: BTreeMap<String, Vec<u32>>,
}

impl From<UsageSnapshot> for Usage {
    fn from(snapshot: UsageSnapshot) -> Self {
        let counters = snapshot.counters.iter();
        Self {
            entity_id: snapshot.entity.to_string(),
            resource: snapshot.resource.to_string(),
            window: snapshot.window.kind().to_string(),
            window_start: snapshot.window.start().to_string(),
            window_end: snapshot.window.end().to_string(),
            total_events: snapshot.total_events,
            refusals: snapshot.refusals,
            observed: snapshot.observed,
            counters: counters
                .map(|(limit, count)| (limit.to_string(), *count))
                .collect(),
            thresholds: snapshot
                .thresholds
                .iter()
                .map(|(limit, all)| (limit.to_string(), all.iter().copied().map(u32::from).collect()))
                .collect(),
        }
    }
}

/// Lists usage
///
/// By hour, day and month, newest first. Usage is counted a few seconds after the acquires.
#[utoipa::path(
    get,
    path = "/v1/usage",
    tag = "usage",
    params(ListQuery),
    responses((status = 200, description = "A page of usage", body = PageOf<Usage>), Problems),
)]
pub(crate) async fn list(
    ActingRepository(repository): ActingRepository,
    QueryParameters(query): QueryParameters<ListQuery>,
) -> Result<Json<PageOf<Usage>>, Problem> {
    let usage = query.usage()?;
    let read = async |page: &PageRequest| repository.list_usage_snapshots(&usage, page).await;
    page::respond(query.page_size, query.cursor.as_deref(), read).await
}
