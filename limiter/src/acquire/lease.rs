//! Tokens in use: what a call has taken, and what becomes of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::{SmallVec, smallvec};
use zae_limiter_schema::money::{Prices, Usage};
use zae_limiter_schema::{EntityId, LimitName, Mode, OnUnavailable, Resource, Tokens};

use super::admission::Admission;
use super::call::Call;
use super::charge::Charge;
use super::estimate::{no_prices, usage_amounts, with_estimate};
use super::part::Part;
use super::resource_lease::{ResourceLease, ambiguous};
use super::resource_use::{ResourceUse, Written};
use super::{outage, together};
use crate::bucket::{Buckets, Grant, LocalTokens, add};
use crate::status::LimitStatus;
use crate::{Error, Result};

/// The log has a warning about a lease that was dropped.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Tokens that a call has taken.
///
/// [Commit](Lease::commit) it when the call is done. Dropped without that (by an early return, a panic or a canceled
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
    /// What was taken, by part of the call.
    uses: SmallVec<[ResourceUse; 1]>,
    /// Taken from the process's own fraction instead.
    local: Option<Box<LocalTokens>>,
    /// The first adjustment of a limit that cannot be adjusted.
    mistake: Option<Error>,
    /// What the first resource cost when the lease was taken.
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
            lease.uses[charge.part].held.push(granted(charge, grant));
        }
        if lease.grants().any(|grant| !grant.observed().is_empty()) {
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
        let (prices, first) = (known.prices.as_deref(), &self.call.key().resource);
        for (part, own) in self.call.parts.iter().zip(&mut self.uses) {
            let all = with_estimate(&part.amounts, part.estimate.as_ref(), prices, first);
            own.uncounted.clone_from(all.as_deref().unwrap_or(&part.amounts));
        }
        self.prices.clone_from(&known.prices);
    }

    fn new(buckets: Arc<Buckets>, call: &Call, admission: Admission) -> Self {
        let uses = call.parts.iter();
        Self {
            buckets,
            call: call.clone(),
            uses: uses
                .map(|part| ResourceUse::new(part.key.resource.clone()))
                .collect(),
            local: None,
            mistake: None,
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
        &self.call.key().entity
    }

    /// The resource this lease is for; the first one of several.
    pub fn resource(&self) -> &Resource {
        &self.call.key().resource
    }

    /// All resources of the lease, in the order in which the call named them.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.uses.iter().map(|own| &own.resource)
    }

    /// One resource of the lease, by name: for a limit that several of its resources have. If the lease is not on this
    /// resource, what is adjusted is an error of [`commit`](Lease::commit).
    pub fn on(&mut self, resource: impl AsRef<str>) -> ResourceLease<'_> {
        let part = self.part_on(resource.as_ref());
        ResourceLease::new(self, part)
    }

    fn part_on(&self, resource: &str) -> Result<usize> {
        let own = self.resources().position(|own| own.as_str() == resource);
        own.ok_or_else(|| {
            let rule = format!("the lease is on {}", self.names(|_| true).join(", "));
            Error::invalid("resource", resource, rule)
        })
    }

    fn names(&self, wanted: impl Fn(&ResourceUse) -> bool) -> Vec<&str> {
        let uses = self.uses.iter().filter(|own| wanted(own));
        uses.map(|own| own.resource.as_str()).collect()
    }

    /// What the entity itself has used so far, adjustments included, in tokens: of the first resource if the lease has
    /// several. Parents are charged the same and not added up here.
    pub fn consumed(&self) -> BTreeMap<LimitName, i64> {
        self.uses[0].consumed()
    }

    /// What the entity itself has used so far of one resource. None if the lease is not on this resource.
    pub fn consumed_on(&self, resource: impl AsRef<str>) -> Option<BTreeMap<LimitName, i64>> {
        let part = self.part_on(resource.as_ref()).ok()?;
        Some(self.uses[part].consumed())
    }

    /// How every limit stood after the lease was taken, next to what was taken of it, resource by resource: the entity's own
    /// first, then its parents'. Empty for a lease that is not counted.
    pub fn statuses(&self) -> Vec<LimitStatus> {
        self.grants().flat_map(Grant::statuses).collect()
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
        self.grants().flat_map(Grant::observed).cloned().collect()
    }

    fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.uses.iter().flat_map(|own| &own.held)
    }

    /// The resource whose limit an adjustment by name corrects: the one that took some of it; if none did, the one that has
    /// it. An error if several took some of it, or several have it, or if the limit cannot be adjusted.
    pub fn resource_of(&self, limit: impl AsRef<str>) -> Result<&Resource> {
        let limit = limit.as_ref();
        let name = LimitName::from_stored(limit).map_err(|_| cannot_adjust(limit))?;
        let part = self.part_of(&name)?;
        Ok(&self.uses[part].resource)
    }

    /// The part whose limit an adjustment by name corrects.
    fn part_of(&self, limit: &LimitName) -> Result<usize> {
        let cannot = || cannot_adjust(limit.as_str());
        if self.uses.len() == 1 {
            return self.uses[0].can_adjust(limit).then_some(0).ok_or_else(cannot);
        }
        let took = |own: &ResourceUse| own.took(limit) && own.can_adjust(limit);
        let has = |own: &ResourceUse| own.can_adjust(limit);
        let some_took = self.uses.iter().any(took);
        let wanted = |own: &ResourceUse| if some_took { took(own) } else { has(own) };
        let first = self.uses.iter().position(wanted).ok_or_else(cannot)?;
        match self.names(wanted)[..] {
            // Nobody knows the limits, and nothing will be written.
            _ if !some_took && !self.is_counted() => Ok(first),
            [_] => Ok(first),
            ref several => Err(ambiguous(limit.as_str(), several)),
        }
    }

    /// Corrects what was used: above zero is used more than was taken, below zero less. It may go into debt and never
    /// fails; it is written by [`commit`](Lease::commit). Adjustments add up, and their sum never gives back more than
    /// the lease took.
    ///
    /// If the lease has several resources, it is the limit of the resource that took some of it; if none did, of the only one
    /// that has it. For a limit that several of them have, choose the resource with [`on`](Lease::on).
    pub fn adjust(&mut self, limit: impl AsRef<str>, tokens: i64) -> &mut Self {
        self.adjust_part(limit.as_ref(), tokens, Self::part_of);
        self
    }

    /// Adjusts a limit of the part that is found, or notes why it cannot be.
    pub(super) fn adjust_part(
        &mut self,
        limit: &str,
        tokens: i64,
        part: impl FnOnce(&Self, &LimitName) -> Result<usize>,
    ) {
        let name = LimitName::from_stored(limit).map_err(|_| cannot_adjust(limit));
        let found = name.and_then(|name| {
            let part = part(self, &name)?;
            if self.uses[part].can_adjust(&name) {
                Ok((part, name))
            } else {
                Err(cannot_adjust(limit))
            }
        });
        match found {
            Ok((part, name)) => self.uses[part].adjust(name, tokens),
            Err(error) => drop(self.mistake.get_or_insert(error)),
        }
    }

    /// Gives tokens back: the same as adjusting by less.
    pub fn release(&mut self, limit: impl AsRef<str>, tokens: u64) -> &mut Self {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        self.adjust(limit, -tokens)
    }

    /// Corrects the limits that count tokens and money to what the call really used, by the prices that the (first) resource
    /// had when the lease was taken. It replaces what was adjusted of these limits before, so that it may be called with each
    /// part of a streamed response and the usage up to then. Limits that the entity does not have are left out.
    ///
    /// If the lease has several resources, a limit is corrected on each of them that took some of it; if none did, on the first
    /// one that has it. So a call that takes `tpm` of a model and `usd` of a budget has both corrected.
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
        for (limit, used) in usage_amounts(&prices, usage, "usage")? {
            let can_adjust = |own: &&mut ResourceUse| own.can_adjust(limit);
            let some_took = self.uses.iter().any(|own| own.took(limit));
            let all = self.uses.iter_mut().filter(can_adjust);
            if some_took {
                let took = all.filter(|own| own.took(limit));
                took.for_each(|own| own.adjust_to(limit, used));
            } else if let Some(first) = { all }.next() {
                first.adjust_to(limit, used);
            }
        }
        Ok(self)
    }

    /// Takes more tokens, if they are there: a real conditional write, at the entity and the parents that are charged, under
    /// the limits and the policy that the call came with. If the lease has several resources, the limit belongs to the one that
    /// [`adjust`](Lease::adjust) would correct. What a policy lets pass while the table cannot be reached is not counted, and
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
        let limit = LimitName::from_stored(limit.as_ref())?;
        let part = match &self.uses[..] {
            [_] => 0,
            _ => self.part_of(&limit)?,
        };
        self.consume_part(part, &limit, tokens).await
    }

    /// Takes more tokens of a limit of one resource.
    pub(super) async fn consume_part(&mut self, part: usize, limit: &LimitName, tokens: u64) -> Result<()> {
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
        let more = Part {
            amounts: smallvec![(limit.clone(), amount)],
            estimate: None,
            ..self.call.parts[part].clone()
        };
        let buckets = self.buckets.clone();
        let _inside = buckets.enter()?;
        if self.is_counted() {
            match self.take_more(&more).await {
                Err(error) if error.is_unavailable() && self.policy() == OnUnavailable::Allow => {
                    self.take_locally(&more, &error)?;
                    self.admission = Admission::PartlyCounted;
                    return Ok(());
                }
                result => return result,
            }
        }
        if self.local.is_some() {
            let full = buckets.shared().unavailable("too many buckets are in use");
            self.take_locally(&more, &full)?;
        }
        add(&mut self.uses[part].uncounted, limit, amount);
        Ok(())
    }

    fn policy(&self) -> OnUnavailable {
        self.call.policy(&self.buckets.shared().cache)
    }

    /// Takes from the process's own fraction of the limits, if it has one.
    fn take_locally(&mut self, more: &Part, why: &Error) -> Result<()> {
        if let Some(local) = &mut self.local
            && local.consume(more.index, &more.amounts, why)?
        {
            return Ok(());
        }
        let shared = self.buckets.shared();
        let Some(fraction) = &shared.fraction else {
            return Ok(());
        };
        let taken = outage::take_locally(&self.buckets, fraction, std::slice::from_ref(more), why)?;
        match &mut self.local {
            Some(local) => local.absorb(taken),
            None => self.local = Some(Box::new(taken)),
        }
        Ok(())
    }

    async fn take_more(&mut self, more: &Part) -> Result<()> {
        let admitted = self.buckets.admit(std::slice::from_ref(more));
        let (charges, grants) = self.buckets.in_time(&more.key, admitted).await?;
        for (charge, grant) in charges.into_iter().zip(grants) {
            let grant = granted(charge, grant);
            if !grant.observed().is_empty() && self.admission == Admission::Counted {
                self.admission = Admission::Observed;
            }
            self.uses[more.index].hold(grant);
        }
        Ok(())
    }

    /// Keeps the tokens and writes the adjustments, one write for each charge that has any.
    ///
    /// An error says what could not be written yet; it is not lost: it goes on in the background, and what has to be
    /// given up in the end is reported by [`RateLimiter::shutdown`](crate::RateLimiter::shutdown).
    pub async fn commit(mut self) -> Result<()> {
        let pending = self.keep_all();
        let written = self.wait_for(pending).await;
        self.mistake.take().map_or(written, Err)
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
    /// is left out and logged.
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
        if let Some(error) = &self.mistake {
            tracing::warn!(entity = %self.entity(), resource = %self.resource(), %error, "an adjustment was left out");
        }
        drop(self.keep_all());
    }

    /// Keeps the tokens and queues the adjustments.
    fn keep_all(&mut self) -> Vec<Written> {
        self.ended = true;
        if let Some(local) = self.local.take() {
            // A lease that is counted in part has its adjustments written.
            let unwritten: Vec<_> = if self.is_counted() {
                Vec::new()
            } else {
                self.uses.iter().map(ResourceUse::adjustments).collect()
            };
            local.keep(&unwritten);
        }
        self.uses.iter_mut().flat_map(ResourceUse::keep).collect()
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
    fn return_all(&mut self) -> Vec<Written> {
        self.ended = true;
        drop(self.local.take());
        self.uses.iter_mut().flat_map(ResourceUse::give_back).collect()
    }

    async fn wait_for(&self, written: Vec<Written>) -> Result<()> {
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

    /// True if permits of a limit on calls in flight have expired: their renewal failed, or this process was paused for too
    /// long. Other calls may run in their place by now.
    pub fn is_lost(&self) -> bool {
        let now = self.buckets.shared().now();
        self.grants().flat_map(Grant::lots).any(|lot| lot.is_lost(now))
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
        let lots = self.grants().flat_map(Grant::lots);
        together::first(lots.map(|lot| lot.wait_until_lost())).await;
    }
}

/// What was taken of a charge; one of which nothing was taken has no grant.
fn granted(charge: Charge, grant: Option<Grant>) -> Grant {
    grant.unwrap_or_else(|| match charge.mode() {
        Mode::Bypass => charge.pass(Vec::new()),
        _ => Grant::empty(charge.bucket, charge.config),
    })
}

/// The error for an adjustment of a limit that is not there.
fn cannot_adjust(limit: &str) -> Error {
    let rule = "it was adjusted, but the entity has no such limit, or it counts calls in flight";
    Error::invalid("limit", limit, rule)
}
