//! What a lease has taken of one resource, and what was used of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::sync::oneshot;
use zae_limiter_schema::{LimitName, Mode, Resource, Tokens};

use crate::Result;
use crate::bucket::{Amounts, Grant, add, amount_of};

/// Reports when a change is written.
pub(super) type Written = oneshot::Receiver<Result<()>>;

/// What a lease has taken of one resource, and what was used of it.
#[derive(Debug)]
pub(super) struct ResourceUse {
    pub(super) resource: Resource,
    /// What is counted: on the entity's own bucket first, then on its parents'. Nothing if the lease is not counted.
    pub(super) held: SmallVec<[Grant; 1]>,
    /// Taken by a lease that is not counted.
    pub(super) uncounted: Amounts,
    /// The sum of all adjustments, which may be below what was taken until it is written.
    adjusted: BTreeMap<LimitName, i64>,
}

impl ResourceUse {
    pub(super) fn new(resource: Resource) -> Self {
        Self {
            resource,
            held: SmallVec::new(),
            uncounted: Amounts::new(),
            adjusted: BTreeMap::new(),
        }
    }

    /// What was taken, in millitokens: for the entity itself, and for parents of limits that only they have.
    pub(super) fn taken(&self) -> Amounts {
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
    pub(super) fn adjustments(&self) -> Amounts {
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

    /// What was used so far, adjustments included, in tokens.
    pub(super) fn consumed(&self) -> BTreeMap<LimitName, i64> {
        let taken = self.taken().into_iter();
        let mut consumed: BTreeMap<_, _> = taken.map(|(limit, amount)| (limit, whole(amount))).collect();
        for (limit, delta) in self.adjustments() {
            *consumed.entry(limit).or_default() += whole(delta);
        }
        consumed
    }

    /// True if some of the limit was taken.
    pub(super) fn took(&self, limit: &LimitName) -> bool {
        amount_of(&self.taken(), limit) > 0
    }

    /// True if the limit can be adjusted: one of the buckets has it, and it does not count calls in flight. Without buckets
    /// nobody knows.
    pub(super) fn can_adjust(&self, limit: &LimitName) -> bool {
        let mut limits = self.held.iter().filter_map(|grant| grant.limit(limit));
        // Where nothing is counted, nothing needs to be known.
        let is_bypassed = self.held.iter().any(|grant| grant.mode() == Mode::Bypass);
        self.held.is_empty() || is_bypassed || limits.any(|limit| limit.kind().can_be_adjusted())
    }

    /// Adds to the adjustment of a limit.
    pub(super) fn adjust(&mut self, limit: LimitName, tokens: i64) {
        let sum = self.adjusted.entry(limit).or_default();
        *sum = sum.saturating_add(tokens);
    }

    /// Replaces the adjustment of a limit, so that this much was used in all.
    pub(super) fn adjust_to(&mut self, limit: &LimitName, used: Tokens) {
        let delta = whole(used.millis() - amount_of(&self.taken(), limit));
        self.adjusted.insert(limit.clone(), delta);
    }

    pub(super) fn hold(&mut self, more: Grant) {
        let same = |held: &&mut Grant| Arc::ptr_eq(held.bucket(), more.bucket());
        match self.held.iter_mut().find(same) {
            Some(held) => held.absorb(more),
            None => self.held.push(more),
        }
    }

    /// Keeps the tokens and queues the adjustments.
    pub(super) fn keep(&mut self) -> impl Iterator<Item = Written> + '_ {
        let changes = self.adjustments();
        self.held.iter_mut().flat_map(move |grant| grant.keep(&changes))
    }

    /// Queues the refunds.
    pub(super) fn give_back(&mut self) -> impl Iterator<Item = Written> + '_ {
        self.held.drain(..).flat_map(Grant::give_back)
    }
}

/// Whole tokens of an amount in millitokens.
fn whole(millis: i128) -> i64 {
    i64::try_from(millis / 1000).unwrap_or(i64::MAX)
}
