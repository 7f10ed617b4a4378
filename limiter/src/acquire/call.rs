//! `limiter.acquire(..)`: a call being put together, and what happens when it is awaited.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use zae_limiter_schema::{
    EntityId, Limit, LimitName, LimitSet, OnUnavailable, Resource, Tokens, TooManyTokens,
};

use super::availability::Availability;
use super::future::AcquireFuture;
use super::lease::{Admission, Lease};
use super::outage;
use super::wait;
use crate::admin::limit_set;
use crate::bucket::{Buckets, Deltas, KnownCall};
use crate::error::Invalid;
use crate::metrics::Timer;
use crate::{Error, Result};

/// A call that is about to be limited. Nothing happens until it is awaited, [run](Acquire::run) or
/// [peeked](Acquire::peek).
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let limiter = RateLimiter::embedded()
///     .default_limits([Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 10_000)?])
///     .await?;
/// let mut lease = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).consume("tpm", 500).await?;
/// lease.adjust("tpm", 120); // the answer was longer than estimated
/// lease.commit().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "an acquire does nothing until it is awaited"]
pub struct Acquire {
    pub(super) buckets: Arc<Buckets>,
    pub(super) target: Target,
    /// By limit, in order of name, each above zero.
    pub(super) amounts: Deltas,
    /// Something is consumed that the call which is known had no limit for.
    pub(super) asks_unknown_limit: bool,
    pub(super) policy: Option<OnUnavailable>,
    /// In a box, since a call is moved whenever something is added to it.
    pub(super) extras: Option<Box<Extras>>,
}

/// What few calls come with.
#[derive(Debug, Clone, Default)]
pub(super) struct Extras {
    /// The first mistake in what is consumed.
    mistake: Option<Error>,
    limits: Option<Vec<Limit>>,
    patience: Option<Duration>,
}

/// Who calls for what.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// The same was called before.
    Known(Arc<KnownCall>),
    /// Names that are still to be checked.
    Named(Box<Names>),
}

/// The names of a call as its caller gave them.
#[derive(Debug, Clone)]
pub(super) struct Names {
    entity: String,
    resource: String,
}

impl Target {
    /// The entity and the resource.
    pub(super) fn names(&self) -> (&str, &str) {
        match self {
            Self::Known(known) => (known.key.entity.as_str(), known.key.resource.as_str()),
            Self::Named(names) => (&names.entity, &names.resource),
        }
    }

    pub(super) fn known(&self) -> Option<&Arc<KnownCall>> {
        match self {
            Self::Known(known) => Some(known),
            Self::Named(_) => None,
        }
    }
}

/// A call whose parts are known to be right.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) entity: EntityId,
    pub(super) resource: Resource,
    pub(super) amounts: Deltas,
    pub(super) limits: Option<LimitSet>,
    pub(super) policy: Option<OnUnavailable>,
    /// What the last call has found out, unless limits came with this one.
    pub(super) known: Option<Arc<KnownCall>>,
}

impl Acquire {
    pub(crate) fn new(buckets: Arc<Buckets>, entity: impl AsRef<str>, resource: impl AsRef<str>) -> Self {
        let (entity, resource) = (entity.as_ref(), resource.as_ref());
        let known = buckets.known_calls().get(entity, resource);
        let named = || {
            Target::Named(Box::new(Names {
                entity: entity.to_owned(),
                resource: resource.to_owned(),
            }))
        };
        Self {
            target: known.map_or_else(named, Target::Known),
            buckets,
            amounts: Deltas::new(),
            asks_unknown_limit: false,
            policy: None,
            extras: None,
        }
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// Requests tokens of a limit. A call takes the tokens of all its limits, or none.
    pub fn consume(mut self, limit: impl AsRef<str>, tokens: u64) -> Self {
        if let Err(error) = self.add(limit.as_ref(), tokens) {
            self.extras().mistake.get_or_insert(error);
        }
        self
    }

    fn add(&mut self, limit: &str, tokens: u64) -> Result<()> {
        let invalid = |error: TooManyTokens| Error::invalid("amount", tokens.to_string(), error.to_string());
        let amount = Tokens::new(tokens).map_err(invalid)?.millis();
        let known = self.target.known();
        let limit = if let Some(limit) = known.and_then(|known| known.config.limits().named(limit)) {
            limit.name().clone()
        } else {
            self.asks_unknown_limit = true;
            LimitName::from_stored(limit)?
        };
        if amount > 0 {
            match self.amounts.binary_search_by(|(name, _)| name.cmp(&limit)) {
                Ok(at) => self.amounts[at].1 += amount,
                Err(at) => self.amounts.insert(at, (limit, amount)),
            }
        }
        Ok(())
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
        self.extras().limits = Some(limits.into_iter().collect());
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
        self.extras().patience = Some(time);
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
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
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
    fn check(self, may_ask_nothing: bool) -> Result<Checked> {
        let extras = self.extras.map_or_else(Extras::default, |extras| *extras);
        if let Some(mistake) = extras.mistake {
            return Err(mistake);
        }
        if self.amounts.is_empty() && !may_ask_nothing {
            let rule = "a call must consume at least one token of at least one limit";
            return Err(Error::invalid("consume", "nothing", rule));
        }
        let limits = extras
            .limits
            .map(|limits| limit_set("limits", limits))
            .transpose()?;
        if limits.as_ref().is_some_and(LimitSet::is_empty) {
            return Err(Error::invalid("limits", "", "at least one is needed"));
        }
        let (entity, resource, known) = match self.target {
            Target::Known(known) => (known.key.entity.clone(), known.key.resource.clone(), Some(known)),
            Target::Named(names) => (
                EntityId::parse(&names.entity)?,
                Resource::parse(&names.resource)?,
                None,
            ),
        };
        Ok(Checked {
            entity,
            resource,
            amounts: self.amounts,
            known: known.filter(|_| limits.is_none()),
            limits,
            policy: self.policy,
        })
    }

    pub(super) async fn acquire(self) -> Result<Lease> {
        let buckets = self.buckets.clone();
        let patience = self.extras.as_ref().and_then(|extras| extras.patience);
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
                    OnUnavailable::Allow => buckets.clone().allow(&checked, &error),
                    OnUnavailable::Block => Err(error),
                }
            }
            result => result,
        };
        buckets.count(&checked.entity, &checked.resource, &result, timer);
        result
    }
}

impl Buckets {
    /// Counts and logs what became of a call.
    pub(super) fn count(&self, entity: &EntityId, resource: &Resource, result: &Result<Lease>, timer: Timer) {
        let shared = self.shared();
        match result {
            Ok(lease) if lease.admission() == Admission::Counted => {
                shared.counters().granted.fetch_add(1, Ordering::Relaxed);
            }
            Err(Error::Refused(refusal)) => {
                shared.counters().refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%refusal, "a limit is exceeded");
                shared.count_refusal(entity, resource);
            }
            Ok(_) | Err(_) => {}
        }
        let admission = result.as_ref().map(Lease::admission);
        shared.metrics.acquired(self, resource, admission, timer);
    }

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
    type IntoFuture = AcquireFuture;

    fn into_future(self) -> Self::IntoFuture {
        AcquireFuture::new(self)
    }
}
