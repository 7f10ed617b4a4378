//! What one process admits on its own account while the table cannot be reached.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zae_limiter_schema::bucket::{BucketKey, Meter, Params, Wait};
use zae_limiter_schema::{Limit, LimitName, LimitSet};

use super::acquire::Checked;
use super::lanes::Hub;
use super::level::MOST_PARENTS;
use super::status::{LimitStatus, RateLimitExceeded};
use super::ticket::Changes;
use crate::{Error, Result};

/// So many buckets have a share. Beyond that, those that are full again make room, and without room nothing is admitted.
const MOST_SHARED: usize = 10_000;

/// The part of every limit that is this process's own.
#[derive(Debug)]
pub(super) struct Share {
    processes: NonZeroU32,
    buckets: Mutex<BTreeMap<BucketKey, Shares>>,
}

type Shares = BTreeMap<LimitName, Own>;

/// The process's part of one limit.
#[derive(Debug, Clone, Copy)]
struct Own {
    meter: Meter,
    /// When it was last refilled, on the clock's time scale.
    at: Duration,
}

impl Own {
    fn full(params: Params, now: Duration) -> Self {
        Self {
            meter: Meter::full(params),
            at: now,
        }
    }

    fn at(self, params: Params, now: Duration) -> Self {
        let mut meter = self.meter.refilled(millis(now.saturating_sub(self.at)));
        if meter.params != params {
            meter = Meter {
                params,
                tokens: meter.tokens.min(params.burst()),
                remainder: 0,
            };
        }
        Self { meter, at: now }
    }

    fn is_full(&self, now: Duration) -> bool {
        let elapsed = millis(now.saturating_sub(self.at));
        self.meter.available(elapsed) >= self.meter.params.burst()
    }
}

/// One bucket that a call concerns.
#[derive(Debug, Clone)]
struct Asked {
    key: BucketKey,
    limits: LimitSet,
    amounts: Changes,
}

impl Share {
    pub(super) fn among(processes: NonZeroU32) -> Self {
        Self {
            processes,
            buckets: Mutex::new(BTreeMap::new()),
        }
    }

    fn buckets(&self) -> MutexGuard<'_, BTreeMap<BucketKey, Shares>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A limit divided among the processes, rounded down: all together never have more than there is. Nothing if no
    /// millitoken is left.
    fn part(&self, limit: &Limit) -> Option<Params> {
        let whole = Params::from(limit);
        let processes = i128::from(self.processes.get());
        let capacity = (whole.capacity() / processes).max(1);
        let burst = whole.burst() / processes;
        Params::new(capacity, burst, whole.amount(), whole.period() * processes)
            .or_else(|| Params::new(capacity, burst, whole.amount() / processes, whole.period()))
    }

    /// Takes what is asked of every level, or nothing.
    fn take(&self, asked: &[Asked], now: Duration) -> Taken {
        let mut buckets = self.buckets();
        let mut after: Vec<(BucketKey, Shares)> = Vec::new();
        let mut statuses = Vec::new();
        for level in asked {
            let present = buckets.get(&level.key);
            let mut shares = Shares::new();
            for limit in &level.limits {
                let name = limit.name();
                let amount = level.amounts.iter().find(|(asked, _)| asked == name);
                let amount = amount.map_or(0, |(_, amount)| *amount);
                let Some(params) = self.part(limit) else {
                    statuses.push(LimitStatus::new(&level.key, limit, 0, amount, Wait::Never));
                    continue;
                };
                let own = present.and_then(|shares| shares.get(name));
                let mut own = own.map_or_else(|| Own::full(params, now), |own| own.at(params, now));
                let wait = own.meter.wait_for(0, amount);
                statuses.push(LimitStatus::new(
                    &level.key,
                    limit,
                    own.meter.tokens,
                    amount,
                    wait,
                ));
                own.meter = own.meter.force_take(0, amount);
                shares.insert(name.clone(), own);
            }
            after.push((level.key.clone(), shares));
        }
        if statuses.iter().any(|status| status.exceeded) {
            return Taken::TooLittle(statuses);
        }
        if buckets.len() + after.len() > MOST_SHARED {
            buckets.retain(|_, shares| !shares.values().all(|own| own.is_full(now)));
            if buckets.len() + after.len() > MOST_SHARED {
                return Taken::NoRoom;
            }
        }
        buckets.extend(after);
        Taken::All
    }

    /// Above zero is taken whether it is there or not, below zero is given back.
    fn book(&self, changes: &[(BucketKey, Changes)], now: Duration) {
        let mut buckets = self.buckets();
        for (key, changes) in changes {
            let Some(shares) = buckets.get_mut(key) else {
                continue;
            };
            for (limit, change) in changes {
                if let Some(own) = shares.get_mut(limit) {
                    let refilled = own.at(own.meter.params, now);
                    let meter = if *change >= 0 {
                        refilled.meter.force_take(0, *change)
                    } else {
                        refilled.meter.credit(0, -*change)
                    };
                    *own = Own { meter, at: now };
                }
            }
        }
    }
}

enum Taken {
    All,
    TooLittle(Vec<LimitStatus>),
    NoRoom,
}

/// Tokens of the process's own part. Dropped, they go back to it.
#[derive(Debug)]
pub(super) struct OwnPortion {
    hub: Arc<Hub>,
    share: Arc<Share>,
    levels: Vec<Asked>,
}

impl OwnPortion {
    /// Takes what the call asks, by the limits that were known last.
    pub(super) fn take(hub: &Arc<Hub>, share: &Arc<Share>, checked: &Checked, why: &Error) -> Result<Self> {
        let levels = known_levels(hub, checked).ok_or_else(|| why.clone())?;
        let mut portion = Self {
            hub: hub.clone(),
            share: share.clone(),
            levels: Vec::new(),
        };
        portion.take_more(levels, why)?;
        Ok(portion)
    }

    /// Takes so much more of a limit, at every level that has it.
    pub(super) fn consume(&mut self, limit: &LimitName, amount: i128, why: &Error) -> Result<()> {
        if self
            .levels
            .first()
            .is_some_and(|own| own.limits.get(limit).is_none())
        {
            return Err(Error::invalid(
                "limit",
                limit.as_str(),
                "the entity has no such limit",
            ));
        }
        let levels = self.levels.iter().map(|level| Asked {
            amounts: match level.limits.get(limit) {
                Some(_) => vec![(limit.clone(), amount)],
                None => Vec::new(),
            },
            ..level.clone()
        });
        self.take_more(levels.collect(), why)
    }

    fn take_more(&mut self, levels: Vec<Asked>, why: &Error) -> Result<()> {
        match self.share.take(&levels, self.hub.clock.elapsed()) {
            Taken::All => {}
            Taken::TooLittle(statuses) => {
                return Err(Error::RateLimitExceeded(Box::new(RateLimitExceeded::new(
                    statuses,
                ))));
            }
            Taken::NoRoom => return Err(why.clone()),
        }
        if self.levels.is_empty() {
            self.levels = levels;
            return Ok(());
        }
        for (held, more) in self.levels.iter_mut().zip(levels) {
            held.amounts.extend(more.amounts);
        }
        Ok(())
    }

    /// Keeps the tokens and books what was used more or less, in millitokens.
    pub(super) fn keep(mut self, changes: &Changes) {
        let levels = std::mem::take(&mut self.levels);
        let changes: Vec<_> = levels
            .into_iter()
            .map(|level| (level.key, changes.clone()))
            .collect();
        self.share.book(&changes, self.hub.clock.elapsed());
    }
}

impl Drop for OwnPortion {
    fn drop(&mut self) {
        let back = std::mem::take(&mut self.levels).into_iter().map(|level| {
            let amounts = level.amounts.into_iter().map(|(limit, amount)| (limit, -amount));
            (level.key, amounts.collect())
        });
        let back: Vec<_> = back.collect();
        self.share.book(&back, self.hub.clock.elapsed());
    }
}

/// The levels of a call by what was known last, however old; nothing where a level has no known limits, or the call asks
/// for one that the entity does not have.
fn known_levels(hub: &Hub, checked: &Checked) -> Option<Vec<Asked>> {
    let mut levels: Vec<Asked> = Vec::new();
    let mut next = Some(checked.entity.clone());
    while let Some(entity) = next {
        let own = levels.is_empty();
        let known = hub.cache.known(&entity, &checked.resource);
        let given = checked.limits.as_ref().filter(|_| own);
        let limits = given.unwrap_or(&known.limits).clone();
        let has = |limit: &LimitName| limits.get(limit).is_some();
        if limits.is_empty() || (own && !checked.amounts.iter().all(|(limit, _)| has(limit))) {
            return None;
        }
        let amounts = checked.amounts.iter().filter(|(limit, _)| has(limit));
        levels.push(Asked {
            key: BucketKey {
                entity,
                resource: checked.resource.clone(),
            },
            amounts: amounts.cloned().collect(),
            limits,
        });
        next = known.parent.clone().filter(|_| known.cascade);
        if levels.len() > MOST_PARENTS {
            return None;
        }
    }
    Some(levels)
}

fn millis(time: Duration) -> i128 {
    i128::try_from(time.as_millis()).unwrap_or(i128::MAX)
}
