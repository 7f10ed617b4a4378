//! Tokens in use: what a call has taken, and what becomes of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use smallvec::{SmallVec, smallvec};
use tokio::sync::oneshot;
use zae_limiter_schema::money::{Prices, Usage};
use zae_limiter_schema::{EntityId, LimitName, Mode, OnUnavailable, Resource, Tokens};

use super::admission::Admission;
use super::call::Call;
use super::charge::Charge;
use super::estimate::{no_prices, usage_amounts, with_estimate};
use super::outage;
use crate::bucket::{Amounts, Buckets, Grant, LocalTokens, add, amount_of};
use crate::status::LimitStatus;
use crate::{Error, Result};

/// The log has a warning about a lease that was dropped.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Tokens that a call has taken.
///
/// [Commit](Lease::commit) it when the call is done. Dropped without that (by an early return, a panic or a cancelled
/// future), it is rolled back whole in the background, like a database transaction;
/// [`RateLimiter::shutdown`](crate::RateLimiter::shutdown) waits for it. [`LimiterStats::rolled_back`](crate::LimiterStats)
/// counts such leases, and the first of a process is logged. A call whose cost is known needs no lease:
/// [`Acquire::commit`](crate::Acquire::commit).
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// # let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("tph", 10_000)?]).await?;
/// let mut lease = limiter.acquire("user-1", "gpt-4").consume("tph", 500).await?;
/// lease.adjust("tph", 120); // the response was longer than estimated
/// assert_eq!(lease.consumed().into_values().sum::<i64>(), 620);
/// lease.commit().await?;
///
/// let lease = limiter.acquire("user-1", "gpt-4").consume("tph", 500).await?;
/// drop(lease); // the call did not happen: its tokens go back
/// limiter.settled().await;
/// assert!(limiter.acquire("user-1", "gpt-4").peek().await?.tokens("tph") >= Some(9_380));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a lease that is dropped gives its tokens back"]
pub struct Lease {
    buckets: Arc<Buckets>,
    /// The call that it was taken for. What is taken later comes under the same limits and policy.
    call: Call,
    /// What is counted: on the entity's own bucket first, then on its parents'.
    held: SmallVec<[Grant; 1]>,
    /// Taken from the process's own fraction instead.
    local: Option<Box<LocalTokens>>,
    /// Taken by a lease that is not counted.
    uncounted: Amounts,
    /// The sum of all adjustments, which may be below what was taken until it is written.
    adjusted: BTreeMap<LimitName, i64>,
    unknown: Vec<String>,
    /// What the resource cost when the lease was taken.
    prices: Option<Arc<Prices>>,
    admission: Admission,
    /// It was committed or rolled back.
    ended: bool,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.buckets.shared().counters().rolled_back();
        if !WARNED.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                entity = %self.entity(), resource = %self.resource(),
                "a lease was dropped without a commit, so its tokens are refunded; call `commit` if the call was made. \
                 This is logged once; `stats().rolled_back` counts all of them"
            );
        }
    }
}

impl Lease {
    pub(super) fn counted(
        buckets: Arc<Buckets>,
        call: &Call,
        held: impl Iterator<Item = (Charge, Option<Grant>)>,
    ) -> Self {
        let mut lease = Self::new(buckets, call, Admission::Counted);
        for (charge, grant) in held {
            lease.prices.clone_from(&charge.prices);
            lease.held.push(granted(charge, grant));
        }
        if lease.held.iter().any(|grant| !grant.observed().is_empty()) {
            lease.admission = Admission::Observed;
        }
        lease
    }

    pub(super) fn uncounted(buckets: Arc<Buckets>, call: &Call, admission: Admission) -> Self {
        let mut lease = Self::new(buckets, call, admission);
        lease.take_uncounted();
        lease
    }

    pub(super) fn local(buckets: Arc<Buckets>, call: &Call, local: LocalTokens) -> Self {
        let mut lease = Self::new(buckets, call, Admission::Local);
        lease.local = Some(Box::new(local));
        lease.take_uncounted();
        lease
    }

    /// Takes what the call wants without counting it, by the prices that were known last.
    fn take_uncounted(&mut self) {
        let known = self.buckets.shared().cache.known(self.entity(), self.resource());
        let (amounts, estimate) = (&self.call.amounts, self.call.estimate.as_ref());
        let all = with_estimate(amounts, estimate, known.prices.as_deref(), self.resource());
        let all = all.map_or_else(|_| amounts.clone(), Cow::into_owned);
        self.uncounted = all;
        self.prices.clone_from(&known.prices);
    }

    fn new(buckets: Arc<Buckets>, call: &Call, admission: Admission) -> Self {
        Self {
            buckets,
            call: call.clone(),
            held: SmallVec::new(),
            local: None,
            uncounted: Amounts::new(),
            adjusted: BTreeMap::new(),
            unknown: Vec::new(),
            prices: None,
            admission,
            ended: false,
        }
    }

    /// Whether the lease is really counted.
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// The entity this lease is charged to.
    pub fn entity(&self) -> &EntityId {
        &self.call.key.entity
    }

    /// The resource this lease is for.
    pub fn resource(&self) -> &Resource {
        &self.call.key.resource
    }

    /// What the entity itself has used so far, adjustments included, in tokens. Parents are charged the same and not
    /// added up here.
    pub fn consumed(&self) -> BTreeMap<LimitName, i64> {
        let taken = self.taken().into_iter();
        let mut consumed: BTreeMap<_, _> = taken.map(|(limit, amount)| (limit, whole(amount))).collect();
        for (limit, delta) in self.adjustments() {
            *consumed.entry(limit).or_default() += whole(delta);
        }
        consumed
    }

    /// What was taken, in millitokens: for the entity itself, and for parents of limits that only they have.
    fn taken(&self) -> Amounts {
        let mut held = self.held.iter().map(Grant::taken);
        let Some(mut taken) = held.next() else {
            return self.uncounted.clone();
        };
        for (limit, amount) in held.flatten() {
            if amount_of(&taken, &limit) == 0 {
                add(&mut taken, &limit, amount);
            }
        }
        taken
    }

    /// What is booked of the adjustments, in millitokens: a lease never gives back more than it took.
    fn adjustments(&self) -> Amounts {
        if self.adjusted.is_empty() {
            return Amounts::new();
        }
        let (taken, most) = (self.taken(), i64::try_from(Tokens::MAX).unwrap_or(i64::MAX));
        let booked = self.adjusted.iter().map(|(limit, sum)| {
            let taken = whole(amount_of(&taken, limit));
            let tokens = (*sum).clamp(-taken, most);
            (limit.clone(), i128::from(tokens) * 1000)
        });
        booked.collect()
    }

    /// How every limit stood after the lease was taken, next to what was taken of it: the entity's own first, then its
    /// parents'. Empty for a lease that is not counted.
    pub fn statuses(&self) -> Vec<LimitStatus> {
        self.held.iter().flat_map(Grant::statuses).collect()
    }

    /// The limits that would have refused the call if they were enforced: those of an entity whose
    /// [mode](crate::Mode) is `observe`, for which too little was available.
    ///
    /// ```
    /// use zae_limiter::{Admission, ConfigLevel, Limit, Mode, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("tph", 1_000)?]).await?;
    /// let level = ConfigLevel::Resource("gpt-4".parse()?);
    /// limiter.repository().set_mode(&level, Mode::Observe).await?;
    ///
    /// let lease = limiter.acquire("user-1", "gpt-4").consume("tph", 5_000).await?;
    /// assert_eq!(lease.admission(), Admission::Observed);
    /// assert_eq!(lease.observed_limits()[0].limit.name().as_str(), "tph");
    /// lease.commit().await?;
    /// assert_eq!(limiter.stats().observed, 1);
    /// # Ok(()) }
    /// ```
    pub fn observed_limits(&self) -> Vec<LimitStatus> {
        self.held.iter().flat_map(Grant::observed).cloned().collect()
    }

    /// Corrects what was used: above zero is used more than was taken, below zero less. It may go into debt and never
    /// fails; it is written by [`commit`](Lease::commit). Adjustments add up, and their sum never gives back more than
    /// the lease took.
    pub fn adjust(&mut self, limit: impl AsRef<str>, tokens: i64) -> &mut Self {
        let limit = limit.as_ref();
        match LimitName::from_stored(limit) {
            Ok(name) if !self.is_counted() || self.can_adjust(&name) => {
                let sum = self.adjusted.entry(name).or_default();
                *sum = sum.saturating_add(tokens);
            }
            _ => self.unknown.push(limit.chars().take(50).collect()),
        }
        self
    }

    /// Gives tokens back: the same as adjusting by less.
    pub fn release(&mut self, limit: impl AsRef<str>, tokens: u64) -> &mut Self {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        self.adjust(limit, -tokens)
    }

    /// Corrects the limits that count tokens and money to what the call really used, by the prices that the resource had
    /// when the lease was taken. It replaces what was adjusted of these limits before, so that it may be called with each
    /// part of a streamed response and the usage up to then. Limits that the entity does not have are left out.
    ///
    /// An error if the resource has no prices: the lease is as it was.
    ///
    /// ```
    /// use zae_limiter::money::{Prices, Usage};
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limits = [Limit::per_hour("tpm", 100_000)?, Limit::per_hour("usd", 10_000_000)?];
    /// # let limiter = RateLimiter::embedded().default_limits(limits).await?;
    /// let prices = Prices::new("$2.50".parse()?, "$10".parse()?);
    /// limiter.repository().set_prices("gpt-4o", prices).await?;
    ///
    /// let mut lease = limiter.acquire("user-1", "gpt-4o").consume("tpm", 2_000).await?;
    /// lease.adjust_to_usage(&Usage::new(1_000, 200))?;
    /// assert_eq!((lease.consumed()["tpm"], lease.consumed()["usd"]), (1_200, 4_500));
    /// lease.commit().await?;
    /// # Ok(()) }
    /// ```
    pub fn adjust_to_usage(&mut self, usage: &Usage) -> Result<&mut Self> {
        let prices = self.prices.clone().ok_or_else(|| no_prices(self.resource()))?;
        let taken = self.taken();
        for (limit, used) in usage_amounts(&prices, usage, "usage")? {
            if !self.is_counted() || self.can_adjust(limit) {
                let delta = whole(used.millis() - amount_of(&taken, limit));
                self.adjusted.insert(limit.clone(), delta);
            }
        }
        Ok(self)
    }

    /// Takes more tokens, if they are there: a real conditional write, at every charge, under the limits and the policy
    /// that the call came with. What a policy lets pass while the table cannot be reached is not counted, and
    /// [`admission`](Lease::admission) reports it.
    ///
    /// ```
    /// use zae_limiter::{Error, Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("tph", 1_000)?]).await?;
    /// let mut lease = limiter.acquire("user-1", "gpt-4").consume("tph", 600).await?;
    /// lease.consume("tph", 300).await?; // the next part of a streamed response
    /// let refused = lease.consume("tph", 300).await;
    /// assert!(matches!(refused, Err(Error::Refused(_))), "the lease keeps its 900");
    /// lease.commit().await?;
    /// # Ok(()) }
    /// ```
    pub async fn consume(&mut self, limit: impl AsRef<str>, tokens: u64) -> Result<()> {
        let name = LimitName::from_stored(limit.as_ref())?;
        let amount = Tokens::new(tokens)
            .map_err(|error| Error::invalid("amount", tokens.to_string(), error.to_string()))?
            .millis();
        if amount == 0 {
            return Err(Error::invalid(
                "amount",
                "0",
                "at least one token must be consumed",
            ));
        }
        let buckets = self.buckets.clone();
        let _inside = buckets.enter()?;
        if self.is_counted() {
            match self.take_more(&name, amount).await {
                Err(error) if error.is_unavailable() && self.policy() == OnUnavailable::Allow => {
                    self.take_locally(&name, amount, &error)?;
                    self.admission = Admission::PartlyCounted;
                    return Ok(());
                }
                result => return result,
            }
        }
        if self.local.is_some() {
            let full = buckets.shared().unavailable("too many buckets are in use");
            self.take_locally(&name, amount, &full)?;
        }
        add(&mut self.uncounted, &name, amount);
        Ok(())
    }

    fn policy(&self) -> OnUnavailable {
        let stored = || {
            self.buckets
                .shared()
                .cache
                .policy(self.entity(), self.resource())
                .0
        };
        self.call.policy.unwrap_or_else(stored)
    }

    /// Takes from the process's own fraction of the limits, if it has one.
    fn take_locally(&mut self, name: &LimitName, amount: i128, why: &Error) -> Result<()> {
        if let Some(local) = &mut self.local {
            return local.consume(name, amount, why);
        }
        let shared = self.buckets.shared();
        if let Some(fraction) = &shared.fraction {
            let more = Call {
                amounts: smallvec![(name.clone(), amount)],
                estimate: None,
                ..self.call.clone()
            };
            self.local = Some(Box::new(outage::take_locally(
                &self.buckets,
                fraction,
                &more,
                why,
            )?));
        }
        Ok(())
    }

    async fn take_more(&mut self, name: &LimitName, amount: i128) -> Result<()> {
        let amounts: Amounts = smallvec![(name.clone(), amount)];
        let admitted = self.buckets.admit(&self.call, &amounts, None);
        let (charges, grants) = self.buckets.in_time(&self.call.key, admitted).await?;
        for (charge, grant) in charges.into_iter().zip(grants) {
            let grant = granted(charge, grant);
            if !grant.observed().is_empty() && self.admission == Admission::Counted {
                self.admission = Admission::Observed;
            }
            self.hold(grant);
        }
        Ok(())
    }

    fn hold(&mut self, more: Grant) {
        let same = |held: &&mut Grant| Arc::ptr_eq(held.bucket(), more.bucket());
        match self.held.iter_mut().find(same) {
            Some(held) => held.absorb(more),
            None => self.held.push(more),
        }
    }

    /// Keeps the tokens and writes the adjustments, one write for each charge that has any.
    ///
    /// An error says what could not be written yet; it is not lost: it goes on in the background, and what has to be
    /// given up in the end is reported by [`RateLimiter::shutdown`](crate::RateLimiter::shutdown).
    pub async fn commit(mut self) -> Result<()> {
        let pending = self.keep_all();
        let written = self.wait_for(pending).await;
        match self.unknown.first() {
            Some(limit) => Err(Error::invalid(
                "limit",
                limit,
                "it was adjusted, but the entity has no such limit, or it counts calls in flight",
            )),
            None => written,
        }
    }

    /// Corrects tokens and money to what the call really used, and commits, in one write for each charge: see
    /// [`adjust_to_usage`](Lease::adjust_to_usage).
    ///
    /// If the resource has no prices, nothing of the usage is written, and the lease keeps what it took: the call was made.
    ///
    /// ```
    /// use zae_limiter::money::{Prices, Usage};
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limits = [Limit::per_hour("tpm", 100_000)?, Limit::per_hour("usd", 10_000_000)?];
    /// # let limiter = RateLimiter::embedded().default_limits(limits).await?;
    /// let prices = Prices::new("$2.50".parse()?, "$10".parse()?);
    /// limiter.repository().set_prices("gpt-4o", prices).await?;
    ///
    /// let lease = limiter.acquire("user-1", "gpt-4o").consume("tpm", 2_000).await?;
    /// lease.commit_usage(&Usage::new(1_000, 200)).await?; // 1,200 tokens and $0.0045
    /// # Ok(()) }
    /// ```
    pub async fn commit_usage(mut self, usage: &Usage) -> Result<()> {
        let adjusted = self.adjust_to_usage(usage).map(drop);
        let committed = self.commit().await;
        adjusted.and(committed)
    }

    /// Commits without waiting, for code that cannot await, such as a drop. What has to be given up in the end is
    /// reported by [`RateLimiter::shutdown`](crate::RateLimiter::shutdown); an adjustment of a limit that does not exist
    /// is logged.
    ///
    /// ```
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let limiter = RateLimiter::embedded().default_limits([Limit::per_minute("rpm", 100)?]).await?;
    /// let mut lease = limiter.acquire("user-1", "gpt-4").consume("rpm", 1).await?;
    /// lease.adjust("rpm", 4);
    /// lease.commit_in_background();
    /// limiter.settled().await;
    /// assert_eq!(limiter.acquire("user-1", "gpt-4").peek().await?.tokens("rpm"), Some(95));
    /// # Ok(()) }
    /// ```
    pub fn commit_in_background(mut self) {
        if let Some(limit) = self.unknown.first() {
            tracing::warn!(entity = %self.entity(), resource = %self.resource(), limit, "an unknown limit was adjusted");
        }
        drop(self.keep_all());
    }

    /// Keeps the tokens and queues the adjustments.
    fn keep_all(&mut self) -> Vec<oneshot::Receiver<Result<()>>> {
        self.ended = true;
        let changes = self.adjustments();
        if let Some(local) = self.local.take() {
            // A lease that is counted in part has its adjustments written.
            let unwritten = if self.is_counted() {
                Amounts::new()
            } else {
                changes.clone()
            };
            local.keep(&unwritten);
        }
        let mut written = Vec::new();
        for grant in &mut self.held {
            written.append(&mut grant.keep(&changes));
        }
        written
    }

    /// Gives everything back.
    pub async fn rollback(mut self) -> Result<()> {
        let written = self.return_all();
        self.wait_for(written).await
    }

    /// Gives everything back without waiting.
    #[cfg(feature = "tower")]
    pub(crate) fn rollback_in_background(mut self) {
        drop(self.return_all());
    }

    /// Queues the refunds.
    fn return_all(&mut self) -> Vec<oneshot::Receiver<Result<()>>> {
        self.ended = true;
        drop(self.local.take());
        self.held.drain(..).flat_map(Grant::give_back).collect()
    }

    async fn wait_for(&self, written: Vec<oneshot::Receiver<Result<()>>>) -> Result<()> {
        if written.is_empty() {
            return Ok(());
        }
        let budget = self.buckets.shared().settings.time_budget;
        let pending = || {
            self.buckets
                .shared()
                .unavailable("the change is not written yet and goes on in the background")
        };
        let all = async {
            let mut result = Ok(());
            for change in written {
                if let Err(error) = change.await.unwrap_or_else(|_| Err(pending())) {
                    result = Err(error);
                }
            }
            result
        };
        tokio::time::timeout(budget, all)
            .await
            .unwrap_or_else(|_| Err(pending()))
    }

    /// True if there is a bucket to write to.
    fn is_counted(&self) -> bool {
        !matches!(
            self.admission,
            Admission::Local | Admission::AllowedWhileUnavailable | Admission::Bypassed
        )
    }

    fn can_adjust(&self, limit: &LimitName) -> bool {
        let mut limits = self.held.iter().filter_map(|grant| grant.limit(limit));
        limits.any(|limit| limit.kind().can_be_adjusted())
    }

    /// True if permits of a limit on calls in flight have expired: their renewal failed, or this process was paused for too
    /// long. Other calls may run in their place by now.
    pub fn is_lost(&self) -> bool {
        let now = self.buckets.shared().now();
        self.held.iter().flat_map(Grant::lots).any(|lot| lot.is_lost(now))
    }

    /// Waits until permits of this lease [are lost](Lease::is_lost). Never ends for a lease without permits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zae_limiter::{Limit, RateLimiter};
    ///
    /// # async fn call_model() -> u64 { 1 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// let parallel = Limit::concurrency("parallel", 8, Duration::from_secs(600))?;
    /// let limiter = RateLimiter::embedded().default_limits([parallel]).await?;
    /// let lease = limiter.acquire("user-1", "gpt-4").consume("parallel", 1).await?;
    /// tokio::select! {
    ///     response = call_model() => println!("{response}"),
    ///     () = lease.lost() => println!("stop: another call may run in its place"),
    /// }
    /// lease.commit().await?; // releases the permit
    /// # Ok(()) }
    /// ```
    pub async fn lost(&self) {
        let lots = self.held.iter().flat_map(Grant::lots);
        let mut waits: Vec<_> = lots.map(|lot| Box::pin(lot.wait_until_lost())).collect();
        std::future::poll_fn(|context| {
            let is_lost = waits
                .iter_mut()
                .any(|wait| wait.as_mut().poll(context).is_ready());
            if is_lost { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// What was taken of a charge; one of which nothing was taken has no grant.
fn granted(charge: Charge, grant: Option<Grant>) -> Grant {
    grant.unwrap_or_else(|| match charge.mode() {
        Mode::Bypass => charge.pass(Vec::new()),
        _ => Grant::empty(charge.bucket, charge.config),
    })
}

/// Whole tokens of an amount in millitokens.
fn whole(millis: i128) -> i64 {
    i64::try_from(millis / 1000).unwrap_or(i64::MAX)
}
