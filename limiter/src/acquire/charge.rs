//! The buckets that one call concerns: the entity's own and, as far as it cascades, its parents'.

use std::sync::Arc;

use zae_limiter_schema::bucket::{Attributes, Batch, BucketConfig, BucketKey, Demand, Evaluation, Image};
use zae_limiter_schema::{EntityId, LimitSet, Resource};

use crate::bucket::{Answer, BucketQueue, Buckets, Deltas, Driver, KnownCall, Turn, breaks, limit_statuses};
use crate::config::cache::{BucketImage, Lookup};
use crate::error::NotFound;
use crate::status::LimitStatus;
use crate::{Error, Result};

/// One bucket that a call concerns.
#[derive(Debug, Clone)]
pub(super) struct Charge {
    pub(super) queue: Arc<BucketQueue>,
    pub(super) config: Arc<BucketConfig>,
    /// The limits came with the call.
    pub(super) given: bool,
    /// What is asked of it, in millitokens. A parent counts the limits that it has.
    pub(super) amounts: Deltas,
}

impl Charge {
    /// Queues the request. With `anew`, it is refused only after another look at the bucket.
    pub(super) fn ask(&self, anew: bool, driver: Driver) -> Result<Answer> {
        let (amounts, config) = (self.amounts.clone(), self.config.clone());
        self.queue.acquire(amounts, config, self.given, anew, driver)
    }

    /// Joins the calls that wait for tokens of this bucket.
    pub(super) fn join_wait_queue(&self, arrival: u64) -> Result<Turn> {
        let turn = self.queue.waiters().join(arrival, &self.amounts);
        turn.ok_or_else(|| self.queue.wait_queue_full())
    }

    /// True if there is enough for this batch, by the last image.
    pub(super) fn fits(&self, batch: &Batch) -> bool {
        let image = self.queue.image();
        self.evaluation(image.as_deref()).fits(batch)
    }

    /// False if the last image says that there is too little. It decides the order of asking, nothing else.
    pub(super) fn looks_good(&self) -> bool {
        let Some(image) = self.queue.image() else {
            return true;
        };
        let now = self.queue.shared().now();
        !self.config.matches(&image) || Evaluation::live(&image, &self.config, now).covers(&self.amounts)
    }

    fn evaluation<'a>(&'a self, image: Option<&'a Image>) -> Evaluation<'a> {
        Evaluation::by_image(image, &self.config, self.queue.shared().now())
    }

    /// The status of its limits by the last image. What is `held` counts as given back.
    pub(super) fn statuses(&self, held: bool) -> Vec<LimitStatus> {
        let image = self.queue.image();
        let mut back = Batch::default();
        for (limit, amount) in self.amounts.iter().filter(|_| held) {
            back.add(limit, Demand::credit(*amount));
        }
        self.statuses_on(&self.evaluation(image.as_deref()), &back)
    }

    /// The status of its limits by the last image for a call behind everything in `ahead`.
    pub(super) fn statuses_behind(&self, ahead: &Batch) -> Vec<LimitStatus> {
        let image = self.queue.image();
        let evaluation = self.evaluation(image.as_deref());
        limit_statuses(self.queue.key(), &self.config, &self.amounts, |limit, amount| {
            let (now, _) = evaluation.outlook(limit.name(), &Batch::default(), 0)?;
            let (left, wait) = evaluation.outlook(limit.name(), ahead, amount)?;
            // Tokens that others wait for first are not available; but only what was used is debt.
            Some((left.max(now.min(0)), wait))
        })
    }

    /// The status of its limits by an evaluation, after the batch is booked.
    pub(super) fn statuses_on(&self, evaluation: &Evaluation<'_>, batch: &Batch) -> Vec<LimitStatus> {
        limit_statuses(self.queue.key(), &self.config, &self.amounts, |limit, amount| {
            evaluation.outlook(limit.name(), batch, amount)
        })
    }
}

/// Finds the charges of a call, the entity's own first. Reads configuration where it is not known.
pub(super) async fn charges(
    buckets: &Buckets,
    entity: &EntityId,
    resource: &Resource,
    amounts: &Deltas,
    given: Option<&LimitSet>,
) -> Result<Vec<Charge>> {
    let chain = buckets.shared().cache.resolve_chain(entity, resource).await?;
    let validity = match &chain[..] {
        [(_, only)] if given.is_none() => only.validity,
        _ => None,
    };
    let charges = of_chain(buckets, chain, resource, amounts, given)?;
    if let (Some(validity), [charge]) = (validity, &charges[..]) {
        let known = KnownCall::new(&charge.queue, charge.config.clone(), validity);
        buckets.known_calls().remember(known);
    }
    Ok(charges)
}

/// The charge of a call that is known, if its configuration still holds.
pub(super) fn of_known(buckets: &Buckets, known: &KnownCall, amounts: &Deltas) -> Result<Option<Charge>> {
    let shared = buckets.shared();
    if !known.holds(&shared.cache, shared.clock.elapsed()) {
        return Ok(None);
    }
    shared.cache.count_hit();
    let config = known.config.clone();
    check_limits(amounts, &config, &known.key)?;
    let queue = buckets.queue(&known.key, &config)?;
    known.follow(&queue, buckets.known_calls());
    Ok(Some(Charge {
        queue,
        config,
        given: false,
        amounts: amounts.clone(),
    }))
}

/// An error if the entity does not have one of the limits.
fn check_limits(amounts: &Deltas, config: &BucketConfig, key: &BucketKey) -> Result<()> {
    let mut asked = amounts.iter();
    match asked.find(|(limit, _)| config.limits().get(limit).is_none()) {
        Some((limit, _)) => Err(crate::error::unknown_limit(limit, config, key)),
        None => Ok(()),
    }
}

/// The charges of a call whose configuration is known.
pub(super) fn of_chain(
    buckets: &Buckets,
    chain: Vec<(EntityId, Lookup)>,
    resource: &Resource,
    amounts: &Deltas,
    given: Option<&LimitSet>,
) -> Result<Vec<Charge>> {
    let mut charges: Vec<Charge> = Vec::with_capacity(chain.len());
    for (entity, lookup) in chain {
        let own = charges.is_empty();
        let everywhere = breaks!(buckets.shared().settings.mutation, CallLimitsReachParents);
        let given = given.filter(|_| own || everywhere);
        let config = buckets.shared().config(&lookup.configs, given);
        if config.limits().is_empty() {
            return Err(Error::NotFound(NotFound::Limits {
                entity,
                resource: resource.clone(),
            }));
        }
        let key = BucketKey {
            entity: entity.clone(),
            resource: resource.clone(),
        };
        if own {
            check_limits(amounts, &config, &key)?;
        }
        let queue = buckets.queue(&key, &config)?;
        if queue.knows_nothing() {
            match &lookup.bucket {
                BucketImage::Present(item) => queue.saw(Some(&Attributes::from_item(item)), false)?,
                BucketImage::Absent => queue.saw(None, false)?,
                BucketImage::NotRead => {}
            }
        }
        let amounts = amounts
            .iter()
            .filter(|(limit, _)| config.limits().get(limit).is_some())
            .cloned()
            .collect();
        charges.push(Charge {
            queue,
            config,
            given: given.is_some(),
            amounts,
        });
    }
    Ok(charges)
}
