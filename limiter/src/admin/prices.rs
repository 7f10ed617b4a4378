//! The prices of a resource, which are part of its configuration.

use zae_limiter_schema::money::Prices;
use zae_limiter_schema::{ConfigLevel, ConfigRecord, Resource};

use crate::{ConfigChange, Repository, Result};

impl Repository {
    /// Sets the prices of a resource, in place of all that it has. Its limits stay. Every process uses them after at most
    /// the time to live of its configuration cache.
    ///
    /// Prices for every resource without prices of its own are set at the system level:
    /// [`set_config`](Self::set_config) with [`ConfigChange::prices`].
    ///
    /// ```
    /// use zae_limiter::money::Prices;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let repository = zae_limiter::RateLimiter::embedded().build_repository().await?;
    /// // Per million tokens.
    /// let prices = Prices::new("$2.50".parse()?, "$10".parse()?);
    /// repository.set_prices("gpt-4o", prices.clone()).await?;
    /// assert_eq!(repository.get_prices("gpt-4o").await?, Some(prices));
    /// assert!(repository.delete_prices("gpt-4o").await?);
    /// assert_eq!(repository.get_prices("gpt-4o").await?, None);
    /// # Ok(()) }
    /// ```
    pub async fn set_prices(&self, resource: impl AsRef<str>, prices: Prices) -> Result<ConfigRecord> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        self.set_config(&level, ConfigChange::new().prices(prices)).await
    }

    /// The prices stored for a resource. None if there are none; those of the system apply then, if it has any.
    pub async fn get_prices(&self, resource: impl AsRef<str>) -> Result<Option<Prices>> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        let config = self.get_config(&level).await?;
        Ok(config.and_then(|config| config.prices))
    }

    /// The prices that apply to a resource: its own, else those of the system. As stored, not from the cache.
    pub async fn resolve_prices(&self, resource: impl AsRef<str>) -> Result<Option<Prices>> {
        let own = self.get_prices(resource).await?;
        if own.is_some() {
            return Ok(own);
        }
        let system = self.get_config(&ConfigLevel::System).await?;
        Ok(system.and_then(|system| system.prices))
    }

    /// Deletes the prices of a resource; returns false if there were none. Its limits stay.
    pub async fn delete_prices(&self, resource: impl AsRef<str>) -> Result<bool> {
        let level = ConfigLevel::Resource(Resource::parse(resource)?);
        let Some(stored) = self.get_config(&level).await? else {
            return Ok(false);
        };
        if stored.prices.is_none() {
            return Ok(false);
        }
        if stored.limits.is_empty() && stored.on_unavailable.is_none() && stored.unknown.is_empty() {
            // Nothing else is stored at the level.
            return self.delete_config_if_unchanged(&stored).await;
        }
        let change = ConfigChange::new().without_prices();
        self.set_config_if_unchanged(&level, Some(&stored), change)
            .await?;
        Ok(true)
    }
}
