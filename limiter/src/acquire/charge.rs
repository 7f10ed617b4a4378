//! The buckets that one call concerns: the entity's own and, as far as it cascades, its parents'.

use std::borrow::Cow;
use std::sync::Arc;

use zae_limiter_schema::bucket::{
    Attributes, Batch, BucketConfig, BucketKey, Demand, Evaluation, Image, Outlook,
};
use zae_limiter_schema::money::{Estimate, Prices};
use zae_limiter_schema::{EntityId, LimitSet, Mode, Resource};

use super::estimate::with_estimate;
use crate::bucket::{Amounts, BucketCall, BucketHandle, Buckets, Grant, Pending, Turn, limit_statuses};
use crate::config::cache::{BucketImage, Lookup};
use crate::config::resolution::ConfigOrigin;
use crate::error::NotFound;
use crate::status::LimitStatus;
use crate::{Error, Result};

/// One bucket that a call concerns.
#[derive(Debug, Clone)]
pub(super) struct Charge {
    pub(super) bucket: Arc<BucketHandle>,
    pub(super) config: Arc<BucketConfig>,
    /// The limits came with the call.
    pub(super) call_limits: bool,
    /// What the call takes, in millitokens. A parent counts the limits that it has.
    pub(super) amounts: Amounts,
    /// What the resource costs.
    pub(super) prices: Option<Arc<Prices>>,
    /// Where the mode comes from.
    pub(super) mode_from: ConfigOrigin,
}

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

/// Finds the charges of a call, the entity's own first. Reads configuration where it is not known.
pub(super) async fn charges(
    buckets: &Buckets,
    key: &BucketKey,
    amounts: &Amounts,
    estimate: Option<&Estimate>,
    call_limits: Option<&LimitSet>,
) -> Result<Vec<Charge>> {
    let chain = buckets
        .shared()
        .cache
        .resolve_chain(&key.entity, &key.resource)
        .await?;
    of_chain(buckets, chain, &key.resource, amounts, estimate, call_limits)
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

/// The charges of a call whose configuration is known.
pub(super) fn of_chain(
    buckets: &Buckets,
    chain: Vec<(EntityId, Lookup)>,
    resource: &Resource,
    amounts: &Amounts,
    estimate: Option<&Estimate>,
    call_limits: Option<&LimitSet>,
) -> Result<Vec<Charge>> {
    let mut charges: Vec<Charge> = Vec::with_capacity(chain.len());
    let prices = chain
        .first()
        .and_then(|(_, lookup)| lookup.resolved().prices.clone());
    let is_counted = chain
        .first()
        .is_none_or(|(_, lookup)| lookup.resolved().mode.counts());
    let all = match with_estimate(amounts, estimate, prices.as_deref(), resource) {
        // Where nothing is counted, nothing has a price.
        Err(_) if !is_counted => Cow::Borrowed(amounts),
        all => all?,
    };
    for (entity, lookup) in chain {
        let own = charges.is_empty();
        let call_limits = call_limits.filter(|_| own);
        let config = buckets.shared().config(&lookup.configs, call_limits);
        if config.limits().is_empty() && config.mode().counts() {
            return Err(Error::NotFound(NotFound::Limits {
                entity,
                resource: resource.clone(),
            }));
        }
        let key = BucketKey {
            entity: entity.clone(),
            resource: resource.clone(),
        };
        if own && is_counted {
            check_limits(amounts, &config, &key)?;
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
            bucket,
            config,
            call_limits: call_limits.is_some(),
            amounts,
            prices: prices.clone(),
            mode_from: lookup.resolved().mode_from,
        });
    }
    Ok(charges)
}
