//! Tokens in use: what a call has taken, and what becomes of it.

mod admission;
mod commit;
mod consume;

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{EntityId, LimitName, LimitSet, OnUnavailable, Resource, Tokens};

pub use self::admission::Admission;
use super::call::{Acquire, Checked, Target};
use super::charge::Charge;
use crate::bucket::{Buckets, Deltas, Grant, KnownCall, OutagePortion, amount_of};
use crate::status::LimitStatus;

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
    key: LeaseKey,
    /// What is counted: on the entity's own bucket first, then on its parents'.
    held: SmallVec<[Grant; 1]>,
    /// Taken from the process's own part instead.
    own: Option<Box<OutagePortion>>,
    /// Taken by a lease that is not counted.
    uncounted: Option<Box<Deltas>>,
    /// The sum of all adjustments, which may be below what was taken until it is booked.
    adjusted: BTreeMap<LimitName, i64>,
    unknown: Vec<String>,
    admission: Admission,
    /// What the call came with, for whatever is taken later.
    limits: Option<LimitSet>,
    policy: Option<OnUnavailable>,
}

/// Entity and resource of a lease. A call that is known has them in memory already.
#[derive(Debug)]
enum LeaseKey {
    Known(Arc<KnownCall>),
    Own(BucketKey),
}

impl Lease {
    pub(super) fn counted(
        buckets: Arc<Buckets>,
        checked: &Checked,
        held: impl Iterator<Item = (Charge, Option<Grant>)>,
    ) -> Self {
        Self {
            held: held.map(|(charge, grant)| granted(charge, grant)).collect(),
            ..Self::new(buckets, checked, Admission::Counted)
        }
    }

    /// The lease of a call that was granted from memory.
    pub(super) fn from_memory(call: Acquire, grant: Grant) -> Self {
        Self {
            buckets: call.buckets,
            key: match call.target {
                Target::Known(known) => LeaseKey::Known(known),
                Target::Named(_) => LeaseKey::Own(grant.queue().key().clone()),
            },
            held: smallvec![grant],
            own: None,
            uncounted: None,
            adjusted: BTreeMap::new(),
            unknown: Vec::new(),
            admission: Admission::Counted,
            limits: None,
            policy: call.policy,
        }
    }

    pub(super) fn uncounted(buckets: Arc<Buckets>, checked: &Checked) -> Self {
        Self {
            uncounted: Some(Box::new(checked.amounts.clone())),
            ..Self::new(buckets, checked, Admission::AllowedWhileUnavailable)
        }
    }

    pub(super) fn local(buckets: Arc<Buckets>, checked: &Checked, own: OutagePortion) -> Self {
        Self {
            own: Some(Box::new(own)),
            uncounted: Some(Box::new(checked.amounts.clone())),
            ..Self::new(buckets, checked, Admission::Local)
        }
    }

    fn new(buckets: Arc<Buckets>, checked: &Checked, admission: Admission) -> Self {
        Self {
            buckets,
            key: LeaseKey::Own(BucketKey {
                entity: checked.entity.clone(),
                resource: checked.resource.clone(),
            }),
            held: SmallVec::new(),
            own: None,
            uncounted: None,
            adjusted: BTreeMap::new(),
            unknown: Vec::new(),
            admission,
            limits: checked.limits.clone(),
            policy: checked.policy,
        }
    }

    fn key(&self) -> &BucketKey {
        match &self.key {
            LeaseKey::Known(known) => &known.key,
            LeaseKey::Own(key) => key,
        }
    }

    /// Whether the lease is really counted.
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// Who uses it.
    pub fn entity(&self) -> &EntityId {
        &self.key().entity
    }

    /// For what.
    pub fn resource(&self) -> &Resource {
        &self.key().resource
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

    /// What was taken for the entity itself, in millitokens.
    fn taken(&self) -> Deltas {
        match self.held.first() {
            Some(own) => own.taken(),
            None => self.uncounted.as_deref().cloned().unwrap_or_default(),
        }
    }

    /// What is booked of the adjustments, in millitokens: a lease never gives back more than it took.
    fn adjustments(&self) -> Deltas {
        if self.adjusted.is_empty() {
            return Deltas::new();
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
        self.held.iter().any(|grant| grant.has_limit(limit))
    }
}

/// What was taken of a charge; one of which nothing was asked has no grant.
fn granted(charge: Charge, grant: Option<Grant>) -> Grant {
    grant.unwrap_or_else(|| Grant::empty(charge.queue, charge.config))
}

/// Whole tokens of an amount in millitokens.
fn whole(millis: i128) -> i64 {
    i64::try_from(millis / 1000).unwrap_or(i64::MAX)
}
