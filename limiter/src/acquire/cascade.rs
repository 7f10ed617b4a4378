//! Acquiring from all buckets of a call, so that all of them admit it or none is charged.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use zae_limiter_schema::Mode;

use super::charge::{Charge, bucket_order};
use crate::bucket::{Grant, Outcome};
use crate::status::{LimitStatus, Refusal};
use crate::{Error, Result};

/// The grants of a call by charge; a charge of which nothing is taken has none.
pub(super) type Grants = SmallVec<[Option<Grant>; 1]>;

/// The outcomes by charge.
#[derive(Default)]
struct Round {
    grants: Grants,
    refusals: Vec<(usize, Vec<LimitStatus>)>,
}

/// Acquires from every charge. When all images predict success, they are written at the same time; one that looks refused
/// is written first, alone. After a mixed result what was granted is returned and the charges are tried once more in an order
/// that all calls have in common, one after the other, so that two calls that each hold what the other needs cannot both
/// lose. What the other returns is in no image yet, so that only a fresh image refuses there.
pub(super) async fn admit(charges: &[Charge]) -> Result<Grants> {
    if let [only] = charges {
        return alone(only).await;
    }
    let likely_refused = charges
        .iter()
        .position(|charge| charge.can_refuse() && !charge.looks_good());
    let mut round = Round::new(charges.len());
    if let Some(likely_refused) = likely_refused {
        round.acquire(charges, &[likely_refused], false).await?;
        if !round.refusals.is_empty() {
            return Err(round.refusal(charges));
        }
    }
    let others: Vec<usize> = (0..charges.len())
        .filter(|index| Some(*index) != likely_refused)
        .collect();
    round.acquire(charges, &others, false).await?;
    if round.refusals.is_empty() {
        return Ok(round.grants);
    }
    if round.grants.iter().flatten().all(Grant::holds_nothing) {
        return Err(round.refusal(charges));
    }
    drop(round);
    one_by_one(charges).await
}

/// Acquires from the only charge of a call.
async fn alone(charge: &Charge) -> Result<Grants> {
    if charge.amounts.is_empty() {
        return Ok(smallvec![None]);
    }
    if charge.mode() == Mode::Bypass {
        return Ok(smallvec![Some(charge.pass(Vec::new()))]);
    }
    match charge.acquire(false)?.outcome().await {
        Some(Outcome::Granted(grant)) => Ok(smallvec![Some(grant)]),
        Some(Outcome::Refused(statuses)) if charge.mode() == Mode::Observe => {
            Ok(smallvec![Some(charge.pass(statuses))])
        }
        Some(Outcome::Refused(statuses)) => {
            let refusal = Refusal::new(statuses);
            Err(Error::Refused(Arc::new(refusal)))
        }
        Some(Outcome::Failed(error)) => Err(error),
        None => Err(no_runtime(charge)),
    }
}

/// The runtime of the bucket's actor is gone.
fn no_runtime(charge: &Charge) -> Error {
    charge.bucket.shared().unavailable("the runtime was shut down")
}

/// From the root down on each resource, resource by resource.
async fn one_by_one(charges: &[Charge]) -> Result<Grants> {
    let mut round = Round::new(charges.len());
    for index in bucket_order(charges).into_iter().rev() {
        round.acquire(charges, &[index], true).await?;
        if !round.refusals.is_empty() {
            return Err(round.refusal(charges));
        }
    }
    Ok(round.grants)
}

impl Round {
    fn new(charges: usize) -> Self {
        Self {
            grants: (0..charges).map(|_| None).collect(),
            refusals: Vec::new(),
        }
    }

    /// Acquires from these charges at the same time and waits for all of them. An error at one returns what the others
    /// granted.
    async fn acquire(&mut self, charges: &[Charge], wanted: &[usize], fresh: bool) -> Result<()> {
        let mut pending = Vec::with_capacity(wanted.len());
        for &index in wanted.iter().filter(|index| !charges[**index].amounts.is_empty()) {
            let charge = &charges[index];
            if charge.mode() == Mode::Bypass {
                self.grants[index] = Some(charge.pass(Vec::new()));
            } else {
                pending.push((index, charge.acquire(fresh)?));
            }
        }
        let mut failure = None;
        for (index, pending) in pending {
            match pending.outcome().await {
                Some(Outcome::Granted(grant)) => self.grants[index] = Some(grant),
                Some(Outcome::Refused(statuses)) if charges[index].mode() == Mode::Observe => {
                    self.grants[index] = Some(charges[index].pass(statuses));
                }
                Some(Outcome::Refused(statuses)) => self.refusals.push((index, statuses)),
                Some(Outcome::Failed(error)) => failure = Some(error),
                None => failure = Some(no_runtime(&charges[index])),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The statuses of every charge: of those that refused as they were then, of the others as last seen.
    fn refusal(mut self, charges: &[Charge]) -> Error {
        let mut statuses = Vec::new();
        for (index, charge) in charges.iter().enumerate() {
            match self.refusals.iter_mut().find(|(refused, _)| *refused == index) {
                Some((_, own)) => statuses.append(own),
                None => {
                    let held = self.grants[index]
                        .as_ref()
                        .is_some_and(|grant| !grant.holds_nothing());
                    statuses.extend(charge.statuses(held));
                }
            }
        }
        Error::Refused(Arc::new(Refusal::new(statuses)))
    }
}
