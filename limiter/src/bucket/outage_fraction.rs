//! What one process admits by itself while the table is unavailable.
//!
//! What the table admits is booked here too. Otherwise each outage would begin with a full part, and each end of one with what
//! the table has refilled meanwhile: up to twice the limit while the table comes and goes.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use zae_limiter_schema::bucket::{BucketKey, Outlook, Params, RetryAfter, TokenBucket};
use zae_limiter_schema::{LimitName, LimitSet, Mode, Timestamp};

use super::amounts::{Amounts, amount_of};
use super::shared::Shared;
use crate::status::{LimitStatus, Refusal};
use crate::{Error, Result};

/// At most this many buckets have a share. Beyond that, those that are full again make room, and without room nothing is
/// admitted from a new one.
const MAX_SHARED: usize = 10_000;

/// At most this many limits of a bucket have a share: calls may bring limits of their own, and each counts until it is full
/// again.
const MAX_LIMITS: usize = 100;

/// The part of every limit that is this process's own.
#[derive(Debug)]
pub(crate) struct OutageFraction {
    processes: NonZeroU32,
    buckets: Mutex<BTreeMap<BucketKey, Shares>>,
}

type Shares = BTreeMap<LimitName, LocalBucket>;

/// The process's part of one limit.
#[derive(Debug, Clone, Copy)]
struct LocalBucket {
    token_bucket: TokenBucket,
    /// When it was last refilled, on the clock's time scale.
    at: Duration,
}

impl LocalBucket {
    fn full(params: Params, now: Duration) -> Self {
        Self {
            token_bucket: TokenBucket::full(params),
            at: now,
        }
    }

    fn at_most(mut self, most: Option<i128>) -> Self {
        let tokens = self.token_bucket.tokens;
        self.token_bucket.tokens = most.map_or(tokens, |most| tokens.min(most));
        self
    }

    /// Refilled by the whole milliseconds that have passed, before which debt is cut to one burst. Within a millisecond it is
    /// not, so that what is taken and given back at once leaves the debt as it was.
    fn at(self, params: Params, now: Duration) -> Self {
        let elapsed = now.saturating_sub(self.at).as_millis();
        let mut token_bucket = self.token_bucket;
        if elapsed > 0 {
            token_bucket.tokens = token_bucket.tokens.max(-token_bucket.params.burst());
            token_bucket = token_bucket.refilled(i128::try_from(elapsed).unwrap_or(i128::MAX));
        }
        if token_bucket.params != params {
            token_bucket = TokenBucket {
                params,
                tokens: token_bucket.tokens.min(params.burst()),
                remainder: 0,
            };
        }
        let elapsed = Duration::from_millis(u64::try_from(elapsed).unwrap_or(u64::MAX));
        Self {
            token_bucket,
            at: self.at.saturating_add(elapsed),
        }
    }

    /// Above zero is taken, even into debt; below zero is given back.
    fn changed(self, change: i128) -> Self {
        let token_bucket = if change >= 0 {
            self.token_bucket.force_take(0, change)
        } else {
            self.token_bucket.credit(0, -change)
        };
        Self { token_bucket, ..self }
    }

    fn is_full(&self, now: Duration) -> bool {
        let elapsed = millis(now.saturating_sub(self.at));
        self.token_bucket.available(elapsed) >= self.token_bucket.params.burst()
    }
}

/// What a call asks of one bucket.
#[derive(Debug, Clone)]
pub(crate) struct LocalCharge {
    /// The index of the call's part that it belongs to.
    pub(crate) part: usize,
    pub(crate) key: BucketKey,
    pub(crate) limits: LimitSet,
    pub(crate) amounts: Amounts,
    /// What was left until they reset of the limits that do, when the bucket was last seen.
    pub(crate) left: Amounts,
}

impl LocalCharge {
    fn left(&self, limit: &LimitName) -> Option<i128> {
        let left = self.left.iter().find(|(name, _)| name == limit);
        left.map(|(_, left)| (*left).max(0))
    }

    /// The permits that it takes, given back.
    fn released(&self) -> impl Iterator<Item = (LimitName, i128)> {
        let permits = self.amounts.iter().filter(|(limit, _)| {
            let limit = self.limits.get(limit);
            limit.is_some_and(|limit| !limit.kind().can_be_adjusted())
        });
        permits.map(|(limit, amount)| (limit.clone(), -amount))
    }
}

fn outlook(left: i128, retry_after: RetryAfter) -> Outlook {
    Outlook {
        left,
        used: None,
        retry_after,
        reset: None,
        topped_up: 0,
    }
}

impl OutageFraction {
    pub(crate) fn among(processes: NonZeroU32) -> Self {
        Self {
            processes,
            buckets: Mutex::new(BTreeMap::new()),
        }
    }

    fn buckets(&self) -> MutexGuard<'_, BTreeMap<BucketKey, Shares>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is asked of every level, or nothing.
    fn take(&self, asked: &[LocalCharge], now: Duration, calendar: Timestamp) -> Taken {
        let mut buckets = self.buckets();
        let mut after: Vec<(BucketKey, Shares)> = Vec::new();
        let mut statuses = Vec::new();
        for level in asked {
            let present = buckets.get(&level.key);
            let mut shares = Shares::new();
            for limit in &level.limits {
                let name = limit.name();
                let amount = amount_of(&level.amounts, name);
                let Some(params) = limit.kind().part_for(self.processes.get(), calendar) else {
                    let nothing = outlook(0, RetryAfter::Never);
                    statuses.push(LimitStatus::new(
                        &level.key,
                        limit,
                        Mode::Enforce,
                        nothing,
                        amount,
                    ));
                    continue;
                };
                let own = present.and_then(|shares| shares.get(name));
                let most = level
                    .left(name)
                    .map(|left| left / i128::from(self.processes.get()));
                let mut own = own.map_or_else(
                    || LocalBucket::full(params, now).at_most(most),
                    |own| own.at(params, now),
                );
                let wait = own.token_bucket.wait_for(0, amount);
                let here = outlook(own.token_bucket.tokens, wait);
                statuses.push(LimitStatus::new(&level.key, limit, Mode::Enforce, here, amount));
                own.token_bucket = own.token_bucket.force_take(0, amount);
                shares.insert(name.clone(), own);
            }
            let unasked = |(name, own): &(&LimitName, &LocalBucket)| {
                level.limits.get(name).is_none() && !own.is_full(now)
            };
            let unasked = present.into_iter().flatten().filter(unasked);
            shares.extend(unasked.map(|(name, own)| (name.clone(), *own)));
            after.push((level.key.clone(), shares));
        }
        if statuses.iter().any(|status| status.refused) {
            return Taken::TooLittle(statuses);
        }
        let has_room = |buckets: &BTreeMap<BucketKey, Shares>| {
            let new = after.iter().filter(|(key, _)| !buckets.contains_key(key));
            buckets.len() + new.count() <= MAX_SHARED
        };
        if after.iter().any(|(_, shares)| shares.len() > MAX_LIMITS) {
            return Taken::NoRoom;
        }
        if !has_room(&buckets) {
            buckets.retain(|_, shares| !shares.values().all(|own| own.is_full(now)));
            if !has_room(&buckets) {
                return Taken::NoRoom;
            }
        }
        buckets.extend(after);
        Taken::All
    }

    /// What the table admitted to this process, above zero, or got back, below. Other processes may have left it more than its
    /// part: that makes debt, of at most one burst, so that a busy process admits something in a long outage too.
    pub(super) fn book_counted(
        &self,
        key: &BucketKey,
        limits: &LimitSet,
        changes: &[(LimitName, i128)],
        (now, calendar): (Duration, Timestamp),
    ) {
        let mut buckets = self.buckets();
        if !buckets.contains_key(key) && buckets.len() >= MAX_SHARED {
            buckets.retain(|_, shares| !shares.values().all(|own| own.is_full(now)));
            if buckets.len() >= MAX_SHARED {
                return;
            }
        }
        let shares = buckets.entry(key.clone()).or_default();
        for (name, change) in changes {
            let limit = limits.get(name);
            let part = limit.and_then(|limit| limit.kind().part_for(self.processes.get(), calendar));
            let Some(params) = part else {
                continue;
            };
            let own = match shares.get(name) {
                Some(own) => own.at(params, now),
                None if shares.len() >= MAX_LIMITS => continue,
                None => LocalBucket::full(params, now),
            };
            shares.insert(name.clone(), own.changed(*change));
        }
    }

    /// Above zero is taken, even into debt; below zero is given back.
    fn book(&self, changes: &[(BucketKey, Amounts)], now: Duration) {
        let mut buckets = self.buckets();
        for (key, changes) in changes {
            let Some(shares) = buckets.get_mut(key) else {
                continue;
            };
            for (limit, change) in changes {
                if let Some(own) = shares.get_mut(limit) {
                    *own = own.at(own.token_bucket.params, now).changed(*change);
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
pub(crate) struct LocalTokens {
    shared: Arc<Shared>,
    fraction: Arc<OutageFraction>,
    levels: Vec<LocalCharge>,
}

impl LocalTokens {
    /// Takes what is asked of every bucket, or nothing.
    pub(crate) fn take(
        shared: &Arc<Shared>,
        fraction: &Arc<OutageFraction>,
        levels: Vec<LocalCharge>,
        why: &Error,
    ) -> Result<Self> {
        let mut portion = Self {
            shared: shared.clone(),
            fraction: fraction.clone(),
            levels: Vec::new(),
        };
        portion.take_more(levels, why)?;
        Ok(portion)
    }

    /// Takes more of a part, at every level that has the limits. False if nothing of the part is held.
    pub(crate) fn consume(&mut self, part: usize, amounts: &Amounts, why: &Error) -> Result<bool> {
        let levels: Vec<_> = self.levels.iter().filter(|level| level.part == part).collect();
        let Some(own) = levels.first() else {
            return Ok(false);
        };
        let mut asked = amounts.iter().map(|(limit, _)| limit);
        if let Some(unknown) = asked.find(|limit| own.limits.get(limit).is_none()) {
            return Err(Error::invalid(
                "limit",
                unknown.as_str(),
                "the entity has no such limit",
            ));
        }
        let levels = levels.into_iter().map(|level| {
            let here = amounts
                .iter()
                .filter(|(limit, _)| level.limits.get(limit).is_some());
            LocalCharge {
                amounts: here.cloned().collect(),
                ..level.clone()
            }
        });
        let levels = levels.collect();
        self.take_more(levels, why)?;
        Ok(true)
    }

    fn take_more(&mut self, levels: Vec<LocalCharge>, why: &Error) -> Result<()> {
        match self
            .fraction
            .take(&levels, self.shared.clock.elapsed(), self.shared.now())
        {
            Taken::All => {}
            Taken::TooLittle(statuses) => {
                return Err(Error::Refused(Arc::new(Refusal::new(statuses))));
            }
            Taken::NoRoom => return Err(why.clone()),
        }
        for more in levels {
            self.hold(more);
        }
        Ok(())
    }

    /// Holds what was taken of another part.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        for more in std::mem::take(&mut other.levels) {
            self.hold(more);
        }
    }

    fn hold(&mut self, more: LocalCharge) {
        match self.levels.iter_mut().find(|held| held.key == more.key) {
            Some(held) => held.amounts.extend(more.amounts),
            None => self.levels.push(more),
        }
    }

    /// Keeps the tokens and books what was used more or less of each part, in millitokens.
    pub(crate) fn keep(mut self, changes: &[Amounts]) {
        let levels = std::mem::take(&mut self.levels);
        let changes: Vec<_> = levels
            .into_iter()
            .map(|level| {
                let mut own = changes.get(level.part).cloned().unwrap_or_default();
                own.extend(level.released());
                (level.key, own)
            })
            .collect();
        self.fraction.book(&changes, self.shared.clock.elapsed());
    }
}

impl Drop for LocalTokens {
    fn drop(&mut self) {
        let back = std::mem::take(&mut self.levels).into_iter().map(|level| {
            let amounts = level.amounts.into_iter().map(|(limit, amount)| (limit, -amount));
            (level.key, amounts.collect())
        });
        let back: Vec<_> = back.collect();
        self.fraction.book(&back, self.shared.clock.elapsed());
    }
}

fn millis(time: Duration) -> i128 {
    i128::try_from(time.as_millis()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests;
