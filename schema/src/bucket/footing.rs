//! What a decision stands on: the last image, the terms, and one reading of the clock.

use std::collections::BTreeMap;

use super::{Batch, Demand, Image, Meter, Params, Pending, Terms, Wait};
use crate::{LimitName, Timestamp};

/// How a limit stands between the item and the terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// On the item and in the terms.
    Kept,
    /// In the terms only: it starts full.
    Fresh,
    /// In the terms; on the item there is a remnant that cannot be computed with.
    Broken,
    /// On the item only: it leaves once it is full.
    Leaving,
}

/// One limit under a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground {
    /// Between item and terms.
    pub standing: Standing,
    /// The limit as on the item; full where it is not there.
    pub meter: Meter,
    /// The parameters after the write.
    pub after: Params,
    /// The ceiling for this decision: the smaller of the old and the new burst.
    pub burst: i128,
    /// What has come back since the last refill, at the old rate.
    pub pending: Pending,
}

impl Ground {
    fn new(standing: Standing, meter: Meter, after: Params, elapsed: i128) -> Self {
        let burst = meter.params.burst().min(after.burst());
        Self {
            standing,
            meter,
            after,
            burst,
            pending: meter.pending(elapsed),
        }
    }

    /// The level now, with credits and adjusts booked and debits not.
    pub fn level(&self, demand: Demand) -> i128 {
        let filled = match self.standing {
            Standing::Kept | Standing::Leaving => self.meter.tokens + self.pending.whole + demand.credit,
            Standing::Fresh | Standing::Broken => self.burst,
        };
        self.burst.min(filled) - demand.adjust
    }

    /// The limit after the write, with its last refill now.
    pub fn meter_after(&self, demand: Demand) -> Meter {
        let full = self.level(Demand { adjust: 0, ..demand }) >= self.burst;
        let remainder = if full || !self.meter.params.same_rate(&self.after) {
            0
        } else {
            self.pending.remainder
        };
        Meter {
            params: self.after,
            tokens: self.level(demand) - demand.debit,
            remainder,
        }
    }
}

/// Whether the bucket is there, and whether it has the right parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis<'a> {
    Create,
    Live(&'a Image),
    Parameters(&'a Image),
}

/// What a decision about a bucket stands on. The image may reject; only the server's condition admits.
#[derive(Debug, Clone)]
pub struct Footing<'a> {
    pub(super) basis: Basis<'a>,
    pub(super) terms: &'a Terms,
    pub(super) now: Timestamp,
    pub(super) elapsed: i128,
    limits: BTreeMap<LimitName, Ground>,
}

impl<'a> Footing<'a> {
    /// There is no bucket: it is about to be created.
    pub fn create(terms: &'a Terms, now: Timestamp) -> Self {
        let limits = terms
            .limits()
            .iter()
            .map(|limit| (limit.name().clone(), fresh(Params::from(limit), Standing::Fresh)));
        Self {
            basis: Basis::Create,
            terms,
            now,
            elapsed: 0,
            limits: limits.collect(),
        }
    }

    /// The bucket has the parameters of the terms ([`Terms::match_image`]).
    pub fn live(image: &'a Image, terms: &'a Terms, now: Timestamp) -> Self {
        Self::present(image, terms, now, |name| {
            if terms.limits().get(name).is_some() {
                Standing::Kept
            } else {
                Standing::Leaving
            }
        })
    }

    /// The bucket has other parameters, and they stay: changes are booked on it as it is, and every limit is kept.
    pub fn as_it_is(image: &'a Image, terms: &'a Terms, now: Timestamp) -> Self {
        Self::present(image, terms, now, |_| Standing::Kept)
    }

    fn present(
        image: &'a Image,
        terms: &'a Terms,
        now: Timestamp,
        standing: impl Fn(&LimitName) -> Standing,
    ) -> Self {
        let (now, elapsed) = forward(image, now);
        let limits = image.limits.iter().map(|(name, limit)| {
            let ground = Ground::new(standing(name), limit.meter, limit.meter.params, elapsed);
            (name.clone(), ground)
        });
        Self {
            basis: Basis::Live(image),
            terms,
            now,
            elapsed,
            limits: limits.collect(),
        }
    }

    /// The bucket has other parameters: it is about to get those of the terms.
    pub fn parameters(image: &'a Image, terms: &'a Terms, now: Timestamp) -> Self {
        let (now, elapsed) = forward(image, now);
        let mut limits = BTreeMap::new();
        for limit in terms.limits() {
            let after = Params::from(limit);
            let ground = match image.limits.get(limit.name()) {
                Some(on_item) => Ground::new(Standing::Kept, on_item.meter, after, elapsed),
                None if image.broken.contains(limit.name()) => fresh(after, Standing::Broken),
                None => fresh(after, Standing::Fresh),
            };
            limits.insert(limit.name().clone(), ground);
        }
        for (name, limit) in &image.limits {
            let leaving = || Ground::new(Standing::Leaving, limit.meter, limit.meter.params, elapsed);
            limits.entry(name.clone()).or_insert_with(leaving);
        }
        Self {
            basis: Basis::Parameters(image),
            terms,
            now,
            elapsed,
            limits,
        }
    }

    /// The one reading of the clock, not before the last refill.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The limits by name.
    pub fn limits(&self) -> impl Iterator<Item = (&LimitName, &Ground)> {
        self.limits.iter()
    }

    /// One limit.
    pub fn ground(&self, limit: &LimitName) -> Option<&Ground> {
        self.limits.get(limit)
    }

    /// True if there is enough for all debits of the batch.
    pub fn fits(&self, batch: &Batch) -> bool {
        batch
            .demands
            .iter()
            .filter(|(_, demand)| demand.debit > 0)
            .all(|(name, demand)| {
                self.limits
                    .get(name)
                    .is_some_and(|ground| ground.level(*demand) >= demand.debit)
            })
    }

    /// What is left of a limit when the batch is booked, and when `amount` more would be there.
    pub fn outlook(&self, limit: &LimitName, batch: &Batch, amount: i128) -> Option<(i128, Wait)> {
        let meter = self.limits.get(limit)?.meter_after(batch.demand(limit));
        Some((meter.tokens, meter.wait_for(0, amount)))
    }

    /// How long the bucket lives after the batch, in seconds.
    pub(super) fn life(&self, batch: &Batch) -> Option<i64> {
        let meters = || {
            self.limits
                .iter()
                .map(|(name, ground)| ground.meter_after(batch.demand(name)))
        };
        let fill = meters().map(|meter| meter.params.fill_time()).max().unwrap_or(0);
        let to_full = meters()
            .map(|meter| meter.params.time_for(meter.params.burst() - meter.tokens))
            .max()
            .unwrap_or(0);
        self.terms.ttl().life_seconds(fill, to_full)
    }
}

fn fresh(params: Params, standing: Standing) -> Ground {
    Ground::new(standing, Meter::full(params), params, 0)
}

/// A clock that is behind the last refill counts as standing at it.
fn forward(image: &Image, now: Timestamp) -> (Timestamp, i128) {
    let now = now.max(image.refilled_at);
    (now, image.elapsed(now))
}
