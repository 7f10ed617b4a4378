//! How much is there right now, and how long until there is enough. Reads only.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::bucket::{
    Attributes, BucketConfig, Decoded, Demand, Evaluation, RetryAfter, TokenBucket, TtlRule,
};
use zae_limiter_schema::{EntityId, Item, LimitName, LimitSet, Resource, Timestamp, keys, whole_tokens};

use crate::config::cache::{BucketImage, Lookup};
use crate::config::resolution::Resolved;
use crate::{Error, Repository, Result};

/// The buckets that an acquire would use, as they are at one moment: the entity's, and those of the parents that it
/// counts on.
#[derive(Debug, Clone)]
pub struct Availability {
    levels: Vec<Level>,
}

#[derive(Debug, Clone)]
struct Level {
    entity: EntityId,
    token_buckets: BTreeMap<LimitName, TokenBucket>,
}

impl Availability {
    /// Whole tokens that are left of each limit, rounded down; below zero is debt. A limit that a parent has too has
    /// the smaller amount of both.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("rph", 60)?]).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rph", 15).await?.commit().await?;
    /// assert_eq!(limiter.availability("user-1", "gpt-4").await?.tokens()["rph"], 45);
    /// # Ok(()) }
    /// ```
    pub fn tokens(&self) -> BTreeMap<LimitName, i128> {
        let mut least = BTreeMap::new();
        for (name, token_bucket) in self.levels.iter().flat_map(|level| &level.token_buckets) {
            let left = whole_tokens(token_bucket.tokens);
            least
                .entry(name.clone())
                .and_modify(|least: &mut i128| *least = left.min(*least))
                .or_insert(left);
        }
        least
    }

    /// The entities whose buckets count, the entity itself first.
    ///
    /// ```
    /// use zae_limiter::{Limit, NewEntity, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("rph", 60)?]).await?;
    /// limiter.create_entity(NewEntity::new("acme")).await?;
    /// limiter.create_entity(NewEntity::new("key-1").parent("acme").cascade(true)).await?;
    /// let now = limiter.availability("key-1", "gpt-4").await?;
    /// assert_eq!(now.entities().map(|id| id.as_str()).collect::<Vec<_>>(), ["key-1", "acme"]);
    /// # Ok(()) }
    /// ```
    pub fn entities(&self) -> impl Iterator<Item = &EntityId> {
        self.levels.iter().map(|level| &level.entity)
    }

    /// How long until so much of each limit is there, at every level. Zero if it is there; nothing if it never will
    /// be, because it is more than a burst.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("rph", 60)?]).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rph", 60).await?.commit().await?;
    /// let wait = limiter.availability("user-1", "gpt-4").await?.time_until([("rph", 1)])?.unwrap();
    /// assert!(wait <= Duration::from_secs(60), "one comes back every minute");
    /// # Ok(()) }
    /// ```
    pub fn time_until<N: AsRef<str>>(
        &self,
        needed: impl IntoIterator<Item = (N, u64)>,
    ) -> Result<Option<Duration>> {
        let mut longest = Duration::ZERO;
        for (name, amount) in needed {
            let name = LimitName::parse(name)?;
            let token_buckets: Vec<&TokenBucket> = self
                .levels
                .iter()
                .filter_map(|level| level.token_buckets.get(&name))
                .collect();
            if token_buckets.is_empty() {
                let known: Vec<&str> = self.levels[0]
                    .token_buckets
                    .keys()
                    .map(LimitName::as_str)
                    .collect();
                return Err(Error::invalid(
                    "limit name",
                    name,
                    format!("the limits here are {}", known.join(", ")),
                ));
            }
            for token_bucket in token_buckets {
                match token_bucket.wait_for(0, i128::from(amount) * 1000) {
                    RetryAfter::Now => {}
                    RetryAfter::After(time) => longest = longest.max(time),
                    RetryAfter::Never => return Ok(None),
                }
            }
        }
        Ok(Some(longest))
    }
}

impl Repository {
    /// The buckets that an acquire would use, as they are now. One read, if the configuration is in memory; otherwise
    /// one for the entity and each parent that it counts on, which brings configuration and bucket together.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.set_system_defaults([Limit::per_minute("rpm", 60)?]).await?;
    /// let now = limiter.availability("user-1", "gpt-4").await?;
    /// assert_eq!(now.tokens()["rpm"], 60);
    /// assert_eq!(now.time_until([("rpm", 60)])?, Some(Duration::ZERO));
    /// assert_eq!(now.time_until([("rpm", 61)])?, None, "more than a burst is never there");
    /// # Ok(()) }
    /// ```
    pub async fn availability(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
    ) -> Result<Availability> {
        let (entity, resource) = (EntityId::parse(entity)?, Resource::parse(resource)?);
        let chain = self.chain(&entity, &resource).await?;
        if chain[0].1.resolved().limits.is_empty() {
            return Err(Error::NoLimits { entity, resource });
        }
        let unread = chain
            .iter()
            .filter(|(_, lookup)| matches!(lookup.bucket, BucketImage::NotRead));
        let wanted: Vec<_> = unread
            .map(|(entity, _)| keys::bucket(entity, &resource))
            .collect();
        let table = &self.inner.table;
        let mut found = if wanted.is_empty() {
            HashMap::new()
        } else {
            table.batch_get(wanted, true).await?
        };
        let now = self.now();
        let levels = chain.into_iter().map(|(entity, lookup)| {
            let item = match lookup.bucket {
                BucketImage::NotRead => found.remove(&keys::bucket(&entity, &resource)).map(Arc::new),
                BucketImage::Absent => None,
                BucketImage::Present(item) => Some(item),
            };
            Ok(Level {
                token_buckets: token_buckets(item.as_deref(), lookup.configs.resolved.as_ref(), now)?,
                entity,
            })
        });
        Ok(Availability {
            levels: levels.collect::<Result<_>>()?,
        })
    }

    /// Whole tokens that are left of each limit, the parents' included where the entity cascades.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().await?;
    /// limiter.set_system_defaults([Limit::per_minute("rpm", 100)?]).await?;
    /// assert_eq!(limiter.available("user-1", "gpt-4").await?["rpm"], 100);
    /// # Ok(()) }
    /// ```
    pub async fn available(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
    ) -> Result<BTreeMap<LimitName, i128>> {
        Ok(self.availability(entity, resource).await?.tokens())
    }

    /// How long until so much of each limit is there, the parents' included where the entity cascades. Nothing if it
    /// never will be.
    ///
    /// ```
    /// use zae_limiter::Limit;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = zae_limiter::RateLimiter::embedded().await?;
    /// limiter.set_system_defaults([Limit::per_minute("rpm", 60)?]).await?;
    /// let wait = limiter.time_until_available("user-1", "gpt-4", [("rpm", 10)]).await?;
    /// assert_eq!(wait, Some(std::time::Duration::ZERO));
    /// # Ok(()) }
    /// ```
    pub async fn time_until_available<N: AsRef<str>>(
        &self,
        entity: impl AsRef<str>,
        resource: impl AsRef<str>,
        needed: impl IntoIterator<Item = (N, u64)>,
    ) -> Result<Option<Duration>> {
        self.availability(entity, resource).await?.time_until(needed)
    }

    /// The entity and the parents that its acquires count on. Each hop follows the child's own cascade flag.
    async fn chain(&self, entity: &EntityId, resource: &Resource) -> Result<Vec<(EntityId, Lookup)>> {
        let mut chain = self.inner.cache.resolve_chain(entity, resource).await?;
        let repeated = (1..chain.len()).find(|at| chain[..*at].iter().any(|(seen, _)| *seen == chain[*at].0));
        chain.truncate(repeated.unwrap_or(chain.len()));
        Ok(chain)
    }
}

/// The limits as configured, with the levels of the bucket: a bucket that still has older parameters is seen as the
/// next write will make it.
fn token_buckets(
    item: Option<&Item>,
    resolved: &Resolved,
    now: Timestamp,
) -> Result<BTreeMap<LimitName, TokenBucket>> {
    let limits: LimitSet = resolved.limits.clone();
    let terms = BucketConfig::new(limits, resolved.parent.clone(), resolved.cascade, TtlRule::Never);
    let image = match item
        .map(|item| Attributes::from_item(item).decode())
        .transpose()?
    {
        Some(Decoded::Bucket(image)) => Some(image),
        Some(Decoded::Stub) | None => None,
    };
    let evaluation = match &image {
        Some(image) => Evaluation::parameters(image, &terms, now),
        None => Evaluation::create(&terms, now),
    };
    let configured = evaluation
        .limits()
        .filter(|(name, _)| terms.limits().get(name).is_some());
    Ok(configured
        .map(|(name, limit_state)| (name.clone(), limit_state.after_write(Demand::default())))
        .collect())
}
