//! Tokens that are taken ahead of the calls that will need them, so that most calls of a busy bucket cost no write. Pure: no
//! I/O, no waiting, no clock.
//!
//! They were debited in the table before they are spent, so no more is ever admitted in all than the table allows. A
//! call may spend what was debited earlier: over an interval, all processes together admit at most what they had taken
//! ahead when it began beyond burst and refill.

mod rate;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{BucketConfig, Image};

use self::rate::Rate;
use super::super::amounts::{Amounts, add, amount_of};

/// A chunk covers the traffic of this time,
const SHORTEST_HORIZON: Duration = Duration::from_millis(200);
/// and of up to this time where the item is throttled.
const LONGEST_HORIZON: Duration = Duration::from_secs(1);
/// A chunk takes at most this part of what is left in the bucket, so that it shrinks near the limit.
const PART_OF_LEVEL: i128 = 8;
/// A chunk for fewer calls is not worth a write.
const FEWEST_CALLS: i128 = 2;
/// A chunk that nobody has spent from for this long is given back.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// After a bucket was short of tokens, or could not be written, no chunk is taken for this long.
const PAUSE: Duration = Duration::from_secs(1);

/// The tokens taken ahead on one bucket, and what decides how many there are.
#[derive(Debug)]
pub(crate) struct Chunks {
    rate: Rate,
    /// A chunk covers the traffic of this time.
    horizon: Duration,
    held: Option<Chunk>,
    /// A debit for more is under way.
    requested: bool,
    /// No chunk is taken before this, on the clock's time scale.
    paused_until: Duration,
    /// Calls that were admitted from memory and are not counted in the table yet.
    uncounted: u32,
}

#[derive(Debug)]
struct Chunk {
    config: Arc<BucketConfig>,
    /// The bucket after the last debit.
    image: Arc<Image>,
    amounts: Amounts,
    /// When it was last spent from.
    used_at: Duration,
}

/// A debit to make.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Debit {
    pub(crate) amounts: Amounts,
    /// The calls to count with it.
    pub(crate) calls: u32,
}

/// What goes back to the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GiveBack {
    /// By limit, below zero.
    pub(crate) changes: Amounts,
    pub(crate) incarnation: Arc<str>,
    /// The calls to count with it.
    pub(crate) calls: u32,
}

impl Chunks {
    pub(crate) fn new() -> Self {
        Self {
            rate: Rate::default(),
            horizon: SHORTEST_HORIZON,
            held: None,
            requested: false,
            paused_until: Duration::ZERO,
            uncounted: 0,
        }
    }

    /// True if tokens are held.
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// True if nothing is held, requested or still to be counted.
    pub(crate) fn is_settled(&self) -> bool {
        self.held.is_none() && !self.requested && self.uncounted == 0
    }

    /// The tokens held, of all limits together, in millitokens.
    pub(crate) fn tokens(&self) -> i128 {
        let amounts = self.held.iter().flat_map(|chunk| &chunk.amounts);
        amounts.map(|(_, amount)| amount).sum()
    }

    /// A call asks for this: it counts for the rate.
    pub(crate) fn note(&mut self, amounts: &Amounts, now: Duration) {
        self.rate.note(amounts, now);
    }

    /// Takes what a call asks, if all of it is held under the configuration of the call and the bucket still has that
    /// configuration. Returns the bucket after the debit.
    pub(crate) fn spend(
        &mut self,
        amounts: &Amounts,
        config: &Arc<BucketConfig>,
        bucket: Option<&Image>,
        now: Duration,
    ) -> Option<Arc<Image>> {
        if !self.covers(amounts, config, bucket) {
            return None;
        }
        let chunk = self.held.as_mut()?;
        for (limit, amount) in amounts {
            add(&mut chunk.amounts, limit, -amount);
        }
        chunk.used_at = now;
        self.uncounted = self.uncounted.saturating_add(1);
        Some(chunk.image.clone())
    }

    /// True if all of this is held, under the configuration of the call, and the bucket still has that configuration.
    fn covers(&self, amounts: &Amounts, config: &Arc<BucketConfig>, bucket: Option<&Image>) -> bool {
        let is_valid = self.is_valid(bucket) && self.is_for(config);
        self.held.as_ref().filter(|_| is_valid).is_some_and(|chunk| {
            let covers = |(limit, amount): &(LimitName, i128)| amount_of(&chunk.amounts, limit) >= *amount;
            amounts.iter().all(covers)
        })
    }

    /// Books a change in memory: what was used more is taken from the tokens held, what was used less is added to them
    /// up to the size of a chunk. False if it must be written.
    pub(crate) fn absorb(&mut self, changes: &Amounts, incarnation: &str, now: Duration) -> bool {
        let Some(target) = self.rate.traffic_in(self.horizon, now) else {
            return false;
        };
        let Some(chunk) = &mut self.held else {
            return false;
        };
        let fits = |(limit, change): &(LimitName, i128)| {
            let left = amount_of(&chunk.amounts, limit) - change;
            left >= 0 && (*change >= 0 || left <= amount_of(&target.amounts, limit))
        };
        if chunk.image.incarnation() != incarnation || !changes.iter().all(fits) {
            return false;
        }
        for (limit, change) in changes {
            add(&mut chunk.amounts, limit, -change);
        }
        true
    }

    /// True if more should be held; then [`debit`](Self::debit) says how much.
    pub(crate) fn is_low(&mut self, now: Duration) -> bool {
        if self.requested || now < self.paused_until {
            return false;
        }
        let nothing = Amounts::new();
        let held = self.held.as_ref().map_or(&nothing, |chunk| &chunk.amounts);
        self.rate.is_more_than_twice(held, self.horizon, now)
    }

    /// The debit that fills the chunk, as far as the level of each limit allows. It is under way until it
    /// [arrives](Self::arrived) or [fails](Self::failed).
    pub(crate) fn debit(&mut self, level: impl Fn(&LimitName) -> i128, now: Duration) -> Option<Debit> {
        let target = self.rate.traffic_in(self.horizon, now)?;
        let held = |limit| {
            self.held
                .as_ref()
                .map_or(0, |chunk| amount_of(&chunk.amounts, limit))
        };
        let missing = target.amounts.iter().filter_map(|(limit, amount)| {
            let missing = amount - held(limit);
            (missing > 0).then(|| (limit.clone(), missing))
        });
        let missing: Amounts = missing.collect();
        let per_mille = missing
            .iter()
            .map(|(limit, missing)| level(limit).max(0) / PART_OF_LEVEL * 1000 / missing)
            .fold(1000, i128::min);
        if i128::from(target.calls) * per_mille / 1000 < FEWEST_CALLS {
            return None;
        }
        let amounts = missing
            .into_iter()
            .map(|(limit, missing)| (limit, missing * per_mille / 1000));
        let amounts: Amounts = amounts.filter(|(_, amount)| *amount > 0).collect();
        if amounts.is_empty() {
            return None;
        }
        self.requested = true;
        Some(Debit {
            amounts,
            calls: std::mem::take(&mut self.uncounted),
        })
    }

    /// The debit happened and left the bucket like this. What was held of another configuration goes back.
    pub(crate) fn arrived(
        &mut self,
        amounts: Amounts,
        config: Arc<BucketConfig>,
        image: Arc<Image>,
        now: Duration,
    ) -> Option<GiveBack> {
        self.requested = false;
        self.horizon = (self.horizon / 10 * 9).max(SHORTEST_HORIZON);
        let outdated = if self.is_valid(Some(&image)) && self.is_for(&config) {
            None
        } else {
            self.give_back()
        };
        match &mut self.held {
            Some(chunk) => {
                for (limit, amount) in &amounts {
                    add(&mut chunk.amounts, limit, *amount);
                }
                chunk.image = image;
            }
            None => {
                self.held = Some(Chunk {
                    config,
                    image,
                    amounts,
                    used_at: now,
                });
            }
        }
        outdated
    }

    /// The debit was refused or could not be made; its calls are still to be counted.
    pub(crate) fn failed(&mut self, calls: u32, now: Duration) {
        self.requested = false;
        self.uncounted = self.uncounted.saturating_add(calls);
        self.paused_until = now + PAUSE;
    }

    /// The bucket was short of tokens: what is held goes back, and for a while every call asks the table.
    pub(crate) fn short(&mut self, now: Duration) -> Option<GiveBack> {
        self.paused_until = now + PAUSE;
        self.give_back()
    }

    /// The item was throttled: a chunk covers more traffic from now on.
    pub(crate) fn widen(&mut self) {
        self.horizon = (self.horizon * 2).min(LONGEST_HORIZON);
    }

    /// What goes back now: a chunk that nobody spends any more, or one of a bucket that has changed since; and calls that no
    /// debit will count.
    pub(crate) fn unused(&mut self, bucket: Option<&Image>, now: Duration) -> Option<GiveBack> {
        let is_idle = self.idle_at().is_some_and(|idle_at| idle_at <= now);
        let only_counts = self.held.is_none() && !self.requested && self.uncounted > 0;
        if is_idle || only_counts || !self.is_valid(bucket) {
            return self.give_back();
        }
        None
    }

    /// When the chunk goes back if nobody spends from it.
    pub(crate) fn idle_at(&self) -> Option<Duration> {
        self.held.as_ref().map(|chunk| chunk.used_at + IDLE_AFTER)
    }

    /// Gives up what is held.
    pub(crate) fn give_back(&mut self) -> Option<GiveBack> {
        let calls = std::mem::take(&mut self.uncounted);
        let chunk = self.held.take();
        let incarnation = chunk
            .as_ref()
            .map_or("", |chunk| chunk.image.incarnation())
            .into();
        let left = chunk.into_iter().flat_map(|chunk| chunk.amounts);
        let left = left.filter(|(_, amount)| *amount > 0);
        let changes: Amounts = left.map(|(limit, amount)| (limit, -amount)).collect();
        (calls > 0 || !changes.is_empty()).then_some(GiveBack {
            changes,
            incarnation,
            calls,
        })
    }

    /// False if the bucket was seen with other parameters since the chunk was taken, or is another one.
    fn is_valid(&self, bucket: Option<&Image>) -> bool {
        let chunk = self.held.as_ref();
        let same = |chunk: &Chunk| bucket.is_none_or(|bucket| bucket.etag == chunk.image.etag);
        chunk.is_none_or(same)
    }

    fn is_for(&self, config: &Arc<BucketConfig>) -> bool {
        let chunk = self.held.as_ref();
        chunk.is_none_or(|chunk| Arc::ptr_eq(&chunk.config, config) || chunk.config == *config)
    }
}
