//! The buckets that one call concerns: the entity's own and, as far as it cascades, its parents'.

use std::sync::Arc;

use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketConfig, BucketKey, Demand, Evaluation, Image, RetryAfter,
};
use zae_limiter_schema::{EntityId, LimitName, LimitSet, Resource};

use crate::bucket::BucketQueue;
use crate::bucket::Buckets;
use crate::bucket::Grant;
use crate::bucket::breaks;
use crate::bucket::{Answer, Deltas, Driver, KnownCall, Turn};
use crate::config::cache::{BucketImage, Lookup};
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
    /// Queues what is asked. Asked `anew` it is refused only after another look at the bucket.
    pub(super) fn ask(&self, anew: bool, driver: Driver) -> Result<Answer> {
        let (amounts, config) = (self.amounts.clone(), self.config.clone());
        self.queue.acquire(amounts, config, self.given, anew, driver)
    }

    /// Joins the calls that wait for tokens of this bucket.
    pub(super) fn join_wait_queue(&self, arrival: u64) -> Result<Turn> {
        let turn = self.queue.waiters().join(arrival, &self.amounts);
        turn.ok_or_else(|| self.queue.wait_queue_full())
    }

    /// True if by the last image there is enough for all of this.
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

    /// A bucket that is not there is full.
    fn evaluation<'a>(&'a self, image: Option<&'a Image>) -> Evaluation<'a> {
        let now = self.queue.shared().now();
        match image {
            Some(image) if self.config.matches(image) => Evaluation::live(image, &self.config, now),
            Some(image) => Evaluation::parameters(image, &self.config, now),
            None => Evaluation::create(&self.config, now),
        }
    }

    /// How its limits stand by the last image. What is `held` counts as given back.
    pub(super) fn statuses(&self, held: bool) -> Vec<LimitStatus> {
        let image = self.queue.image();
        let mut back = Batch::default();
        for (limit, amount) in self.amounts.iter().filter(|_| held) {
            back.add(
                limit,
                Demand {
                    credit: *amount,
                    ..Demand::default()
                },
            );
        }
        self.statuses_on(&self.evaluation(image.as_deref()), &back)
    }

    /// How its limits stand by the last image for one who comes after all that is `ahead`.
    pub(super) fn statuses_behind(&self, ahead: &Batch) -> Vec<LimitStatus> {
        let image = self.queue.image();
        let evaluation = self.evaluation(image.as_deref());
        let statuses = self.config.limits().iter().filter_map(|limit| {
            let amount = self.asked(limit.name());
            let (now, _) = evaluation.outlook(limit.name(), &Batch::default(), 0)?;
            let (left, wait) = evaluation.outlook(limit.name(), ahead, amount)?;
            // What is spoken for is not there; but only what was used is debt.
            let available = left.max(now.min(0));
            Some(LimitStatus::new(self.queue.key(), limit, available, amount, wait))
        });
        statuses.collect()
    }

    fn asked(&self, name: &LimitName) -> i128 {
        let own = self.amounts.iter().find(|(limit, _)| limit == name);
        own.map_or(0, |(_, amount)| *amount)
    }

    /// How its limits stand on a evaluation when the batch is booked, next to what is asked.
    pub(super) fn statuses_on(&self, evaluation: &Evaluation<'_>, batch: &Batch) -> Vec<LimitStatus> {
        let statuses = self.config.limits().iter().filter_map(|limit| {
            let amount = self.asked(limit.name());
            let (available, wait) = evaluation.outlook(limit.name(), batch, amount)?;
            Some(LimitStatus::new(self.queue.key(), limit, available, amount, wait))
        });
        statuses.collect()
    }

    /// How its limits stand after a grant, next to what was taken. Where nothing was, by the last image.
    pub(super) fn statuses_after(&self, grant: Option<&Grant>) -> Vec<LimitStatus> {
        let last = self.queue.image();
        let image = grant.map(Grant::image).or(last.as_ref());
        let evaluation = self.evaluation(image.map(AsRef::as_ref));
        let statuses = self.config.limits().iter().filter_map(|limit| {
            let taken = grant.map_or(0, |grant| grant.taken(limit.name()));
            let (available, _) = evaluation.outlook(limit.name(), &Batch::default(), 0)?;
            let key = self.queue.key();
            Some(LimitStatus::new(key, limit, available, taken, RetryAfter::Now))
        });
        statuses.collect()
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
            return Err(Error::NoLimits {
                entity,
                resource: resource.clone(),
            });
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
