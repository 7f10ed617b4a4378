//! The buckets that one call concerns: on each of its resources the entity's own and, as far as it cascades, its parents'.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketConfig, BucketKey, Demand, Evaluation, Image, Outlook,
};
use zae_limiter_schema::money::Prices;
use zae_limiter_schema::{EntityId, Mode};

use super::estimate::with_estimate;
use super::part::Part;
use super::together::join_all;
use crate::bucket::{Amounts, BucketCall, BucketHandle, Buckets, Grant, Pending, Turn, limit_statuses};
use crate::config::cache::{BucketImage, Lookup};
use crate::config::resolution::ConfigOrigin;
use crate::error::NotFound;
use crate::status::LimitStatus;
use crate::{Error, Result};

/// One bucket that a call concerns.
#[derive(Debug, Clone)]
pub(super) struct Charge {
    /// The index of the call's part that it belongs to.
    pub(super) part: usize,
    pub(super) bucket: Arc<BucketHandle>,
    pub(super) config: Arc<BucketConfig>,
    /// The limits came with the call.
    pub(super) call_limits: bool,
    /// What the call takes, in millitokens. A parent counts the limits that it has.
    pub(super) amounts: Amounts,
    /// What the call costs: the prices of its first resource.
    pub(super) prices: Option<Arc<Prices>>,
    /// Where the mode comes from.
    pub(super) mode_from: ConfigOrigin,
}

/// An entity, its parents, and what applies to each.
pub(super) type Chain = Vec<(EntityId, Lookup)>;

impl Charge {
    /// Whether the limits are enforced.
    pub(super) fn mode(&self) -> Mode {
        self.config.mode()
    }

    /// True if it may refuse the call for now.
    pub(super) fn can_refuse(&self) -> bool {
        !self.amounts.is_empty() && self.mode() == Mode::Enforce
    }

    /// The call passes without taking anything. `statuses` are those of the refusal that it would have been.
    pub(super) fn pass(&self, statuses: Vec<LimitStatus>) -> Grant {
        Grant::passed(
            self.bucket.clone(),
            self.config.clone(),
            self.amounts.clone(),
            statuses,
        )
    }

    /// Takes what the call wants. If `fresh`, it is refused only by an image that is newer than the call.
    pub(super) fn acquire(&self, fresh: bool) -> Result<Pending> {
        self.bucket.acquire(BucketCall {
            amounts: self.amounts.clone(),
            config: self.config.clone(),
            call_limits: self.call_limits,
            fresh,
        })
    }

    /// Joins the calls that wait for tokens of this bucket.
    pub(super) fn join_wait_queue(&self, arrival: u64) -> Result<Turn> {
        let turn = self.bucket.waiters().join(arrival, &self.amounts);
        turn.ok_or_else(|| self.bucket.wait_queue_full())
    }

    /// True if there is enough for this batch, by the last image.
    pub(super) fn fits(&self, batch: &Batch) -> bool {
        let image = self.bucket.image();
        self.evaluation(image.as_deref()).fits(batch)
    }

    /// False if the last image has too little. It decides the order of the writes, nothing else.
    pub(super) fn looks_good(&self) -> bool {
        let Some(image) = self.bucket.image() else {
            return true;
        };
        let now = self.bucket.shared().now();
        !self.config.matches(&image) || Evaluation::live(&image, &self.config, now).covers(&self.amounts)
    }

    fn evaluation<'a>(&'a self, image: Option<&'a Image>) -> Evaluation<'a> {
        Evaluation::by_image(image, &self.config, self.bucket.shared().now())
    }

    /// The status of its limits by the last image. What is `held` counts as given back.
    pub(super) fn statuses(&self, held: bool) -> Vec<LimitStatus> {
        let image = self.bucket.image();
        let mut back = Batch::default();
        for (limit, amount) in self.amounts.iter().filter(|_| held) {
            back.add(limit, Demand::credit(*amount));
        }
        self.statuses_on(&self.evaluation(image.as_deref()), &back)
    }

    /// The status of its limits by the last image for a call behind everything in `ahead`.
    pub(super) fn statuses_behind(&self, ahead: &Batch) -> Vec<LimitStatus> {
        let image = self.bucket.image();
        let evaluation = self.evaluation(image.as_deref());
        limit_statuses(self.bucket.key(), &self.config, &self.amounts, |limit, amount| {
            let now = evaluation.outlook(limit.name(), &Batch::default(), 0)?;
            let behind = evaluation.outlook(limit.name(), ahead, amount)?;
            // Tokens that others wait for first are not available; but only what was used is debt.
            Some(Outlook {
                left: behind.left.max(now.left.min(0)),
                ..behind
            })
        })
    }

    /// The status of its limits by an evaluation, after the batch is booked.
    pub(super) fn statuses_on(&self, evaluation: &Evaluation<'_>, batch: &Batch) -> Vec<LimitStatus> {
        limit_statuses(self.bucket.key(), &self.config, &self.amounts, |limit, amount| {
            evaluation.outlook(limit.name(), batch, amount)
        })
    }
}

/// Finds the charges of a call, part by part, the entity's own first. Reads configuration where it is not known.
pub(super) async fn charges(buckets: &Buckets, parts: &[Part]) -> Result<Vec<Charge>> {
    let chains = resolve(buckets, parts).await?;
    of_chains(buckets, parts, chains)
}

/// The chains of the parts, all read at the same time.
async fn resolve(buckets: &Buckets, parts: &[Part]) -> Result<SmallVec<[Chain; 1]>> {
    let cache = &buckets.shared().cache;
    if let [only] = parts {
        return Ok(smallvec![cache.resolve_chain(&only.key, only.cascade).await?]);
    }
    let chains = parts
        .iter()
        .map(|part| cache.resolve_chain(&part.key, part.cascade));
    join_all(chains).await.into_iter().collect()
}

/// The indexes of the charges in the order in which a call takes places in wait queues: by resource, and from the entity up
/// to its parents. Tokens are taken one after the other in the opposite order. Both orders are the same for all calls,
/// whatever resource they name first, so that no two calls hold what the other one needs.
pub(super) fn bucket_order(charges: &[Charge]) -> Vec<usize> {
    let resource = |index: &usize| &charges[*index].bucket.key().resource;
    let mut order: Vec<_> = (0..charges.len()).collect();
    order.sort_by(|one, other| resource(one).cmp(resource(other)));
    order
}

/// An error if the entity, or a parent that is charged too, may not use the resource.
pub(super) fn check_enabled(charges: &[Charge]) -> Result<()> {
    match charges.iter().find(|charge| charge.mode() == Mode::Disabled) {
        Some(disabled) => Err(Error::Disabled {
            entity: disabled.bucket.key().entity.clone(),
            resource: disabled.bucket.key().resource.clone(),
            mode_from: disabled.mode_from,
        }),
        None => Ok(()),
    }
}

/// An error if the entity does not have one of the limits.
fn check_limits(amounts: &Amounts, config: &BucketConfig, key: &BucketKey) -> Result<()> {
    let mut wanted = amounts.iter();
    match wanted.find(|(limit, _)| config.limits().get(limit).is_none()) {
        Some((limit, _)) => Err(crate::error::unknown_limit(limit, config, key)),
        None => Ok(()),
    }
}

/// The charges of a call whose configuration is known. Its prices are those of the first resource.
pub(super) fn of_chains(
    buckets: &Buckets,
    parts: &[Part],
    chains: SmallVec<[Chain; 1]>,
) -> Result<Vec<Charge>> {
    let first = chains.first().and_then(|chain| chain.first());
    let prices = first.and_then(|(_, lookup)| lookup.resolved().prices.clone());
    let mut charges = Vec::with_capacity(chains.iter().map(Vec::len).sum());
    for (part, chain) in parts.iter().zip(chains) {
        let mut modes = chain.iter().map(|(_, lookup)| lookup.resolved().mode);
        let amounts = match with_estimate(
            &part.amounts,
            part.estimate.as_ref(),
            prices.as_deref(),
            &parts[0].key.resource,
        ) {
            // Where nothing is counted, nothing has a price.
            Err(_) if !modes.any(Mode::counts) => Cow::Borrowed(&part.amounts),
            amounts => amounts?,
        };
        of_chain(buckets, part, chain, &amounts, prices.as_ref(), &mut charges)?;
    }
    Ok(charges)
}

/// Adds the charges of one part.
fn of_chain(
    buckets: &Buckets,
    part: &Part,
    chain: Chain,
    all: &Amounts,
    prices: Option<&Arc<Prices>>,
    charges: &mut Vec<Charge>,
) -> Result<()> {
    for (level, (entity, lookup)) in chain.into_iter().enumerate() {
        let own = level == 0;
        let call_limits = part.limits.as_ref();
        let call_limits = call_limits.filter(|_| own);
        let config = buckets.shared().config(&lookup.configs, call_limits);
        let key = BucketKey {
            entity,
            resource: part.key.resource.clone(),
        };
        let is_counted = config.mode().counts();
        if config.limits().is_empty() && is_counted {
            return Err(Error::NotFound(NotFound::Limits {
                entity: key.entity,
                resource: key.resource,
            }));
        }
        if own && is_counted {
            check_limits(&part.amounts, &config, &key)?;
        }
        let bucket = buckets.bucket(&key, &config)?;
        if bucket.knows_nothing() {
            match &lookup.bucket {
                BucketImage::Present(item) => bucket.read_along(Some(&Attributes::from_item(item)))?,
                BucketImage::Absent => bucket.read_along(None)?,
                BucketImage::NotRead => {}
            }
        }
        let amounts = all
            .iter()
            .filter(|(limit, _)| config.limits().get(limit).is_some())
            .cloned()
            .collect();
        charges.push(Charge {
            part: part.index,
            bucket,
            config,
            call_limits: call_limits.is_some(),
            amounts,
            prices: prices.cloned(),
            mode_from: lookup.resolved().mode_from,
        });
    }
    Ok(())
}
