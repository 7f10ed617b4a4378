//! The buckets that one call concerns: the entity's own and, as far as it cascades, its parents'.

use std::sync::Arc;

use tokio::sync::oneshot;
use zae_limiter_schema::bucket::{Attributes, Batch, BucketKey, Demand, Footing, Image, Terms, Wait};
use zae_limiter_schema::{EntityId, LimitName, LimitSet, Resource};

use super::grant::Grant;
use super::lane::Lane;
use super::lanes::Lanes;
use super::status::LimitStatus;
use super::ticket::{Answer, Changes};
use crate::cache::BucketImage;
use crate::{Error, Result};

/// An entity may have so many levels of parents.
pub(crate) const MOST_PARENTS: usize = 4;

/// One bucket that a call concerns.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) lane: Arc<Lane>,
    pub(super) terms: Arc<Terms>,
    /// The limits came with the call.
    pub(super) given: bool,
    /// What is asked of it, in millitokens. A parent counts the limits that it has.
    pub(super) amounts: Changes,
}

impl Level {
    /// Queues what is asked. Asked `anew` it is refused only after another look at the bucket.
    pub(super) fn ask(&self, anew: bool) -> Result<oneshot::Receiver<Answer>> {
        self.lane
            .acquire(self.amounts.clone(), self.terms.clone(), self.given, anew)
    }

    fn batch(&self) -> Batch {
        let demand = |amount| Demand {
            debit: amount,
            ..Demand::default()
        };
        Batch {
            demands: self
                .amounts
                .iter()
                .map(|(limit, amount)| (limit.clone(), demand(*amount)))
                .collect(),
            acquires: 1,
        }
    }

    /// False if the last image says that there is too little. It decides the order of asking, nothing else.
    pub(super) fn looks_good(&self) -> bool {
        let Some(image) = self.lane.image() else {
            return true;
        };
        let now = self.lane.hub().moment().now;
        !self.terms.match_image(&image) || Footing::live(&image, &self.terms, now).fits(&self.batch())
    }

    /// A bucket that is not there is full.
    fn footing<'a>(&'a self, image: Option<&'a Image>) -> Footing<'a> {
        let now = self.lane.hub().moment().now;
        match image {
            Some(image) if self.terms.match_image(image) => Footing::live(image, &self.terms, now),
            Some(image) => Footing::parameters(image, &self.terms, now),
            None => Footing::create(&self.terms, now),
        }
    }

    /// How its limits stand by the last image. What is `held` counts as given back.
    pub(super) fn statuses(&self, held: bool) -> Vec<LimitStatus> {
        let image = self.lane.image();
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
        self.statuses_on(&self.footing(image.as_deref()), &back)
    }

    /// How its limits stand by the last image for one who comes after all that is `ahead`.
    pub(super) fn statuses_behind(&self, ahead: &Batch) -> Vec<LimitStatus> {
        let image = self.lane.image();
        let footing = self.footing(image.as_deref());
        let statuses = self.terms.limits().iter().filter_map(|limit| {
            let amount = self.asked(limit.name());
            let (now, _) = footing.outlook(limit.name(), &Batch::default(), 0)?;
            let (left, wait) = footing.outlook(limit.name(), ahead, amount)?;
            // What is spoken for is not there; but only what was used is debt.
            let available = left.max(now.min(0));
            Some(LimitStatus::new(self.lane.key(), limit, available, amount, wait))
        });
        statuses.collect()
    }

    fn asked(&self, name: &LimitName) -> i128 {
        let own = self.amounts.iter().find(|(limit, _)| limit == name);
        own.map_or(0, |(_, amount)| *amount)
    }

    /// How its limits stand on a footing when the batch is booked, next to what is asked.
    pub(super) fn statuses_on(&self, footing: &Footing<'_>, batch: &Batch) -> Vec<LimitStatus> {
        let statuses = self.terms.limits().iter().filter_map(|limit| {
            let amount = self.asked(limit.name());
            let (available, wait) = footing.outlook(limit.name(), batch, amount)?;
            Some(LimitStatus::new(self.lane.key(), limit, available, amount, wait))
        });
        statuses.collect()
    }

    /// How its limits stand after a grant, next to what was taken. Where nothing was, by the last image.
    pub(super) fn statuses_after(&self, grant: Option<&Grant>) -> Vec<LimitStatus> {
        let last = self.lane.image();
        let image = grant.map(Grant::image).or(last.as_ref());
        let footing = self.footing(image.map(AsRef::as_ref));
        let statuses = self.terms.limits().iter().filter_map(|limit| {
            let taken = grant.map_or(0, |grant| grant.taken(limit.name()));
            let (available, _) = footing.outlook(limit.name(), &Batch::default(), 0)?;
            let key = self.lane.key();
            Some(LimitStatus::new(key, limit, available, taken, Wait::Now))
        });
        statuses.collect()
    }
}

/// Finds the levels of a call, the entity's own first. Reads configuration where it is not known.
pub(super) async fn levels(
    lanes: &Lanes,
    entity: &EntityId,
    resource: &Resource,
    amounts: &Changes,
    given: Option<&LimitSet>,
) -> Result<Vec<Level>> {
    let mut levels: Vec<Level> = Vec::new();
    let mut next = Some(entity.clone());
    while let Some(entity) = next {
        let own = levels.is_empty();
        let lookup = lanes.hub().cache.resolve(&entity, resource).await?;
        let given = given.filter(|_| own);
        let terms = Arc::new(lanes.hub().terms(&lookup.resolved, given));
        if terms.limits().is_empty() {
            return Err(Error::NoLimits {
                entity,
                resource: resource.clone(),
            });
        }
        let key = BucketKey {
            entity: entity.clone(),
            resource: resource.clone(),
        };
        if own
            && let Some((limit, _)) = amounts
                .iter()
                .find(|(limit, _)| terms.limits().get(limit).is_none())
        {
            return Err(unknown_limit(limit, &terms, &key));
        }
        let lane = lanes.lane(&key, &terms)?;
        if lane.knows_nothing() {
            match &lookup.bucket {
                BucketImage::Present(item) => lane.saw(Some(&Attributes::from_item(item)), false)?,
                BucketImage::Absent => lane.saw(None, false)?,
                BucketImage::NotRead => {}
            }
        }
        let amounts = amounts
            .iter()
            .filter(|(limit, _)| terms.limits().get(limit).is_some())
            .cloned()
            .collect();
        levels.push(Level {
            lane,
            terms,
            given: given.is_some(),
            amounts,
        });
        next = lookup.resolved.parent.clone().filter(|_| lookup.resolved.cascade);
        if levels.len() > MOST_PARENTS && next.is_some() {
            return Err(Error::TooDeep {
                entity: entity.clone(),
                parent: next.unwrap_or(entity),
                most: MOST_PARENTS,
            });
        }
    }
    Ok(levels)
}

pub(super) fn unknown_limit(limit: &LimitName, terms: &Terms, key: &BucketKey) -> Error {
    let known: Vec<_> = terms.limits().names().map(LimitName::as_str).collect();
    let rule = format!(
        "{} on {} has the limits {}",
        key.entity,
        key.resource,
        known.join(", ")
    );
    Error::invalid("limit", limit.as_str(), rule)
}
