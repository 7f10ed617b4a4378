//! Waiting for tokens: first come first served, at every charge that is short of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::Checked;
use super::charge::Charge;
use super::lease::Lease;
use crate::bucket::Buckets;
use crate::bucket::Turn;
use zae_limiter_schema::bucket::RetryAfter;

use crate::status::RateLimitExceeded;
use crate::{Error, Result};

/// More patience than this is no different from it, and a moment that far ahead can still be told.
const LONGEST_PATIENCE: Duration = Duration::from_hours(24 * 365);

/// Tries again when the tokens should be there. Whoever waits stands in line at the entity's own bucket and, while a
/// parent is what takes longest, at that parent's, together with the parent's other children.
pub(super) async fn acquire_within(
    buckets: &Arc<Buckets>,
    checked: &Checked,
    patience: Duration,
) -> Result<Lease> {
    let deadline = Instant::now() + patience.min(LONGEST_PATIENCE);
    let arrival = buckets.arrival();
    let charges = buckets.in_time(buckets.charges(checked)).await?;
    let mut waiting = Waiting {
        buckets,
        charges: &charges,
        deadline,
        arrival,
        turns: BTreeMap::new(),
        short: None,
    };
    loop {
        let tried = match waiting.stand_in_line().await {
            Ok(None) => buckets.acquire_now(checked).await,
            Ok(Some(refused)) => return Err(Error::RateLimitExceeded(Box::new(refused))),
            Err(error) => Err(error),
        };
        let refused = match tried {
            Err(Error::RateLimitExceeded(refused)) => refused,
            Err(error) if error.is_unavailable() => {
                // Nobody behind would be told anything else, only later.
                waiting.turns.values().for_each(|turn| turn.send_away(&error));
                return Err(error);
            }
            other => return other,
        };
        match refused.retry_after() {
            RetryAfter::After(wait) if Instant::now() + wait <= deadline => {
                if waiting.keep_places(&refused) {
                    waiting.sleep(wait).await?;
                }
            }
            _ => return Err(Error::RateLimitExceeded(refused)),
        }
    }
}

/// One who waits.
struct Waiting<'a> {
    buckets: &'a Arc<Buckets>,
    charges: &'a [Charge],
    deadline: Instant,
    /// Its place among all who wait.
    arrival: u64,
    /// The places in line, by charge, each the first there.
    turns: BTreeMap<usize, Turn>,
    /// The charge that takes longest.
    short: Option<usize>,
}

impl Waiting<'_> {
    /// Waits for its turn wherever others wait, from the entity's own bucket up. A refusal if there is no turn in time.
    async fn stand_in_line(&mut self) -> Result<Option<RateLimitExceeded>> {
        let charges = self.charges;
        for (index, charge) in charges.iter().enumerate() {
            let joins = index == 0 || self.short == Some(index) || !charge.queue.line().is_empty();
            if self.turns.contains_key(&index) || charge.amounts.is_empty() || !joins {
                continue;
            }
            // Everybody takes places from below, so that nobody holds one that another needs while waiting for his.
            drop(self.turns.split_off(&index));
            let mut turn = charge.queue.line().join(self.arrival, &charge.amounts);
            let come = tokio::select! {
                biased;
                come = tokio::time::timeout_at(self.deadline, turn.comes()) => come,
                error = self.buckets.closing() => return Err(error),
            };
            match come {
                Ok(come) => come?,
                Err(_) => return Ok(self.refusal_behind(index, &turn)),
            }
            self.turns.insert(index, turn);
        }
        Ok(None)
    }

    /// How the limits stand for one who never had its turn: what those ahead want is not there for it. Nothing, if
    /// there is enough for all of them.
    fn refusal_behind(&self, index: usize, turn: &Turn) -> Option<RateLimitExceeded> {
        let ahead = turn.ahead();
        let statuses = self.charges.iter().enumerate().flat_map(|(at, charge)| {
            if at < index {
                charge.statuses(false)
            } else {
                charge.statuses_behind(&ahead)
            }
        });
        let refused = RateLimitExceeded::new(statuses.collect());
        let is_short = refused.violations().next().is_some();
        is_short.then_some(refused)
    }

    /// Leaves all places but its own and the one where it waits. False if it has no place there yet.
    fn keep_places(&mut self, refused: &RateLimitExceeded) -> bool {
        let longest = refused.primary_violation().map(|status| &status.entity);
        self.short = self
            .charges
            .iter()
            .position(|charge| Some(&charge.queue.key().entity) == longest);
        let short = self.short;
        self.turns.retain(|index, _| *index == 0 || Some(*index) == short);
        short.is_none_or(|index| self.turns.contains_key(&index))
    }

    async fn sleep(&self, time: Duration) -> Result<()> {
        tokio::select! {
            biased;
            () = tokio::time::sleep(time) => Ok(()),
            error = self.buckets.closing() => Err(error),
        }
    }
}
