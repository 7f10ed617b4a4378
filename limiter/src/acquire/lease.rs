//! Tokens in use: what a call has taken, and what becomes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tokio::sync::oneshot;
use zae_limiter_schema::{EntityId, LimitName, LimitSet, OnUnavailable, Resource, Tokens};

use super::call::Checked;
use super::cascade;
use super::charge::{self, Charge};
use super::outage;
use crate::bucket::Buckets;
use crate::bucket::Deltas;
use crate::bucket::Grant;
use crate::bucket::OutagePortion;
use crate::status::LimitStatus;
use crate::{Error, Result};

/// Whether a lease is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Admission {
    /// The tokens were taken from the table before the call went ahead.
    Counted,
    /// The table could not be reached, the policy is to allow, and this process had enough left of its own part of the
    /// limits ([`Builder::share_while_unavailable`](crate::Builder::share_while_unavailable)): nothing was taken from the
    /// table, and nothing will be.
    Local,
    /// The table could not be reached and the policy is to allow: nothing was taken, and nothing will be.
    AllowedWhileUnavailable,
    /// The tokens of the call were taken; of those that the lease [consumed](Lease::consume) later some were not,
    /// because the table could not be reached by then and the policy is to allow.
    PartlyCounted,
}

/// Tokens that a call has taken.
///
/// [Commit](Lease::commit) it when the call is done. Dropped without that (by an early return, a panic or a cancelled
/// future), it is rolled back whole in the background, like a database transaction;
/// [`RateLimiter::shutdown`](crate::RateLimiter::shutdown) waits for it.
///
/// ```
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// # let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("tph", 10_000)?]).await?;
/// let mut lease = limiter.acquire("user-1", "gpt-4").consume("tph", 500).await?;
/// lease.adjust("tph", 120); // the answer was longer than estimated
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
    entity: EntityId,
    resource: Resource,
    held: Vec<Held>,
    /// Taken from the process's own part instead.
    own: Option<OutagePortion>,
    /// Taken by this lease on the entity's own bucket, in tokens.
    taken: SmallVec<[(LimitName, i64); 2]>,
    /// The sum of all adjustments, which may be below what was taken until it is booked.
    adjusted: BTreeMap<LimitName, i64>,
    unknown: Vec<String>,
    admission: Admission,
    /// What the call came with, for whatever is taken later.
    limits: Option<LimitSet>,
    policy: Option<OnUnavailable>,
}

#[derive(Debug)]
struct Held {
    charge: Charge,
    grant: Option<Grant>,
}

impl Lease {
    pub(super) fn counted(
        buckets: Arc<Buckets>,
        checked: &Checked,
        held: impl Iterator<Item = (Charge, Option<Grant>)>,
    ) -> Self {
        Self {
            held: held.map(|(charge, grant)| Held { charge, grant }).collect(),
            ..Self::new(buckets, checked, Admission::Counted)
        }
    }

    pub(super) fn uncounted(buckets: Arc<Buckets>, checked: &Checked) -> Self {
        Self::new(buckets, checked, Admission::AllowedWhileUnavailable)
    }

    pub(super) fn local(buckets: Arc<Buckets>, checked: &Checked, own: OutagePortion) -> Self {
        Self {
            own: Some(own),
            ..Self::new(buckets, checked, Admission::Local)
        }
    }

    fn new(buckets: Arc<Buckets>, checked: &Checked, admission: Admission) -> Self {
        Self {
            buckets,
            entity: checked.entity.clone(),
            resource: checked.resource.clone(),
            held: Vec::new(),
            own: None,
            taken: checked
                .amounts
                .iter()
                .map(|(limit, amount)| (limit.clone(), whole(*amount)))
                .collect(),
            adjusted: BTreeMap::new(),
            unknown: Vec::new(),
            admission,
            limits: checked.limits.clone(),
            policy: checked.policy,
        }
    }

    /// Whether the lease is really counted.
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// Who uses it.
    pub fn entity(&self) -> &EntityId {
        &self.entity
    }

    /// For what.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// What the entity itself has used so far, adjustments included, in tokens. Parents are charged the same and not
    /// added up here.
    pub fn consumed(&self) -> BTreeMap<LimitName, i64> {
        let mut consumed: BTreeMap<_, _> = self.taken.iter().cloned().collect();
        for (limit, delta) in self.adjustments() {
            *consumed.entry(limit).or_default() += delta;
        }
        consumed
    }

    /// What is booked of the adjustments: a lease never gives back more than it took.
    fn adjustments(&self) -> BTreeMap<LimitName, i64> {
        let most = i64::try_from(Tokens::MAX).unwrap_or(i64::MAX);
        let booked = self.adjusted.iter().map(|(limit, sum)| {
            let taken = self.taken.iter().find(|(name, _)| name == limit);
            let taken = taken.map_or(0, |(_, taken)| *taken);
            (limit.clone(), (*sum).clamp(-taken, most))
        });
        booked.collect()
    }

    /// How every limit stood after the lease was taken, next to what was taken of it: the entity's own first, then its
    /// parents'. Empty for a lease that is not counted.
    pub fn statuses(&self) -> Vec<LimitStatus> {
        self.held
            .iter()
            .flat_map(|held| held.charge.statuses_after(held.grant.as_ref()))
            .collect()
    }

    /// Corrects what was used: above zero is used more than was taken, below zero less. It may go into debt and never
    /// fails; it is written by [`commit`](Lease::commit). Adjustments add up, and their sum never gives back more than
    /// the lease took.
    pub fn adjust(&mut self, limit: impl AsRef<str>, tokens: i64) -> &mut Self {
        let limit = limit.as_ref();
        match LimitName::from_stored(limit) {
            Ok(name) if !self.is_counted() || self.knows(&name) => {
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

    /// True if there is anything to book on.
    fn is_counted(&self) -> bool {
        !matches!(
            self.admission,
            Admission::Local | Admission::AllowedWhileUnavailable
        )
    }

    fn knows(&self, limit: &LimitName) -> bool {
        self.held
            .iter()
            .any(|held| held.charge.config.limits().get(limit).is_some())
    }

    /// Takes more tokens, if they are there: a real conditional write, at every charge, under the limits and the policy
    /// that the call came with. What a policy lets pass while the table cannot be reached is not counted, and
    /// [`admission`](Lease::admission) tells so.
    ///
    /// ```
    /// use zae_limiter::{Error, Limit, RateLimiter};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// # let limiter = RateLimiter::embedded().default_limits([Limit::per_hour("tph", 1_000)?]).await?;
    /// let mut lease = limiter.acquire("user-1", "gpt-4").consume("tph", 600).await?;
    /// lease.consume("tph", 300).await?; // the next part of a streamed answer
    /// let refused = lease.consume("tph", 300).await;
    /// assert!(matches!(refused, Err(Error::RateLimitExceeded(_))), "the lease keeps its 900");
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
                    self.take_own(&name, amount, &error)?;
                    self.admission = Admission::PartlyCounted;
                    return Ok(());
                }
                result => result?,
            }
        } else if self.own.is_some() {
            self.take_own(
                &name,
                amount,
                &buckets.shared().unavailable("too many buckets are in use"),
            )?;
        }
        match self.taken.iter_mut().find(|(taken, _)| *taken == name) {
            Some((_, taken)) => *taken += whole(amount),
            None => self.taken.push((name, whole(amount))),
        }
        Ok(())
    }

    fn policy(&self) -> OnUnavailable {
        let stored = || self.buckets.shared().cache.policy(&self.entity, &self.resource).0;
        self.policy.unwrap_or_else(stored)
    }

    /// Takes from the process's own part of the limits, if it has one.
    fn take_own(&mut self, name: &LimitName, amount: i128, why: &Error) -> Result<()> {
        if let Some(own) = &mut self.own {
            return own.consume(name, amount, why);
        }
        let shared = self.buckets.shared();
        if let Some(share) = &shared.share {
            let more = Checked {
                entity: self.entity.clone(),
                resource: self.resource.clone(),
                amounts: smallvec![(name.clone(), amount)],
                limits: self.limits.clone(),
                policy: self.policy,
                known: None,
            };
            self.own = Some(outage::take_share(shared, share, &more, why)?);
        }
        Ok(())
    }

    async fn take_more(&mut self, name: &LimitName, amount: i128) -> Result<()> {
        let amounts: Deltas = smallvec![(name.clone(), amount)];
        let admitted = async {
            let limits = self.limits.as_ref();
            let charges =
                charge::charges(&self.buckets, &self.entity, &self.resource, &amounts, limits).await?;
            let grants = cascade::admit(&charges).await?;
            Ok((charges, grants))
        };
        let (charges, grants) = self.buckets.in_time(admitted).await?;
        for (charge, grant) in charges.into_iter().zip(grants) {
            self.hold(charge, grant);
        }
        Ok(())
    }

    fn hold(&mut self, charge: Charge, grant: Option<Grant>) {
        let same = |held: &&mut Held| Arc::ptr_eq(&held.charge.queue, &charge.queue);
        match (self.held.iter_mut().find(same), grant) {
            (
                Some(Held {
                    grant: Some(mine), ..
                }),
                Some(grant),
            ) => mine.absorb(grant),
            (Some(held), Some(grant)) => held.grant = Some(grant),
            (Some(_), None) => {}
            (None, grant) => self.held.push(Held { charge, grant }),
        }
    }

    /// Keeps the tokens and writes the adjustments, one write for each charge that has any.
    ///
    /// An error says what could not be written yet; it is not lost: it goes on in the background, and what has to be
    /// given up in the end is reported by [`RateLimiter::shutdown`](crate::RateLimiter::shutdown).
    pub async fn commit(mut self) -> Result<()> {
        let answers = self.keep_all();
        let written = self.wait_for(answers).await;
        match self.unknown.first() {
            Some(limit) => Err(Error::invalid(
                "limit",
                limit,
                "it was adjusted, but the entity has no such limit",
            )),
            None => written,
        }
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
            tracing::warn!(entity = %self.entity, resource = %self.resource, limit, "an unknown limit was adjusted");
        }
        drop(self.keep_all());
    }

    /// Keeps the tokens and queues the adjustments.
    fn keep_all(&mut self) -> Vec<oneshot::Receiver<Result<()>>> {
        let adjusted = self.adjustments();
        if let Some(own) = self.own.take() {
            // A lease that is counted in part has its adjustments written.
            let changes = if self.is_counted() {
                Deltas::new()
            } else {
                in_millitokens(&adjusted)
            };
            own.keep(&changes);
        }
        let held = self.held.drain(..);
        held.flat_map(|held| held.keep(&adjusted)).collect()
    }

    /// Gives everything back.
    pub async fn rollback(mut self) -> Result<()> {
        drop(self.own.take());
        let answers: Vec<_> = self
            .held
            .drain(..)
            .filter_map(|held| held.grant)
            .flat_map(Grant::give_back)
            .collect();
        self.wait_for(answers).await
    }

    async fn wait_for(&self, answers: Vec<oneshot::Receiver<Result<()>>>) -> Result<()> {
        if answers.is_empty() {
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
            for answer in answers {
                if let Err(error) = answer.await.unwrap_or_else(|_| Err(pending())) {
                    result = Err(error);
                }
            }
            result
        };
        tokio::time::timeout(budget, all)
            .await
            .unwrap_or_else(|_| Err(pending()))
    }
}

impl Held {
    /// Keeps what was taken and books the adjustments of limits that this charge has.
    fn keep(self, adjusted: &BTreeMap<LimitName, i64>) -> Vec<oneshot::Receiver<Result<()>>> {
        let mut changes = in_millitokens(adjusted);
        changes.retain(|(limit, _)| self.charge.config.limits().get(limit).is_some());
        if let Some(grant) = self.grant {
            return grant.keep(&changes);
        }
        // Nothing was taken here, so there is nothing to give back.
        let debits: Deltas = changes.into_iter().filter(|(_, change)| *change > 0).collect();
        if debits.is_empty() {
            return Vec::new();
        }
        vec![self.charge.queue.adjust(debits, "".into())]
    }
}

fn in_millitokens(tokens: &BTreeMap<LimitName, i64>) -> Deltas {
    tokens
        .iter()
        .map(|(limit, tokens)| (limit.clone(), i128::from(*tokens) * 1000))
        .collect()
}

fn whole(millis: i128) -> i64 {
    i64::try_from(millis / 1000).unwrap_or(i64::MAX)
}
