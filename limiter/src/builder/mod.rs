//! How a limiter is set up.

mod acquire;
mod connection;
#[cfg(feature = "stack")]
mod infrastructure;
mod repository;
mod settings;

pub(crate) use settings::{ChunkScope, Settings};

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_dynamo::Entropy;
use zae_limiter_schema::{Limit, OnUnavailable, Principal, Resource, StackName};

use crate::admin::{Repository, Setup, limit_set};
use crate::config::cache::CacheLimits;
use crate::config::resolution::Defaults;
use crate::store::connect::{Connection, check_length};
use crate::{Clock, Error, RateLimiter, Result, SystemClock};

/// Settings of a [`RateLimiter`]. Every one has a default; [`build`](RateLimiterBuilder::build) or `.await` connects.
///
/// ```
/// use std::time::Duration;
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let limiter = RateLimiter::embedded()
///     .default_limits([Limit::per_minute("rpm", 100)?])
///     .config_cache_ttl(Duration::from_secs(10))
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct RateLimiterBuilder {
    name: String,
    connection: Connection,
    create_table: bool,
    /// The first setting that does not apply to the connection.
    misplaced: Option<&'static str>,
    limits: Vec<Limit>,
    on_unavailable: OnUnavailable,
    principal: Option<String>,
    settings: Settings,
    #[cfg(feature = "stack")]
    stack: Option<crate::StackSetup>,
    /// Whether building deploys the stack.
    #[cfg(feature = "stack")]
    ensure: bool,
    admin_budget: Duration,
    cache: CacheLimits,
    clock: Arc<dyn Clock>,
    entropy: Entropy,
}

impl RateLimiterBuilder {
    pub(crate) fn new(name: &str, connection: Connection) -> Self {
        Self {
            name: name.to_owned(),
            create_table: connection.creates_table(),
            connection,
            misplaced: None,
            limits: vec![],
            on_unavailable: OnUnavailable::Block,
            principal: None,
            settings: Settings::default(),
            #[cfg(feature = "stack")]
            stack: None,
            #[cfg(feature = "stack")]
            ensure: false,
            admin_budget: Duration::from_secs(10),
            cache: CacheLimits {
                ttl: Duration::from_mins(1),
                entries: 200_000,
            },
            clock: Arc::new(SystemClock::new()),
            entropy: Entropy::from_system(),
        }
    }

    /// Replaces the system clock.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use zae_limiter::{Limit, ManualClock, RateLimiter, Timestamp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let clock = Arc::new(ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap()));
    /// let limits = [Limit::per_minute("rpm", 60)?];
    /// let limiter = RateLimiter::embedded().default_limits(limits).clock(clock.clone()).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rpm", 60).await?.commit().await?;
    /// clock.advance(Duration::from_secs(10)); // a test need not wait
    /// assert_eq!(limiter.acquire("user-1", "gpt-4").peek().await?.tokens("rpm"), Some(10));
    /// # Ok(()) }
    /// ```
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Seeds the random numbers (jitter, ids), for reproducible tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.entropy = Entropy::seeded(seed);
        self
    }

    /// Checks the settings and connects. Only an embedded store, or [`create_table`](Self::create_table), accesses
    /// the table here.
    pub async fn build(self) -> Result<RateLimiter> {
        Ok(RateLimiter::from_repository(self.build_repository().await?))
    }

    /// The same without a limiter, for programs that only manage what is stored. [`RateLimiter::from_repository`]
    /// creates a limiter on it later.
    ///
    /// ```no_run
    /// # async fn example() -> zae_limiter::Result<()> {
    /// let config = aws_config::load_from_env().await;
    /// let repository = zae_limiter::RateLimiter::builder("my-app").sdk_config(config).build_repository().await?;
    /// println!("{:?}", repository.get_version().await?);
    /// # Ok(()) }
    /// ```
    pub async fn build_repository(self) -> Result<Repository> {
        self.check()?;
        let name = StackName::parse(&self.name)?;
        let limits = limit_set("default limits", self.limits)?;
        let setup = Setup {
            name,
            defaults: Defaults {
                limits,
                on_unavailable: self.on_unavailable,
            },
            principal: self.principal.map(Principal::parse).transpose()?,
            // Boxed, as all that calls the SDK: its futures are deeply nested.
            connected: Box::pin(self.connection.open(self.settings.meter.clone())).await?,
            settings: self.settings,
            #[cfg(feature = "stack")]
            stack: self.stack,
            admin_budget: self.admin_budget,
            cache: self.cache,
            clock: self.clock,
            entropy: Arc::new(self.entropy),
        };
        let repository = Repository::new(setup);
        #[cfg(feature = "stack")]
        if self.ensure {
            Box::pin(repository.ensure_on_build()).await?;
        }
        if self.create_table {
            repository.create_table().await?;
        }
        #[cfg(feature = "usage")]
        if repository.inner.settings.count_usage {
            repository.count_usage().await?;
        }
        Ok(repository)
    }

    /// Refuses settings that have no meaning, before anything is opened.
    fn check(&self) -> Result<()> {
        if let Some(field) = self.misplaced {
            return Err(Error::invalid(
                field,
                "",
                "it does not apply to an embedded store; leave it out",
            ));
        }
        #[cfg(feature = "stack")]
        if self.ensure && self.stack.is_none() {
            let rule = "it needs a stack; declare one with `.stack(StackOptions::default())`";
            return Err(Error::invalid("ensure", "true", rule));
        }
        self.connection.check()?;
        if self.settings.count_usage && matches!(self.connection, Connection::Aws(_)) {
            let rule = "it applies to an embedded table only; the aggregator of a stack counts its usage";
            return Err(Error::invalid("count_usage", "true", rule));
        }
        if let ChunkScope::Resources(names) = &self.settings.chunks {
            names
                .iter()
                .try_for_each(|name| Resource::parse(name).map(drop))?;
        }
        let budgets = [
            ("time_budget", self.settings.time_budget),
            ("admin_time_budget", self.admin_budget),
        ];
        for (field, value) in budgets {
            if value.is_zero() {
                return Err(Error::invalid(field, "0", "it must be greater than zero"));
            }
        }
        let times = [
            ("settle_budget", self.settings.settle_budget),
            ("refusal_cache_ttl", self.settings.refusal_cache_ttl),
            ("config_cache_ttl", self.cache.ttl),
        ];
        for (field, value) in budgets.into_iter().chain(times) {
            check_length(field, value)?;
        }
        Ok(())
    }
}

impl IntoFuture for RateLimiterBuilder {
    type Output = Result<RateLimiter>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<RateLimiter>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.build())
    }
}
