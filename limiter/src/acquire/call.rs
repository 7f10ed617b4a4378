//! `limiter.acquire(..)`: a call being put together, and what happens when it is awaited.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::Instrument as _;
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::money::Estimate;
use zae_limiter_schema::{
    EntityId, Limit, LimitName, LimitSet, Mode, OnUnavailable, Resource, Tokens, TooManyTokens,
};

use super::admission::Admission;
use super::availability::Availability;
use super::lease::Lease;
use super::outage;
use super::wait;
use crate::admin::limit_set;
use crate::bucket::{Amounts, Buckets, add};
use crate::error::Invalid;
use crate::metrics::Timer;
use crate::{Error, Result};

/// A call that is about to be limited. Nothing happens until it is awaited, [committed](Acquire::commit),
/// [run](Acquire::run) or [peeked](Acquire::peek).
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let limiter = RateLimiter::embedded()
///     .default_limits([Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 10_000)?])
///     .await?;
/// // The cost is known.
/// limiter.acquire("user-1", "gpt-4").consume("rpm", 1).commit().await?;
///
/// // The cost is an estimate.
/// let mut lease = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).consume("tpm", 500).await?;
/// lease.adjust("tpm", 120); // the response was longer
/// lease.commit().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "an acquire does nothing until it is awaited"]
pub struct Acquire {
    buckets: Arc<Buckets>,
    entity: String,
    resource: String,
    amounts: Amounts,
    estimate: Option<Estimate>,
    /// The first mistake in what is consumed.
    mistake: Option<Error>,
    limits: Option<Vec<Limit>>,
    policy: Option<OnUnavailable>,
    patience: Option<Duration>,
}

/// A call whose parts are known to be right. It goes from here to the buckets and becomes part of the lease.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) key: BucketKey,
    /// By limit, each above zero.
    pub(super) amounts: Amounts,
    /// What it will use, which the prices of the resource turn into amounts.
    pub(super) estimate: Option<Estimate>,
    /// Limits that it came with, instead of the stored ones.
    pub(super) limits: Option<LimitSet>,
    pub(super) policy: Option<OnUnavailable>,
    /// How long it waits for tokens.
    pub(super) patience: Option<Duration>,
}

impl Acquire {
    pub(crate) fn new(buckets: Arc<Buckets>, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Self {
        Self {
            buckets,
            entity: entity.as_ref().to_owned(),
            resource: resource.as_ref().to_owned(),
            amounts: Amounts::new(),
            estimate: None,
            mistake: None,
            limits: None,
            policy: None,
            patience: None,
        }
    }

    /// Requests tokens of a limit. A call takes the tokens of all its limits, or none.
    pub fn consume(mut self, limit: impl AsRef<str>, tokens: u64) -> Self {
        if let Err(error) = self.add(limit.as_ref(), tokens) {
            self.mistake.get_or_insert(error);
        }
        self
    }

    fn add(&mut self, limit: &str, tokens: u64) -> Result<()> {
        let invalid = |error: TooManyTokens| Error::invalid("amount", tokens.to_string(), error.to_string());
        let amount = Tokens::new(tokens).map_err(invalid)?.millis();
        let limit = LimitName::from_stored(limit)?;
        if amount > 0 {
            add(&mut self.amounts, &limit, amount);
        }
        Ok(())
    }

    /// Requests the tokens and the money that the call will use by the [prices](crate::money::Prices) of the resource: its
    /// input, and the output that the request asks for, else the default of the prices, else the model's maximum. Of limits
    /// that the entity does not have nothing is taken. [`Lease::commit_usage`] corrects it.
    ///
    /// ```
    /// use zae_limiter::money::{Estimate, Prices, Usage};
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Ten dollars an hour.
    /// let limits = [Limit::per_minute("tpm", 100_000)?, Limit::per_hour("usd", 10_000_000)?];
    /// let limiter = RateLimiter::embedded().default_limits(limits).await?;
    /// let prices = Prices::new("$2.50".parse()?, "$10".parse()?);
    /// limiter.repository().set_prices("gpt-4o", prices).await?;
    ///
    /// let estimate = Estimate::new(2_000).max_output(500);
    /// let lease = limiter.acquire("user-1", "gpt-4o").consume_estimate(&estimate).await?;
    /// assert_eq!(lease.consumed()["usd"], 10_000, "one cent");
    /// lease.commit_usage(&Usage::new(2_000, 120)).await?;
    /// # Ok(()) }
    /// ```
    pub fn consume_estimate(mut self, estimate: &Estimate) -> Self {
        self.estimate = Some(*estimate);
        self
    }

    /// Uses these limits instead of the stored ones, for the entity itself; its parents keep theirs.
    ///
    /// The bucket gets these parameters, as it would by a change of configuration, and keeps its charge. Callers of
    /// one bucket should agree: each change between them costs a write.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().await?;
    /// let trial = [Limit::per_hour("jobs", 3)?];
    /// let lease = limiter.acquire("user-1", "reports").limits(trial).consume("jobs", 1).await?;
    /// # lease.commit().await?;
    /// # Ok(()) }
    /// ```
    pub fn limits(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.limits = Some(limits.into_iter().collect());
        self
    }

    /// The policy for outages, instead of the stored one.
    ///
    /// ```
    /// use zae_limiter::{Limit, OnUnavailable, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// // This call matters more than its limit: it goes ahead if the table cannot be reached.
    /// let call = limiter.acquire("user-1", "login").consume("rpm", 1).on_unavailable(OnUnavailable::Allow);
    /// call.await?.commit().await?;
    /// # Ok(()) }
    /// ```
    pub fn on_unavailable(mut self, policy: OnUnavailable) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Waits for tokens up to this time instead of being refused at once. Calls of this limiter that wait for the same
    /// bucket, the entity's own or a parent's, are served in order of arrival; one whose turn does not come in time is
    /// refused. Dropping the future leaves the queue.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_second("rps", 100)?]).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rps", 100).await?.commit().await?; // takes the whole burst
    /// let call = limiter.acquire("user-1", "gpt-4").consume("rps", 1);
    /// let lease = call.wait_up_to(Duration::from_secs(5)).await?; // admitted 10 ms later
    /// # lease.commit().await?;
    /// # Ok(()) }
    /// ```
    pub fn wait_up_to(mut self, time: Duration) -> Self {
        self.patience = Some(time);
        self
    }

    /// What is left of every limit, without taking anything and without a write.
    pub async fn peek(self) -> Result<Availability> {
        let buckets = self.buckets.clone();
        let call = self.check(true)?;
        let read = async {
            let charges = buckets.charges(&call).await?;
            Availability::read(&charges).await
        };
        buckets.in_time(&call.key, read).await
    }

    /// Takes the tokens and keeps them: for a call whose cost is known. The same as `.await?.commit().await`.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("rph", 100)?]).await?;
    /// limiter.acquire("user-1", "gpt-4").consume("rph", 1).commit().await?;
    /// assert_eq!(limiter.acquire("user-1", "gpt-4").peek().await?.tokens("rph"), Some(99));
    /// # Ok(()) }
    /// ```
    pub async fn commit(self) -> Result<()> {
        self.await?.commit().await
    }

    /// Runs the body with the lease: commits if it succeeds, gives everything back if it fails. What the body has
    /// made is returned even if its adjustments cannot be written: they go on in the background, and
    /// [`RateLimiter::shutdown`](crate::RateLimiter::shutdown) reports those that had to be given up. Only adjusting a
    /// limit that does not exist is an error.
    ///
    /// ```
    /// # use zae_limiter::{Error, Limit, RateLimiter};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("tpm", 10_000)?]).await?;
    /// let words = limiter
    ///     .acquire("user-1", "gpt-4")
    ///     .consume("tpm", 500)
    ///     .run(async |lease| {
    ///         let response = "a short response";
    ///         lease.adjust("tpm", -400);
    ///         Ok::<_, Error>(response.split(' ').count())
    ///     })
    ///     .await?;
    /// # assert_eq!(words, 3);
    /// # Ok(()) }
    /// ```
    pub async fn run<T, E: From<Error>>(
        self,
        body: impl AsyncFnOnce(&mut Lease) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut lease = self.await?;
        match body(&mut lease).await {
            Ok(value) => match lease.commit().await {
                // A mistake in the body is its caller's to know.
                Err(error @ Error::Invalid(Invalid::Argument { .. })) => Err(error.into()),
                // The call was made and is paid for. What is not written is not lost, or is reported.
                _ => Ok(value),
            },
            Err(error) => {
                // What cannot be given back now goes on in the background; the body's error is the news.
                let _ = lease.rollback().await;
                Err(error)
            }
        }
    }

    /// Every mistake that can be seen without the table.
    fn check(self, may_consume_nothing: bool) -> Result<Call> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        if self.amounts.is_empty() && self.estimate.is_none() && !may_consume_nothing {
            return Err(Error::invalid(
                "consume",
                "nothing",
                "call `consume` at least once",
            ));
        }
        let limits = self
            .limits
            .map(|limits| limit_set("limits", limits))
            .transpose()?;
        if limits.as_ref().is_some_and(LimitSet::is_empty) {
            return Err(Error::invalid("limits", "", "at least one is needed"));
        }
        Ok(Call {
            key: BucketKey {
                entity: EntityId::parse(&self.entity)?,
                resource: Resource::parse(&self.resource)?,
            },
            amounts: self.amounts,
            estimate: self.estimate,
            limits,
            policy: self.policy,
            patience: self.patience,
        })
    }

    async fn acquire(self) -> Result<Lease> {
        let buckets = self.buckets.clone();
        let call = self.check(false)?;
        let _inside = buckets.enter()?;
        let timer = buckets.shared().metrics.timer(&*buckets.shared().clock);
        let result = match call.patience {
            None => buckets.acquire_now(&call).await,
            Some(patience) => wait::acquire_within(&buckets, &call, patience).await,
        };
        let result = match result {
            Err(error) if error.is_unavailable() => buckets.decide_without_table(&call, error),
            result => result,
        };
        buckets.count(&call.key, &result, timer);
        result
    }
}

impl Buckets {
    /// The table is unavailable: the policy decides, unless the limits are not enforced.
    fn decide_without_table(self: &Arc<Self>, call: &Call, error: Error) -> Result<Lease> {
        let shared = self.shared();
        let mode = outage::known_mode(self, &call.key)?;
        if mode == Mode::Bypass {
            return Ok(Lease::uncounted(self.clone(), call, Admission::Bypassed));
        }
        shared.counters().unavailable.fetch_add(1, Ordering::Relaxed);
        let uncounted = || Lease::uncounted(self.clone(), call, Admission::AllowedWhileUnavailable);
        if mode == Mode::Observe {
            return Ok(uncounted());
        }
        let stored = || shared.cache.policy(&call.key.entity, &call.key.resource).0;
        match call.policy.unwrap_or_else(stored) {
            OnUnavailable::Block => Err(error),
            OnUnavailable::Allow => match &shared.fraction {
                None => Ok(uncounted()),
                Some(fraction) => {
                    let local = outage::take_locally(self, fraction, call, &error)?;
                    Ok(Lease::local(self.clone(), call, local))
                }
            },
        }
    }

    /// Counts and logs what became of a call.
    fn count(&self, key: &BucketKey, result: &Result<Lease>, timer: Timer) {
        let shared = self.shared();
        match result {
            Ok(lease) if lease.admission() == Admission::Counted => {
                shared.counters().granted.fetch_add(1, Ordering::Relaxed);
            }
            Ok(lease) if lease.admission() == Admission::Observed => {
                shared.counters().observed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!("an acquire would have been refused");
                shared.count_observed(key);
            }
            Err(Error::Disabled { .. }) => {
                shared.counters().disabled.fetch_add(1, Ordering::Relaxed);
            }
            Err(Error::Refused(refusal)) => {
                shared.counters().refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%refusal, "an acquire was refused");
                shared.count_refusal(key);
            }
            Ok(_) | Err(_) => {}
        }
        shared
            .metrics
            .acquired(self, &key.resource, result.as_ref(), timer);
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Lease>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Lease>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let (entity, resource) = (self.entity.as_str(), self.resource.as_str());
        let span = tracing::debug_span!("acquire", entity, resource);
        Box::pin(self.acquire().instrument(span))
    }
}
