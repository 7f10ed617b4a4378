//! `limiter.acquire(..)`: a call being put together, and what happens when it is awaited.

use std::collections::BTreeMap;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tracing::Instrument as _;
use zae_limiter_schema::{EntityId, Limit, LimitName, LimitSet, OnUnavailable, Resource, Tokens};

use super::availability::Availability;
use super::cascade;
use super::charge::{self, Charge};
use super::lease::Lease;
use super::outage;
use super::wait;
use crate::admin::limit_set;
use crate::bucket::Buckets;
use crate::bucket::Deltas;
use crate::{Error, Result};

/// A call that is about to be limited. Nothing happens until it is awaited, [run](Acquire::run) or
/// [peeked](Acquire::peek).
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # tokio_test(async {
/// let limiter = RateLimiter::embedded()
///     .default_limits([Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 10_000)?])
///     .await?;
/// let mut lease = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).consume("tpm", 500).await?;
/// lease.adjust("tpm", 120); // the answer was longer than estimated
/// lease.commit().await?;
/// # Ok(()) });
/// # fn tokio_test(f: impl Future<Output = Result<(), zae_limiter::Error>>) {
/// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f).unwrap();
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "an acquire does nothing until it is awaited"]
pub struct Acquire {
    buckets: Arc<Buckets>,
    entity: String,
    resource: String,
    amounts: Vec<(String, u64)>,
    limits: Option<Vec<Limit>>,
    policy: Option<OnUnavailable>,
    patience: Option<Duration>,
}

/// A call whose parts are known to be right.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) entity: EntityId,
    pub(super) resource: Resource,
    pub(super) amounts: Deltas,
    pub(super) limits: Option<LimitSet>,
    pub(super) policy: Option<OnUnavailable>,
}

impl Acquire {
    pub(crate) fn new(buckets: Arc<Buckets>, entity: String, resource: String) -> Self {
        Self {
            buckets,
            entity,
            resource,
            amounts: Vec::new(),
            limits: None,
            policy: None,
            patience: None,
        }
    }

    /// Requests tokens of a limit. A call takes the tokens of all its limits, or none.
    pub fn consume(mut self, limit: impl AsRef<str>, tokens: u64) -> Self {
        self.amounts.push((limit.as_ref().to_owned(), tokens));
        self
    }

    /// Uses these limits instead of the stored ones, for the entity itself; its parents keep theirs.
    ///
    /// The bucket gets these parameters, as it would by a change of configuration, and keeps its charge. Callers of
    /// one bucket should agree: each change between them costs a write.
    pub fn limits(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.limits = Some(limits.into_iter().collect());
        self
    }

    /// The policy for outages, instead of the stored one.
    pub fn on_unavailable(mut self, policy: OnUnavailable) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Waits for tokens up to this time instead of being refused at once. Calls of this limiter that wait for the same
    /// bucket, the entity's own or a parent's, are served in order of arrival; one whose turn does not come in time is
    /// refused. Dropping the future leaves the queue.
    pub fn wait_up_to(mut self, time: Duration) -> Self {
        self.patience = Some(time);
        self
    }

    /// What is left of every limit, without taking anything and without a write.
    pub async fn peek(self) -> Result<Availability> {
        let buckets = self.buckets.clone();
        let checked = self.check(true)?;
        let look = async {
            let charges = buckets.charges(&checked).await?;
            Availability::read(&charges).await
        };
        buckets.in_time(look).await
    }

    /// Runs the body with the lease: commits if it succeeds, gives everything back if it fails. What the body has
    /// made is returned even if its adjustments cannot be written: they go on in the background, and
    /// [`RateLimiter::shutdown`](crate::RateLimiter::shutdown) reports those that had to be given up. Only adjusting a
    /// limit that does not exist is an error.
    ///
    /// ```
    /// # use zae_limiter::{Error, Limit, RateLimiter};
    /// # tokio_test(async {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("tpm", 10_000)?]).await?;
    /// let words = limiter
    ///     .acquire("user-1", "gpt-4")
    ///     .consume("tpm", 500)
    ///     .run(async |lease| {
    ///         let answer = "a short answer";
    ///         lease.adjust("tpm", -400);
    ///         Ok::<_, Error>(answer.split(' ').count())
    ///     })
    ///     .await?;
    /// # assert_eq!(words, 3);
    /// # Ok(()) });
    /// # fn tokio_test(f: impl Future<Output = Result<(), zae_limiter::Error>>) {
    /// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f).unwrap();
    /// # }
    /// ```
    pub async fn run<T, E: From<Error>>(
        self,
        body: impl AsyncFnOnce(&mut Lease) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut lease = self.await?;
        match body(&mut lease).await {
            Ok(value) => match lease.commit().await {
                // A mistake in the body is its caller's to know.
                Err(error @ Error::Invalid { .. }) => Err(error.into()),
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
    fn check(self, may_ask_nothing: bool) -> Result<Checked> {
        let mut amounts: BTreeMap<LimitName, i128> = BTreeMap::new();
        for (limit, tokens) in &self.amounts {
            let amount = Tokens::new(*tokens)
                .map_err(|error| Error::invalid("amount", tokens.to_string(), error.to_string()))?;
            *amounts.entry(LimitName::from_stored(limit)?).or_default() += amount.millis();
        }
        amounts.retain(|_, amount| *amount > 0);
        if amounts.is_empty() && !may_ask_nothing {
            let rule = "a call must consume at least one token of at least one limit";
            return Err(Error::invalid("consume", "nothing", rule));
        }
        let limits = self
            .limits
            .map(|limits| limit_set("limits", limits))
            .transpose()?;
        if limits.as_ref().is_some_and(LimitSet::is_empty) {
            return Err(Error::invalid("limits", "", "at least one is needed"));
        }
        Ok(Checked {
            entity: EntityId::parse(&self.entity)?,
            resource: Resource::parse(&self.resource)?,
            amounts: amounts.into_iter().collect(),
            limits,
            policy: self.policy,
        })
    }

    async fn acquire(self) -> Result<Lease> {
        let buckets = self.buckets.clone();
        let patience = self.patience;
        let checked = self.check(false)?;
        let _inside = buckets.enter()?;
        let metrics = &buckets.shared().metrics;
        let timer = metrics.timer(&*buckets.shared().clock);
        let result = match patience {
            None => buckets.acquire_now(&checked).await,
            Some(patience) => wait::acquire_within(&buckets, &checked, patience).await,
        };
        let counters = buckets.shared().counters();
        let result = match result {
            Ok(lease) => {
                counters.granted.fetch_add(1, Ordering::Relaxed);
                Ok(lease)
            }
            Err(error) if error.is_unavailable() => {
                counters.unavailable.fetch_add(1, Ordering::Relaxed);
                let stored = || {
                    buckets
                        .shared()
                        .cache
                        .policy(&checked.entity, &checked.resource)
                        .0
                };
                match checked.policy.unwrap_or_else(stored) {
                    OnUnavailable::Allow => {
                        let allowed = buckets.clone().allow(&checked, &error);
                        allowed.inspect_err(|error| counters.note(error))
                    }
                    OnUnavailable::Block => Err(error),
                }
            }
            Err(error) => {
                counters.note(&error);
                Err(error)
            }
        };
        if let Err(Error::RateLimitExceeded(refusal)) = &result {
            tracing::debug!(%refusal, "a limit is exceeded");
            buckets.shared().count_refusal(&checked.entity, &checked.resource);
        }
        metrics.acquired(&buckets, &checked.resource, &result, timer);
        result
    }
}

impl Buckets {
    /// The table cannot be reached, and the policy is to allow: by the process's own part of the limits, if it has one.
    fn allow(self: Arc<Self>, checked: &Checked, why: &Error) -> Result<Lease> {
        let Some(share) = &self.shared().share else {
            return Ok(Lease::uncounted(self, checked));
        };
        let own = outage::take_share(self.shared(), share, checked, why)?;
        Ok(Lease::local(self, checked, own))
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

impl Buckets {
    pub(super) async fn charges(&self, checked: &Checked) -> Result<Vec<Charge>> {
        charge::charges(
            self,
            &checked.entity,
            &checked.resource,
            &checked.amounts,
            checked.limits.as_ref(),
        )
        .await
    }

    /// The result, or that there was none within the time budget; at once, while the circuit breaker is open.
    pub(super) async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let shared = self.shared();
        let started = shared.clock.elapsed();
        // Before there is a timer: while the breaker is open nothing is waited for.
        shared.check_breaker().await?;
        let spent = shared.clock.elapsed().saturating_sub(started);
        let left = shared.settings.time_budget.saturating_sub(spent);
        let late = |_| Err(shared.unavailable("no answer within the time budget"));
        let result = tokio::time::timeout(left, work).await.unwrap_or_else(late);
        if result.as_ref().is_err_and(Error::is_unavailable) {
            shared.suspect(started);
        }
        result
    }

    /// One try, within the time budget.
    pub(super) async fn acquire_now(self: &Arc<Self>, checked: &Checked) -> Result<Lease> {
        self.check_open()?;
        if let Some(lease) = self.spend_while_unavailable(checked) {
            return Ok(lease);
        }
        let admitted = async {
            let charges = self.charges(checked).await?;
            let grants = cascade::admit(&charges).await?;
            Ok((charges, grants))
        };
        let (charges, grants) = self.in_time(admitted).await?;
        Ok(Lease::counted(self.clone(), checked, charges, grants))
    }

    /// While the circuit breaker is open, tokens in hand are spent: they are paid for.
    fn spend_while_unavailable(self: &Arc<Self>, checked: &Checked) -> Option<Lease> {
        if checked.limits.is_some() || self.shared().breaker_error().is_none() {
            return None;
        }
        let chain = self
            .shared()
            .cache
            .remembered_chain(&checked.entity, &checked.resource)?;
        let charges = charge::of_chain(self, chain, &checked.resource, &checked.amounts, None).ok()?;
        let grant = |charge: &Charge| match charge.amounts[..] {
            [] => Some(None),
            _ => charge.queue.spend(&charge.amounts, &charge.config).map(Some),
        };
        let grants = charges.iter().map(grant).collect::<Option<_>>()?;
        Some(Lease::counted(self.clone(), checked, charges, grants))
    }
}
