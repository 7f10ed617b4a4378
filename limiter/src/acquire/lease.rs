//! Tokens in use: what a call has taken, and what becomes of it.

mod admission;
mod commit;
mod consume;

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use zae_limiter_schema::{EntityId, LimitName, LimitSet, OnUnavailable, Resource, Tokens};

pub use self::admission::Admission;
use super::call::Checked;
use super::charge::Charge;
use crate::bucket::Buckets;
use crate::bucket::Deltas;
use crate::bucket::Grant;
use crate::bucket::KnownCall;
use crate::bucket::OutagePortion;
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
    entity: EntityId,
    resource: Resource,
    held: Vec<HeldCharge>,
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
struct HeldCharge {
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
            held: held.map(|(charge, grant)| HeldCharge { charge, grant }).collect(),
            ..Self::new(buckets, checked, Admission::Counted)
        }
    }

    /// One that was granted without asking anybody.
    pub(super) fn from_memory(
        buckets: &Arc<Buckets>,
        known: &KnownCall,
        policy: Option<OnUnavailable>,
        charge: Charge,
        grant: Grant,
    ) -> Self {
        Self {
            buckets: buckets.clone(),
            entity: known.key.entity.clone(),
            resource: known.key.resource.clone(),
            own: None,
            taken: in_tokens(&charge.amounts),
            held: vec![HeldCharge {
                charge,
                grant: Some(grant),
            }],
            adjusted: BTreeMap::new(),
            unknown: Vec::new(),
            admission: Admission::Counted,
            limits: None,
            policy,
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
            taken: in_tokens(&checked.amounts),
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
}

fn in_tokens(amounts: &Deltas) -> SmallVec<[(LimitName, i64); 2]> {
    let tokens = amounts
        .iter()
        .map(|(limit, amount)| (limit.clone(), whole(*amount)));
    tokens.collect()
}

fn whole(millis: i128) -> i64 {
    i64::try_from(millis / 1000).unwrap_or(i64::MAX)
}
