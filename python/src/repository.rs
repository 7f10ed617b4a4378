//! Everything that is stored.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use serde_json::{Value, json};
use zae_limiter::audit::AuditSubject;
use zae_limiter::pagination::{Cursor, Page};
use zae_limiter::usage::{CapacityScope, UsageQuery, WindowKind};
use zae_limiter::{
    ConfigChange, ConfigLevel, EmbeddedStore, EntityChange, EntityId, Limit, LimitSet, Mode, NewEntity,
    OnUnavailable, PageRequest, Resource, Timestamp,
};

use crate::call::{Call, Reply};
use crate::error::Failure;
use crate::money;
use crate::process::{self, Owned};
use crate::records;
use crate::settings::{self, Settings};

/// A store in the memory of this process. Repositories on it share what is stored.
#[pyclass(frozen, module = "zae_limiter_rs._core")]
pub(crate) struct MemoryStore {
    store: Owned<EmbeddedStore>,
}

#[pymethods]
impl MemoryStore {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        process::check_embedded_store()?;
        let store = py.detach(EmbeddedStore::memory);
        let store = store.map_err(|error| Failure::from(zae_limiter::Error::from(error)));
        let store = store.map_err(|failure| failure.into_exception(py))?;
        Ok(Self {
            store: Owned::new(py, store)?,
        })
    }
}

/// Connects. `settings` is JSON.
#[pyfunction]
#[pyo3(signature = (settings, memory=None))]
pub(crate) fn connect(
    py: Python<'_>,
    settings: &str,
    memory: Option<PyRef<'_, MemoryStore>>,
) -> PyResult<Call> {
    let memory = memory.map(|memory| memory.store.get().cloned()).transpose()?;
    let settings: Settings =
        settings::read("settings", settings).map_err(|failure| failure.into_exception(py))?;
    if settings.is_file() {
        process::check_embedded_store()?;
    }
    Ok(Call::new(async move {
        let name = settings.name().to_owned();
        let repository = settings.builder(memory.as_ref())?.build_repository().await;
        let repository = repository.map_err(|error| Failure::of(error, &name))?;
        Ok::<_, Failure>(Reply::Repository(repository))
    }))
}

/// A repository that is connected.
#[pyclass(frozen, module = "zae_limiter_rs._core")]
pub(crate) struct Repository {
    repository: Owned<zae_limiter::Repository>,
}

impl Repository {
    pub(crate) fn new(py: Python<'_>, repository: zae_limiter::Repository) -> PyResult<Self> {
        let repository = Owned::new(py, repository)?;
        Ok(Self { repository })
    }

    fn get(&self) -> PyResult<zae_limiter::Repository> {
        Ok(self.repository.get()?.clone())
    }

    fn acting_as(&self, principal: Option<String>) -> PyResult<Result<zae_limiter::Repository, Failure>> {
        let repository = self.repository.get()?;
        Ok(match principal {
            None => Ok(repository.clone()),
            Some(principal) => repository.acting_as(principal).map_err(Failure::from),
        })
    }
}

#[pymethods]
impl Repository {
    fn limiter(&self) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            Ok::<_, Failure>(Reply::Limiter(zae_limiter::RateLimiter::from_repository(
                repository,
            )))
        }))
    }

    fn create_table(&self) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            repository.create_table().await?;
            Ok::<_, Failure>(Reply::Data(Value::Null))
        }))
    }

    /// Creates an entity. `metadata` is JSON.
    #[pyo3(signature = (entity_id, name, parent_id, cascade, metadata, principal=None))]
    fn create_entity(
        &self,
        entity_id: String,
        name: Option<String>,
        parent_id: Option<String>,
        cascade: bool,
        metadata: String,
        principal: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let metadata: BTreeMap<String, Value> = settings::read("metadata", &metadata)?;
            let mut entity = NewEntity::new(entity_id).cascade(cascade).metadata(metadata);
            if let Some(name) = name {
                entity = entity.name(name);
            }
            if let Some(parent) = parent_id {
                entity = entity.parent(parent);
            }
            let created = repository?.create_entity(entity).await?;
            Ok::<_, Failure>(Reply::Data(records::entity(&created)))
        }))
    }

    /// Gives an entity another parent, or none.
    #[pyo3(signature = (entity_id, parent_id, reason=None, principal=None))]
    fn set_parent(
        &self,
        entity_id: String,
        parent_id: Option<String>,
        reason: Option<String>,
        principal: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let change = EntityChange::new();
            let mut change = match parent_id {
                Some(parent) => change.parent(parent),
                None => change.without_parent(),
            };
            if let Some(reason) = reason {
                change = change.reason(reason);
            }
            let changed = repository?.update_entity(entity_id, change).await?;
            Ok::<_, Failure>(Reply::Data(records::entity(&changed)))
        }))
    }

    fn get_entity(&self, entity_id: String) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let entity = repository.get_entity(entity_id).await?;
            Ok::<_, Failure>(Reply::Data(entity.as_ref().map_or(Value::Null, records::entity)))
        }))
    }

    #[pyo3(signature = (entity_id, principal=None))]
    fn delete_entity(&self, entity_id: String, principal: Option<String>) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let deleted = repository?.delete_entity(entity_id).await?;
            Ok::<_, Failure>(Reply::Data(json!(deleted)))
        }))
    }

    fn children(&self, parent_id: String) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let children = all(|page| {
                let (repository, parent) = (repository.clone(), parent_id.clone());
                async move { repository.list_children(parent, &page).await }
            });
            let children = children.await?;
            Ok::<_, Failure>(Reply::Data(children.iter().map(records::entity).collect()))
        }))
    }

    /// The limits and the policy stored at a level: `resource` and `entity_id` say which.
    #[pyo3(signature = (entity_id, resource))]
    fn get_config(&self, entity_id: Option<String>, resource: Option<String>) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let level = level(entity_id, resource)?;
            let config = repository.get_config(&level).await?;
            let limits = config
                .as_ref()
                .map_or_else(Vec::new, |config| limits(&config.limits));
            let temporary = config.as_ref().and_then(|config| config.temporary.as_ref()).map(
                |temporary| json!({ "limits": self::limits(&temporary.limits), "until": temporary.until }),
            );
            let policy = config.and_then(|config| config.on_unavailable);
            Ok::<_, Failure>(Reply::Data(json!({
                "limits": limits,
                "temporary": temporary,
                "on_unavailable": policy,
            })))
        }))
    }

    /// Stores limits at a level. `new_limits` is JSON; at the system level `on_unavailable` replaces the policy, unless the limits
    /// end at a time.
    #[pyo3(signature = (entity_id, resource, new_limits, on_unavailable=None, principal=None, until=None, reason=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "they are arguments of Python's set_limits"
    )]
    fn set_config(
        &self,
        entity_id: Option<String>,
        resource: Option<String>,
        new_limits: String,
        on_unavailable: Option<String>,
        principal: Option<String>,
        until: Option<String>,
        reason: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let level = level(entity_id, resource)?;
            let new_limits: Vec<Limit> = settings::read("limits", &new_limits)?;
            let mut change = ConfigChange::new().limits(new_limits);
            if let Some(reason) = reason {
                change = change.reason(reason);
            }
            let ends = until.is_some();
            if let Some(until) = until {
                let end = Timestamp::parse(&until);
                change =
                    change.until(end.map_err(|error| Failure::invalid("until", &until, &error.to_string()))?);
            }
            if level == ConfigLevel::System && (!ends || on_unavailable.is_some()) {
                change = match on_unavailable {
                    None => change.without_on_unavailable(),
                    Some(policy) => {
                        let quoted = Value::String(policy).to_string();
                        change.on_unavailable(settings::read::<OnUnavailable>("on_unavailable", &quoted)?)
                    }
                };
            }
            repository?.set_config(&level, change).await?;
            Ok::<_, Failure>(Reply::Data(Value::Null))
        }))
    }

    /// Ends limits of a level now that were to end later.
    #[pyo3(signature = (entity_id, resource, principal=None, reason=None))]
    fn delete_temporary_limits(
        &self,
        entity_id: Option<String>,
        resource: Option<String>,
        principal: Option<String>,
        reason: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let level = level(entity_id, resource)?;
            let mut change = ConfigChange::new().without_temporary_limits();
            if let Some(reason) = reason {
                change = change.reason(reason);
            }
            repository?.set_config(&level, change).await?;
            Ok::<_, Failure>(Reply::Data(Value::Null))
        }))
    }

    #[pyo3(signature = (entity_id, resource, principal=None))]
    fn delete_config(
        &self,
        entity_id: Option<String>,
        resource: Option<String>,
        principal: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let level = level(entity_id, resource)?;
            let existed = repository?.delete_config(&level).await?;
            Ok::<_, Failure>(Reply::Data(Value::Bool(existed)))
        }))
    }

    /// The prices stored for a resource, or for the system; null if there are none.
    fn get_prices(&self, resource: Option<String>) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let config = repository.get_config(&level(None, resource)?).await?;
            Ok::<_, Failure>(Reply::Data(json!(config.and_then(|config| config.prices))))
        }))
    }

    /// Stores the prices of a resource, or of the system. `prices` is JSON.
    #[pyo3(signature = (resource, prices, principal=None))]
    fn set_prices(
        &self,
        resource: Option<String>,
        prices: String,
        principal: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let level = level(None, resource)?;
            let change = ConfigChange::new().prices(money::read_prices(&prices)?);
            repository?.set_config(&level, change).await?;
            Ok::<_, Failure>(Reply::Data(Value::Null))
        }))
    }

    /// Deletes the prices of a resource, and replies whether it had any.
    #[pyo3(signature = (resource, principal=None))]
    fn delete_prices(&self, resource: String, principal: Option<String>) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let existed = repository?.delete_prices(resource).await?;
            Ok::<_, Failure>(Reply::Data(Value::Bool(existed)))
        }))
    }

    /// The prices that apply to a resource: its own, else the system's; null if there are none.
    fn resolve_prices(&self, resource: String) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let prices = repository.resolve_prices(resource).await?;
            Ok::<_, Failure>(Reply::Data(json!(prices)))
        }))
    }

    /// The mode stored at a level; null if there is none.
    fn get_mode(&self, entity_id: Option<String>, resource: Option<String>) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let mode = repository.get_mode(&level(entity_id, resource)?).await?;
            Ok::<_, Failure>(Reply::Data(json!(mode)))
        }))
    }

    /// Stores a mode at a level. `mode` is its name.
    #[pyo3(signature = (entity_id, resource, mode, principal=None))]
    fn set_mode(
        &self,
        entity_id: Option<String>,
        resource: Option<String>,
        mode: String,
        principal: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let level = level(entity_id, resource)?;
            let parsed: Mode = mode.parse().map_err(|_| {
                Failure::invalid("mode", &mode, "it must be enforce, observe, bypass or disabled")
            })?;
            repository?.set_mode(&level, parsed).await?;
            Ok::<_, Failure>(Reply::Data(Value::Null))
        }))
    }

    /// Deletes the mode of a level, and replies whether it had one.
    #[pyo3(signature = (entity_id, resource, principal=None))]
    fn delete_mode(
        &self,
        entity_id: Option<String>,
        resource: Option<String>,
        principal: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let level = level(entity_id, resource)?;
            let existed = repository?.delete_mode(&level).await?;
            Ok::<_, Failure>(Reply::Data(Value::Bool(existed)))
        }))
    }

    /// Lets every client read the configuration of the buckets of a level again, and replies with their number: a page, and the
    /// start of the next one.
    #[pyo3(signature = (entity_id, resource, cursor=None))]
    fn refresh_buckets(
        &self,
        entity_id: Option<String>,
        resource: Option<String>,
        cursor: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let level = level(entity_id, resource)?;
            let page = page_request(PageRequest::MAX_SIZE, cursor.as_deref())?;
            let refreshed = repository.refresh_buckets(&level, &page).await?;
            Ok::<_, Failure>(Reply::Data(json!([
                refreshed.buckets,
                next(refreshed.next.as_ref())
            ])))
        }))
    }

    /// Adds to what is left of a limit now.
    #[pyo3(signature = (entity_id, resource, limit, amount, reason=None, idempotency_key=None, principal=None))]
    #[expect(clippy::too_many_arguments, reason = "they are arguments of Python's top_up")]
    fn top_up(
        &self,
        entity_id: String,
        resource: String,
        limit: String,
        amount: u64,
        reason: Option<String>,
        idempotency_key: Option<String>,
        principal: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let mut top_up = repository?.top_up(entity_id, resource, limit, amount);
            if let Some(reason) = reason {
                top_up = top_up.reason(reason);
            }
            if let Some(key) = idempotency_key {
                top_up = top_up.idempotency_key(key);
            }
            Ok::<_, Failure>(Reply::Data(json!(top_up.await?)))
        }))
    }

    /// Makes limits as if nothing were used: these, or all.
    #[pyo3(signature = (entity_id, resource, limits, reason=None, idempotency_key=None, principal=None))]
    fn reset(
        &self,
        entity_id: String,
        resource: String,
        limits: Vec<String>,
        reason: Option<String>,
        idempotency_key: Option<String>,
        principal: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.acting_as(principal)?;
        Ok(Call::new(async move {
            let mut reset = repository?.reset(entity_id, resource);
            for limit in limits {
                reset = reset.limit(limit);
            }
            if let Some(reason) = reason {
                reset = reset.reason(reason);
            }
            if let Some(key) = idempotency_key {
                reset = reset.idempotency_key(key);
            }
            Ok::<_, Failure>(Reply::Data(json!(reset.await?)))
        }))
    }

    fn resolve_limits(&self, entity_id: String, resource: String) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let resolved = repository.resolve_limits(entity_id, resource).await?;
            Ok::<_, Failure>(Reply::Data(records::resolved(&resolved)))
        }))
    }

    /// Entities with limits of their own on a resource, or on every resource: a page, or all.
    #[pyo3(signature = (resource, size=None, cursor=None))]
    fn entities_with_custom_limits(
        &self,
        resource: Option<String>,
        size: Option<usize>,
        cursor: Option<String>,
    ) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let resource = resource
                .map(Resource::parse)
                .transpose()
                .map_err(zae_limiter::Error::from)?;
            let list = |page| {
                let (repository, resource) = (repository.clone(), resource.clone());
                async move {
                    repository
                        .list_entities_with_custom_limits(resource.as_ref(), &page)
                        .await
                }
            };
            let page = match size {
                None if cursor.is_none() => Page {
                    items: all(list).await?,
                    next: None,
                },
                size => list(page_request(size.unwrap_or(100), cursor.as_deref())?).await?,
            };
            let ids: Vec<_> = page.items.iter().map(EntityId::as_str).collect();
            Ok::<_, Failure>(Reply::Data(json!([ids, next(page.next.as_ref())])))
        }))
    }

    fn resources_with_defaults(&self) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let names = repository.list_resources_with_defaults().await?;
            Ok::<_, Failure>(Reply::Data(json!(names)))
        }))
    }

    fn resources_with_entity_configs(&self) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let names = repository.list_resources_with_entity_configs().await?;
            Ok::<_, Failure>(Reply::Data(json!(names)))
        }))
    }

    /// Events of an entity, newest first, from the one before `before` on.
    #[pyo3(signature = (entity_id, most, before=None))]
    fn audit_events(&self, entity_id: String, most: usize, before: Option<String>) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let subject: AuditSubject = entity_id
                .parse()
                .map_err(|error| Failure::invalid("entity_id", &entity_id, &format!("{error}")))?;
            let mut found = Vec::new();
            let mut cursor = None;
            while found.len() < most {
                let page = repository
                    .list_audit_events(&subject, &page_request(PageRequest::MAX_SIZE, cursor.as_deref())?)
                    .await?;
                let events = page.items.iter();
                let older = events.filter(|event| {
                    before
                        .as_deref()
                        .is_none_or(|before| event.id.to_string().as_str() < before)
                });
                found.extend(older.map(records::event));
                cursor = page.next.map(|cursor| cursor.to_string());
                if cursor.is_none() {
                    break;
                }
            }
            found.truncate(most);
            Ok::<_, Failure>(Reply::Data(Value::Array(found)))
        }))
    }

    /// A page of usage. `query` is JSON. What this process counts is counted first.
    #[pyo3(signature = (query, size, cursor=None))]
    fn usage_snapshots(&self, query: String, size: usize, cursor: Option<String>) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let query = settings::read::<Query>("query", &query)?.read()?;
            repository.catch_up_usage().await?;
            let page = repository
                .list_usage_snapshots(&query, &page_request(size, cursor.as_deref())?)
                .await?;
            let snapshots: Vec<_> = page.items.iter().map(records::snapshot).collect();
            Ok::<_, Failure>(Reply::Data(json!([snapshots, next(page.next.as_ref())])))
        }))
    }

    /// Sums of usage over windows of one length. What this process counts is counted first.
    fn usage_summary(&self, query: String, window: String) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let query = settings::read::<Query>("query", &query)?.read()?;
            repository.catch_up_usage().await?;
            let summary = repository
                .get_usage_summary(&query, window_kind(&window)?)
                .await?;
            Ok::<_, Failure>(Reply::Data(records::summary(&summary)))
        }))
    }

    fn resource_capacity(&self, resource: String, limit: String, parents_only: bool) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let scope = if parents_only {
                CapacityScope::RootsOnly
            } else {
                CapacityScope::Everyone
            };
            let capacity = repository.get_resource_capacity(resource, limit, scope).await?;
            Ok::<_, Failure>(Reply::Data(records::capacity(&capacity)))
        }))
    }

    /// The buckets of an entity, one entry per limit.
    fn buckets(&self, entity_id: String, resource: Option<String>) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let buckets = match resource {
                Some(resource) => repository
                    .get_bucket(entity_id, resource)
                    .await?
                    .into_iter()
                    .collect(),
                None => {
                    let buckets = all(|page| {
                        let (repository, entity) = (repository.clone(), entity_id.clone());
                        async move { repository.list_buckets(entity, &page).await }
                    });
                    buckets.await?
                }
            };
            Ok::<_, Failure>(Reply::Data(buckets.iter().flat_map(records::bucket).collect()))
        }))
    }

    fn version(&self) -> PyResult<Call> {
        let repository = self.get()?;
        Ok(Call::new(async move {
            let version = repository.get_version().await?.map(|version| {
                json!({
                    "schema_version": version.schema_version,
                    "client_min_version": version.client_min_version,
                    "lambda_version": version.lambda_version,
                    "updated_at": version.updated_at,
                    "updated_by": version.updated_by,
                })
            });
            Ok::<_, Failure>(Reply::Data(json!(version)))
        }))
    }

    fn invalidate_config_cache(&self) -> PyResult<()> {
        self.repository.get()?.invalidate_config_cache();
        Ok(())
    }

    /// Hits, misses and entries of the configuration cache.
    fn cache_stats(&self) -> PyResult<(u64, u64, u64)> {
        let stats = self.repository.get()?.cache_stats();
        Ok((stats.hits, stats.misses, stats.entries + stats.levels))
    }
}

/// The resource name that means every resource.
const EVERY_RESOURCE: &str = "_default_";

fn level(entity: Option<String>, resource: Option<String>) -> Result<ConfigLevel, Failure> {
    let entity = entity
        .map(EntityId::parse)
        .transpose()
        .map_err(zae_limiter::Error::from)?;
    let on_all = entity.is_some() && resource.as_deref() == Some(EVERY_RESOURCE);
    let resource = resource.filter(|_| !on_all);
    let resource = resource
        .map(Resource::parse)
        .transpose()
        .map_err(zae_limiter::Error::from)?;
    Ok(match (entity, resource) {
        (None, None) => ConfigLevel::System,
        (None, Some(resource)) => ConfigLevel::Resource(resource),
        (Some(entity), None) => ConfigLevel::EntityDefault(entity),
        (Some(entity), Some(resource)) => ConfigLevel::Entity(entity, resource),
    })
}

fn limits(limits: &LimitSet) -> Vec<Value> {
    limits.iter().map(records::limit).collect()
}

/// Whose usage, of what, and when.
#[derive(serde::Deserialize)]
struct Query {
    entity_id: Option<String>,
    resource: Option<String>,
    window_type: Option<String>,
    start_time: Option<Timestamp>,
    end_time: Option<Timestamp>,
}

impl Query {
    fn read(self) -> Result<UsageQuery, Failure> {
        let mut query = match (self.entity_id, self.resource) {
            (Some(entity), None) => UsageQuery::of_entity(entity)?,
            (Some(entity), Some(resource)) => UsageQuery::of_entity(entity)?.resource(resource)?,
            (None, Some(resource)) => UsageQuery::of_resource(resource)?,
            (None, None) => return Err(Failure::invalid("query", "", "it needs an entity or a resource")),
        };
        if let Some(window) = self.window_type {
            query = query.window(window_kind(&window)?);
        }
        if let Some(start) = self.start_time {
            query = query.from(start);
        }
        if let Some(end) = self.end_time {
            query = query.until(end);
        }
        Ok(query)
    }
}

fn window_kind(window: &str) -> Result<WindowKind, Failure> {
    window
        .parse()
        .map_err(|_| Failure::invalid("window_type", window, "it must be hourly, daily or monthly"))
}

fn page_request(size: usize, cursor: Option<&str>) -> Result<PageRequest, zae_limiter::Error> {
    let page = PageRequest::new(size);
    Ok(match cursor {
        None => page,
        Some(cursor) => page.after(cursor.parse()?),
    })
}

fn next(cursor: Option<&Cursor>) -> Option<String> {
    cursor.map(ToString::to_string)
}

/// All pages of a list.
async fn all<T, F>(list: impl Fn(PageRequest) -> F) -> zae_limiter::Result<Vec<T>>
where
    F: Future<Output = zae_limiter::Result<Page<T>>>,
{
    let mut items = Vec::new();
    let mut request = PageRequest::new(PageRequest::MAX_SIZE);
    loop {
        let page = list(request).await?;
        items.extend(page.items);
        match page.next {
            Some(cursor) => request = PageRequest::new(PageRequest::MAX_SIZE).after(cursor),
            None => return Ok(items),
        }
    }
}
