//! The handle on what is stored.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;
use zae_limiter_dynamo::{Entropy, LocalTime, ServerTime, Table};
use zae_limiter_schema::keys;
use zae_limiter_schema::{Principal, StackName, Timestamp};

use super::audit::AuditState;
use super::principal::PrincipalSource;
use crate::builder::Settings;
use crate::config::cache::{CacheLimits, ConfigCache};
use crate::config::resolution::Defaults;
use crate::store::connect::Connected;
use crate::store::{Store, TableStore};
use crate::{Clock, Error, Result};

/// Everything that is stored: entities, configuration, audit events, usage and versions. Cheap to clone; clones share
/// everything.
///
/// A limiter has one, see [`RateLimiter::repository`](crate::RateLimiter::repository). A program that does not limit
/// calls builds one alone, with [`RateLimiterBuilder::build_repository`](crate::RateLimiterBuilder::build_repository):
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let repository = RateLimiter::embedded().build_repository().await?;
/// repository.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
/// assert_eq!(repository.get_system_defaults().await?.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Repository {
    pub(crate) inner: Arc<Inner>,
    /// Who acts through this handle, if not the configured principal.
    pub(super) actor: Option<Principal>,
    /// The deadline of the operation that this handle is for, if it is for one.
    deadline: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) table: Table,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) cache: Arc<ConfigCache>,
    pub(crate) clock: Arc<dyn Clock>,
    /// For the limiters on this repository.
    pub(crate) settings: Settings,
    pub(super) principal: PrincipalSource,
    pub(super) audit: AuditState,
    /// For other AWS services. An embedded store has none.
    #[cfg(feature = "stack")]
    pub(crate) aws: Option<aws_config::SdkConfig>,
    #[cfg(feature = "stack")]
    pub(crate) stack: Option<crate::StackSetup>,
    /// Set once the table's version was found compatible.
    pub(super) ready: OnceCell<()>,
    /// The table in the process, if it is there.
    #[cfg(feature = "usage")]
    pub(crate) embedded: Option<zae_limiter_dynamo::EmbeddedStore>,
    /// Counts the usage of an embedded table.
    #[cfg(feature = "usage")]
    pub(crate) usage_counter: OnceCell<super::usage_counter::UsageCounter>,
}

/// How often a change is attempted if other writers change the same item.
pub(super) const MAX_ATTEMPTS: u32 = 10;

/// Everything a repository is made of.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) name: StackName,
    pub(crate) connected: Connected,
    pub(crate) defaults: Defaults,
    pub(crate) principal: Option<Principal>,
    pub(crate) settings: Settings,
    #[cfg(feature = "stack")]
    pub(crate) stack: Option<crate::StackSetup>,
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
            // Every response shows the server's time, so that a wrong clock is known before it decides anything. An
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
            credentials: setup.connected.credentials,
        };
        let store = TableStore::new(table.clone(), &setup.settings, embedded, dates);
        #[cfg(feature = "embedded")]
        let slots = setup.connected.embedded.as_ref();
        #[cfg(feature = "embedded")]
        let store = store.with_slots(slots.and_then(zae_limiter_dynamo::EmbeddedStore::write_slots));
        let store: Arc<dyn Store> = Arc::new(store);
        let cache = ConfigCache::new(store.clone(), setup.clock.clone(), setup.defaults, setup.cache);
        let inner = Inner {
            table,
            store,
            cache: Arc::new(cache),
            clock: setup.clock,
            settings: setup.settings,
            #[cfg(feature = "stack")]
            aws: setup.connected.aws.clone(),
            #[cfg(feature = "stack")]
            stack: setup.stack,
            principal: PrincipalSource::new(
                setup.principal,
                setup.connected.aws.filter(|_| setup.connected.look_up_caller),
            ),
            audit: AuditState::default(),
            ready: OnceCell::new(),
            #[cfg(feature = "usage")]
            embedded: setup.connected.embedded,
            #[cfg(feature = "usage")]
            usage_counter: OnceCell::new(),
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

    /// The same repository with another principal: audit events of its changes name `principal`.
    ///
    /// ```
    /// use zae_limiter::{Limit, PageRequest};
    /// use zae_limiter::audit::AuditSubject;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// let ops = repository.acting_as("ops@example.com")?;
    /// ops.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// let events = repository.list_audit_events(&AuditSubject::System, &PageRequest::new(1)).await?;
    /// assert_eq!(events.items[0].principal.as_deref(), Some("ops@example.com"));
    /// # Ok(()) }
    /// ```
    pub fn acting_as(&self, principal: impl AsRef<str>) -> Result<Self> {
        Ok(Self {
            actor: Some(Principal::parse(principal)?),
            ..self.clone()
        })
    }

    /// This repository for one operation: all its calls, and all their attempts, share one time budget.
    pub(super) fn for_one_operation(&self) -> Self {
        Self {
            deadline: Some(Instant::now() + self.inner.table.budget),
            ..self.clone()
        }
    }

    /// The table, for as long as this handle may use it. For the other crates of this project.
    #[doc(hidden)]
    pub fn table(&self) -> Table {
        Table {
            deadline: self.deadline,
            ..self.inner.table.clone()
        }
    }

    /// Creates the table, its indexes and its version record if they are missing.
    ///
    /// For local endpoints and embedded stores. On AWS the table belongs to a stack.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let repository = zae_limiter::RateLimiter::embedded().create_table(false).build_repository().await?;
    /// repository.create_table().await?;
    /// repository.create_table().await?;
    /// assert!(repository.get_version().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub async fn create_table(&self) -> Result<()> {
        let table = &self.inner.table;
        if !table.exists().await? {
            table.create().await?;
            return self.write_version_if_absent().await;
        }
        if table.get(&keys::version(), true).await?.is_none() {
            self.stamp().await?;
        }
        Ok(())
    }

    /// The current time: the server's, where this machine's clock is known to be wrong.
    pub(crate) fn now(&self) -> Timestamp {
        self.inner
            .clock
            .now()
            .plus_millis(self.inner.store.clock_offset())
    }

    /// How long the declared stack keeps audit events.
    pub(super) fn declared_retention(&self) -> Option<u32> {
        #[cfg(feature = "stack")]
        return self.inner.stack.as_ref().map(crate::StackSetup::retention_days);
        #[cfg(not(feature = "stack"))]
        None
    }

    /// Waits before the next attempt; an error if no time is left for one.
    pub(super) async fn after_lost_race(&self, what: &impl fmt::Display, attempt: u32) -> Result<()> {
        let table = self.table();
        if table.budget().pause(&table.entropy, attempt).await {
            Ok(())
        } else {
            Err(Error::contended(what))
        }
    }
}
