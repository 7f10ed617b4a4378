//! The data side of the limiter: everything that the table keeps, except admission.

mod audit;
mod availability;
mod capacity;
mod change;
pub(crate) mod compatibility;
mod config;
mod deletion;
mod entities;
mod entity_form;
mod limit_count;
mod metadata;
pub(crate) mod migrations;
mod paging;
mod parents;
mod principal;
mod registry;
mod setting;
mod table;
mod usage;
mod versions;

pub use availability::Availability;
pub use capacity::{CapacityScope, EntityCapacity, ResourceCapacity};
pub use change::ConfigChange;
pub(crate) use config::write as config_write;
pub use entity_form::{EntityChange, NewEntity};
pub use limit_count::MAX_LIMITS;
pub(crate) use limit_count::check_limit_count;
pub(crate) use registry::{count_entity_configs, enter_resource};
pub use usage::{UsageQuery, UsageSummary};

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;
use zae_limiter_dynamo::{Entropy, LocalTime, ServerTime, Table};
use zae_limiter_schema::{EntityId, Principal, Resource, StackName, Timestamp};

use crate::config::cache::{CacheLimits, CacheStats, ConfigCache};
use crate::config::resolution::{Defaults, Resolved};
use crate::store::connect::Connected;
use crate::store::{Store, TableStore};
use crate::{Clock, Result};

use audit::AuditState;
use principal::PrincipalSource;

/// Data access, configuration and its cache, audit and queries. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(crate) inner: Arc<Inner>,
    /// Who acts through this handle, if not the one that was set up.
    actor: Option<Principal>,
    /// When the operation must be over that this handle is for, if it is for one.
    deadline: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) table: Table,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cache: Arc<ConfigCache>,
    pub(crate) clock: Arc<dyn Clock>,
    principal: PrincipalSource,
    audit: AuditState,
    /// For how long the declared stack keeps audit events.
    declared_retention: Option<u32>,
    /// For other services; none for a table in the process.
    #[cfg(feature = "stack")]
    pub(crate) aws: Option<aws_config::SdkConfig>,
    /// Set once the table's version was found to fit.
    ready: OnceCell<()>,
}

/// Everything a repository is made of.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) name: StackName,
    pub(crate) connected: Connected,
    pub(crate) defaults: Defaults,
    pub(crate) principal: Option<Principal>,
    /// For how long the declared stack keeps audit events, if one is declared.
    pub(crate) retention: Option<u32>,
    pub(crate) time_budget: Duration,
    pub(crate) admin_budget: Duration,
    pub(crate) cache: CacheLimits,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<Entropy>,
}

impl Repository {
    pub(crate) fn new(setup: Setup) -> Self {
        let embedded = setup.connected.aws.is_none();
        let clock = setup.clock.clone();
        let dates = ServerTime::new(move || LocalTime {
            now: clock.now(),
            elapsed: clock.elapsed(),
        });
        let table = Table {
            // Every answer shows the server's time, so that a wrong clock is known before it decides anything. An
            // embedded store has no time of its own.
            client: if embedded {
                setup.connected.client
            } else {
                dates.watch(&setup.connected.client)
            },
            name: setup.name,
            place: setup.connected.place,
            entropy: setup.entropy,
            budget: setup.admin_budget,
            attempt: setup.admin_budget.div_f64(3.0),
            deadline: None,
        };
        let store: Arc<dyn Store> =
            Arc::new(TableStore::new(table.clone(), setup.time_budget, embedded, dates));
        let cache = Arc::new(ConfigCache::new(
            store.clone(),
            setup.clock.clone(),
            setup.defaults,
            setup.cache,
        ));
        #[cfg(feature = "stack")]
        let aws = setup.connected.aws.clone();
        let principal = PrincipalSource::new(setup.principal, setup.connected.aws);
        let inner = Inner {
            table,
            store,
            cache,
            clock: setup.clock,
            principal,
            audit: AuditState::default(),
            declared_retention: setup.retention,
            #[cfg(feature = "stack")]
            aws,
            ready: OnceCell::new(),
        };
        Self {
            inner: Arc::new(inner),
            actor: None,
            deadline: None,
        }
    }

    /// The name of the table, which is the name of its stack.
    pub fn name(&self) -> &StackName {
        &self.inner.table.name
    }

    /// The same repository, whose changes are noted in audit events as this principal's.
    ///
    /// ```
    /// use zae_limiter::{AuditSubject, Limit, PageRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// let ops = limiter.acting_as("ops@example.com")?;
    /// ops.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// let events = limiter.audit_events(&AuditSubject::System, &PageRequest::of(1)).await?;
    /// assert_eq!(events.items[0].principal.as_deref(), Some("ops@example.com"));
    /// # Ok(()) }
    /// ```
    pub fn acting_as(&self, principal: impl AsRef<str>) -> Result<Self> {
        Ok(Self {
            inner: self.inner.clone(),
            actor: Some(Principal::parse(principal)?),
            deadline: self.deadline,
        })
    }

    /// This repository for one operation: all its calls, and all its attempts, share one time budget.
    fn for_one_operation(&self) -> Self {
        let deadline = Instant::now() + self.inner.table.budget;
        Self {
            deadline: Some(deadline),
            ..self.clone()
        }
    }

    /// The table, for as long as this handle may use it.
    pub(crate) fn table(&self) -> Table {
        Table {
            deadline: self.deadline,
            ..self.inner.table.clone()
        }
    }

    /// The moment it is now, by the server's time where this machine's clock is known to be wrong.
    pub(crate) fn now(&self) -> Timestamp {
        let store = &self.inner.store;
        let offset = if store.capabilities().server_time {
            store.clock_offset()
        } else {
            0
        };
        self.inner.clock.now().plus_millis(offset)
    }

    /// What applies to an entity on a resource, and where each thing comes from.
    ///
    /// The most specific level that has limits decides: entity and resource, entity, resource, system, then the
    /// builder's defaults. From memory as far as each level was read within the cache's time to live, otherwise by one
    /// read. A level that cannot be reloaded stays in use (see [`CacheStats::stale_hits`]).
    ///
    /// ```
    /// use zae_limiter::{Limit, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// limiter.set_limits("user-1", "gpt-4", [Limit::per_minute("rpm", 1_000)?]).await?;
    /// assert_eq!(limiter.resolve_limits("user-1", "gpt-4").await?.limits_from, Some(Source::Entity));
    /// assert_eq!(limiter.resolve_limits("user-2", "gpt-4").await?.limits_from, Some(Source::System));
    /// # Ok(()) }
    /// ```
    pub async fn resolve_limits(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
    ) -> Result<Arc<Resolved>> {
        let (entity, resource) = (EntityId::parse(entity)?, Resource::parse(resource)?);
        let lookup = self.inner.cache.resolve(&entity, &resource).await?;
        Ok(lookup.resolved().clone())
    }

    /// Forgets all configuration, so that the next calls read it anew.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.resolve_limits("user-1", "gpt-4").await?;
    /// limiter.invalidate_config_cache();
    /// assert_eq!(limiter.cache_stats().entries, 0);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_config_cache(&self) {
        self.inner.cache.invalidate_all();
    }

    /// Forgets everything that applies to one entity and resource, the defaults of the resource and the system included.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.resolve_limits("user-1", "gpt-4").await?;
    /// limiter.resolve_limits("user-2", "gpt-4").await?;
    /// limiter.invalidate_config("user-1", "gpt-4")?;
    /// assert_eq!(limiter.cache_stats().entries, 1);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_config(&self, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Result<()> {
        self.inner
            .cache
            .invalidate(&EntityId::parse(entity)?, &Resource::parse(resource)?);
        Ok(())
    }

    /// Forgets what belongs to one entity: its record and its own configuration, on every resource.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.resolve_limits("user-1", "gpt-4").await?;
    /// limiter.resolve_limits("user-1", "gpt-3").await?;
    /// limiter.resolve_limits("user-2", "gpt-4").await?;
    /// limiter.invalidate_entity_config("user-1")?;
    /// assert_eq!(limiter.cache_stats().entries, 1);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_entity_config(&self, entity: impl AsRef<str>) -> Result<()> {
        self.inner.cache.invalidate_entity(&EntityId::parse(entity)?);
        Ok(())
    }

    /// Forgets the defaults of one resource, and what belongs to entities on that resource.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.resolve_limits("user-1", "gpt-4").await?;
    /// limiter.resolve_limits("user-1", "gpt-3").await?;
    /// limiter.invalidate_resource_config("gpt-4")?;
    /// assert_eq!(limiter.cache_stats().entries, 1);
    /// # Ok(()) }
    /// ```
    pub fn invalidate_resource_config(&self, resource: impl AsRef<str>) -> Result<()> {
        self.inner.cache.invalidate_resource(&Resource::parse(resource)?);
        Ok(())
    }

    /// How well the configuration cache works.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.resolve_limits("user-1", "gpt-4").await?;
    /// limiter.resolve_limits("user-1", "gpt-4").await?;
    /// let stats = limiter.cache_stats();
    /// assert_eq!((stats.hits, stats.misses, stats.entries), (1, 1, 1));
    /// # Ok(()) }
    /// ```
    pub fn cache_stats(&self) -> CacheStats {
        self.inner.cache.stats()
    }
}
