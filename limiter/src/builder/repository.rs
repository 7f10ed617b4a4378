//! What concerns stored configuration, versions and audit events.

use std::time::Duration;

use zae_limiter_dynamo::CapacityMeter;

use super::RateLimiterBuilder;

impl RateLimiterBuilder {
    /// The principal that audit events name. The default is the ARN of the AWS credentials.
    ///
    /// ```
    /// use zae_limiter::{NewEntity, PageRequest, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let repository = RateLimiter::embedded().principal("billing-job").build_repository().await?;
    /// repository.create_entity(NewEntity::new("user-1")).await?;
    /// let events = repository.list_audit_events(&"user-1".parse()?, &PageRequest::new(1)).await?;
    /// assert_eq!(events.items[0].principal.as_deref(), Some("billing-job"));
    /// # Ok(()) }
    /// ```
    pub fn principal(mut self, principal: impl AsRef<str>) -> Self {
        self.principal = Some(principal.as_ref().to_owned());
        self
    }

    /// Counts calls and consumed capacity. Without a meter, DynamoDB is not asked to report capacity.
    ///
    /// ```
    /// use zae_limiter::{CapacityMeter, Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let meter = CapacityMeter::new();
    /// let limits = [Limit::per_minute("rpm", 100)?];
    /// let limiter = RateLimiter::embedded().default_limits(limits).meter(meter.clone()).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?.commit().await?;
    /// assert!(meter.consumed().write_units >= 1.0);
    /// # Ok(()) }
    /// ```
    pub fn meter(mut self, meter: CapacityMeter) -> Self {
        self.settings.meter = Some(meter);
        self
    }

    /// Whether an incompatible version of the table is an error (the default) or a warning. The system configuration
    /// overrides it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// // Warns about a table of another version, and goes on.
    /// let limiter = zae_limiter::RateLimiter::embedded().strict_version(false).await?;
    /// # Ok(()) }
    /// ```
    pub fn strict_version(mut self, strict: bool) -> Self {
        self.settings.strict_version = strict;
        self
    }

    /// How long a call of the [`Repository`](crate::Repository) may take, retries included. The default is ten seconds.
    pub fn admin_time_budget(mut self, budget: Duration) -> Self {
        self.admin_budget = budget;
        self
    }

    /// How long configuration is cached. The default is 60 seconds; zero turns the cache off.
    pub fn config_cache_ttl(mut self, ttl: Duration) -> Self {
        self.cache.ttl = ttl;
        self
    }

    /// How many pairs of entity and resource the configuration cache holds. The default is 200,000; each
    /// takes about a hundred bytes where entities have no configuration of their own or share it.
    pub fn config_cache_entries(mut self, entries: usize) -> Self {
        self.cache.entries = entries;
        self
    }
}
