//! `limiter.acquire(..)`: a call being put together, and what happens when it is awaited.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tracing::Instrument as _;
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::money::Estimate;
use zae_limiter_schema::{Limit, Mode, OnUnavailable};

use super::admission::Admission;
use super::availability::Availability;
use super::charge::charges;
use super::lease::Lease;
use super::part::{Drafts, Part, Parts};
use super::{outage, wait};
use crate::bucket::Buckets;
use crate::config::cache::ConfigCache;
use crate::error::Invalid;
use crate::metrics::Timer;
use crate::status::LimitStatus;
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
    drafts: Drafts,
    policy: Option<OnUnavailable>,
    patience: Option<Duration>,
}

/// A call whose parts are known to be right. It goes from here to the buckets and becomes part of the lease.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// One for each resource.
    pub(super) parts: Parts,
    policy: Option<OnUnavailable>,
    /// How long it waits for tokens.
    patience: Option<Duration>,
}

impl Call {
    /// The entity and the first resource.
    pub(super) fn key(&self) -> &BucketKey {
        &self.parts[0].key
    }

    /// What happens while the table is unavailable: as the call says, else as it is stored. If one of several resources
    /// blocks, the call is blocked.
    pub(super) fn policy(&self, cache: &ConfigCache) -> OnUnavailable {
        let blocks =
            |part: &Part| cache.policy(&part.key.entity, &part.key.resource).0 == OnUnavailable::Block;
        match self.policy {
            Some(policy) => policy,
            None if self.parts.iter().any(blocks) => OnUnavailable::Block,
            None => OnUnavailable::Allow,
        }
    }

    /// The entity's own buckets on the resources whose limits refused, or would have.
    fn on_resources_of<'a>(
        &'a self,
        limits: impl Iterator<Item = &'a LimitStatus> + Clone,
    ) -> impl Iterator<Item = &'a BucketKey> {
        let concerned = move |key: &&BucketKey| {
            let mut limits = limits.clone();
            self.parts.len() == 1 || limits.any(|status| status.resource == key.resource)
        };
        self.parts.iter().map(|part| &part.key).filter(concerned)
    }
}

impl Acquire {
    pub(crate) fn new(buckets: Arc<Buckets>, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Self {
        Self::of(buckets, Drafts::new(entity.as_ref(), resource.as_ref()))
    }

    /// A call whose parts are put together already.
    pub(crate) fn of(buckets: Arc<Buckets>, drafts: Drafts) -> Self {
        Self {
            buckets,
            drafts,
            policy: None,
            patience: None,
        }
    }

    /// Requests tokens of a limit. A call takes the tokens of all its limits, or none.
    pub fn consume(mut self, limit: impl AsRef<str>, tokens: u64) -> Self {
        self.drafts.consume(limit.as_ref(), tokens);
        self
    }

    /// Charges another resource of the same entity in the same call, such as a budget that several models share. What
    /// follows ([`consume`](Self::consume), [`consume_estimate`](Self::consume_estimate), [`limits`](Self::limits),
    /// [`cascade`](Self::cascade)) is about this resource. The call takes the tokens of all its resources, or none; it costs
    /// one write for each bucket. At most [`MAX_RESOURCES`](crate::MAX_RESOURCES), each named once.
    ///
    /// ```
    /// use zae_limiter::{Error, Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().await?;
    /// let repository = limiter.repository();
    /// repository.set_resource_defaults("gpt-4", [Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 10_000)?]).await?;
    /// repository.set_resource_defaults("budget", [Limit::per_day("credits", 20)?]).await?;
    ///
    /// let call = || limiter.acquire("user-1", "gpt-4").consume("rpm", 1).consume("tpm", 500).and("budget").consume("credits", 12);
    /// let mut lease = call().await?;
    /// lease.adjust("tpm", 120); // only the model has this limit
    /// lease.on("budget").adjust("credits", 3);
    /// lease.commit().await?;
    ///
    /// let Err(Error::Refused(refusal)) = call().await else { panic!("5 are left of the budget") };
    /// let refused: Vec<_> = refusal.refused_limits().map(|status| status.resource.as_str()).collect();
    /// assert_eq!(refused, ["budget"], "and nothing is taken of the model's limits");
    /// # Ok(()) }
    /// ```
    pub fn and(mut self, resource: impl AsRef<str>) -> Self {
        self.drafts.begin(resource.as_ref());
        self
    }

    /// Whether the parent of the entity is charged too, for this resource. Unless set, the entity's own record says so for
    /// all resources; what is above the parent is for the parent's record to say. All callers of a resource should agree.
    ///
    /// ```
    /// use zae_limiter::{Limit, NewEntity, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_day("rpd", 100)?]).await?;
    /// limiter.repository().create_entity(NewEntity::new("org-1")).await?;
    /// limiter.repository().create_entity(NewEntity::new("user-1").parent("org-1").cascade(true)).await?;
    /// // The model's limit counts on the organization, the budget does not.
    /// let call = limiter.acquire("user-1", "gpt-4").consume("rpd", 1).and("budget").cascade(false).consume("rpd", 12);
    /// call.commit().await?;
    /// assert_eq!(limiter.acquire("org-1", "gpt-4").peek().await?.tokens("rpd"), Some(99));
    /// assert_eq!(limiter.acquire("org-1", "budget").peek().await?.tokens("rpd"), Some(100));
    /// # Ok(()) }
    /// ```
    pub fn cascade(mut self, cascade: bool) -> Self {
        self.drafts.current().cascade = Some(cascade);
        self
    }

    /// Requests the tokens and the money that the call will use by the [prices](crate::money::Prices) of the call's first
    /// resource: its input, and the output that the request asks for, else the default of the prices, else the model's
    /// maximum. Of limits that the entity does not have on this resource nothing is taken. [`Lease::commit_usage`] corrects it.
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
        self.drafts.current().estimate = Some(*estimate);
        self
    }

    /// Uses these limits instead of the stored ones, for the entity itself on this resource; its parents keep theirs.
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
        self.drafts.current().limits = Some(limits.into_iter().collect());
        self
    }

    /// The policy for outages, instead of the stored one: for the whole call.
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
            let charges = charges(&buckets, &call.parts).await?;
            Availability::read(&charges).await
        };
        buckets.in_time(call.key(), read).await
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
    fn check(self, may_take_nothing: bool) -> Result<Call> {
        Ok(Call {
            parts: self.drafts.check(may_take_nothing)?,
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
        buckets.count(&call, &result, timer);
        result
    }
}

impl Buckets {
    /// The table is unavailable: the policy decides, unless the limits are not enforced.
    fn decide_without_table(self: &Arc<Self>, call: &Call, error: Error) -> Result<Lease> {
        let shared = self.shared();
        let mode = outage::known_mode(self, &call.parts)?;
        if mode == Mode::Bypass {
            return Ok(Lease::uncounted(self.clone(), call, Admission::Bypassed));
        }
        shared.counters().unavailable.fetch_add(1, Ordering::Relaxed);
        let uncounted = || Lease::uncounted(self.clone(), call, Admission::AllowedWhileUnavailable);
        if mode == Mode::Observe {
            return Ok(uncounted());
        }
        match call.policy(&shared.cache) {
            OnUnavailable::Block => Err(error),
            OnUnavailable::Allow => match &shared.fraction {
                None => Ok(uncounted()),
                Some(fraction) => {
                    let local = outage::take_locally(self, fraction, &call.parts, &error)?;
                    Ok(Lease::local(self.clone(), call, local))
                }
            },
        }
    }

    /// Counts and logs what became of a call.
    fn count(&self, call: &Call, result: &Result<Lease>, timer: Timer) {
        let shared = self.shared();
        match result {
            Ok(lease) if lease.admission() == Admission::Counted => {
                shared.counters().granted.fetch_add(1, Ordering::Relaxed);
            }
            Ok(lease) if lease.admission() == Admission::Observed => {
                shared.counters().observed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!("an acquire would have been refused");
                let observed = lease.observed_limits();
                for key in call.on_resources_of(observed.iter()) {
                    shared.count_observed(key);
                }
            }
            Err(Error::Disabled { .. }) => {
                shared.counters().disabled.fetch_add(1, Ordering::Relaxed);
            }
            Err(Error::Refused(refusal)) => {
                shared.counters().refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%refusal, "an acquire was refused");
                for key in call.on_resources_of(refusal.statuses().iter().filter(|status| status.refused)) {
                    shared.count_refusal(key);
                }
            }
            Ok(_) | Err(_) => {}
        }
        let resource = &call.key().resource;
        shared.metrics.acquired(self, resource, result.as_ref(), timer);
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Lease>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Lease>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let (entity, resource) = self.drafts.names();
        let span = tracing::debug_span!("acquire", entity, resource);
        Box::pin(self.acquire().instrument(span))
    }
}
