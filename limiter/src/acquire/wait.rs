//! Waiting for tokens: first come, first served, at every bucket that is short of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zae_limiter_schema::bucket::RetryAfter;

use super::call::Call;
use super::charge::{Charge, bucket_order, charges, check_enabled};
use super::lease::Lease;
use crate::bucket::{Buckets, Turn, Wakeup, wait_jitter};
use crate::status::Refusal;
use crate::{Error, Result};

/// A longer wait is cut to this, so that its deadline can be represented.
const LONGEST_PATIENCE: Duration = Duration::from_hours(24 * 365);

/// Acquires like any other call, and waits if that is refused or if others already wait. A waiter is in the wait queue of the
/// bucket that takes longest. If that is a parent's, it is also in the queue of the entity's own bucket on the same resource,
/// together with the parent's other children. When its turn comes it acquires again, and wakes the next waiters that fit as well.
pub(super) async fn acquire_within(buckets: &Arc<Buckets>, call: &Call, patience: Duration) -> Result<Lease> {
    let deadline = Instant::now() + patience.min(LONGEST_PATIENCE);
    let arrival = buckets.arrival();
    let charges = buckets.in_time(call.key(), charges(buckets, &call.parts)).await?;
    check_enabled(&charges)?;
    let mut waiting = Waiting {
        buckets,
        charges: &charges,
        order: bucket_order(&charges),
        deadline,
        arrival,
        turns: BTreeMap::new(),
        short: None,
        due: None,
    };
    let others_wait = charges.iter().any(others_wait);
    if !others_wait {
        match buckets.acquire_now(call).await {
            Err(Error::Refused(refused)) => waiting.refused(refused)?,
            other => return other,
        }
    }
    loop {
        if let Some(refused) = waiting.wait_for_turn().await? {
            return Err(Error::Refused(Arc::new(refused)));
        }
        if waiting.is_behind() {
            continue;
        }
        waiting.wake_next();
        match buckets.acquire_now(call).await {
            Err(Error::Refused(refused)) => waiting.refused(refused)?,
            other => return other,
        }
    }
}

/// True if calls wait for tokens that this one needs as well.
fn others_wait(charge: &Charge) -> bool {
    charge.can_refuse() && !charge.bucket.waiters().is_empty()
}

/// A call that waits.
struct Waiting<'a> {
    buckets: &'a Arc<Buckets>,
    charges: &'a [Charge],
    /// The order in which all calls take places.
    order: Vec<usize>,
    deadline: Instant,
    /// Its place among all who wait.
    arrival: u64,
    /// Its places in wait queues, by their position in the order.
    turns: BTreeMap<usize, Turn>,
    /// The charge that takes longest.
    short: Option<usize>,
    /// When its tokens should be there, by the last refusal.
    due: Option<Instant>,
}

impl Waiting<'_> {
    /// Waits for its turn wherever others wait, and then for its tokens to be due. A refusal if there is no turn in time; at
    /// once if the calls ahead need everything until then.
    async fn wait_for_turn(&mut self) -> Result<Option<Refusal>> {
        let charges = self.charges;
        for (position, index) in self.order.clone().into_iter().enumerate() {
            let charge = &charges[index];
            let joins = self.is_own_of_short(index) || self.short == Some(index) || others_wait(charge);
            let has_turn = self.turns.get(&position).is_some_and(|turn| !turn.is_waiting());
            if has_turn || !charge.can_refuse() || !joins {
                continue;
            }
            // All calls take places in the same order, so that no call holds a place that another needs while it waits for one itself.
            drop(self.turns.split_off(&(position + 1)));
            let mut turn = match self.turns.remove(&position) {
                Some(turn) => turn,
                None => {
                    let turn = charge.join_wait_queue(self.arrival)?;
                    let refused = self.refusal_behind(index, &turn);
                    if let Some(refused) = refused.filter(|refused| turn.is_behind() && !self.is_due(refused))
                    {
                        return Ok(Some(refused));
                    }
                    turn
                }
            };
            let woken = tokio::select! {
                biased;
                woken = tokio::time::timeout_at(self.deadline, turn.woken()) => woken,
                error = self.buckets.closing() => return Err(error),
            };
            match woken {
                Ok(Wakeup::First) => {}
                // The first has seen that the tokens are there.
                Ok(Wakeup::Combined) => self.due = None,
                Err(_) => return Ok(self.refusal_behind(index, &turn)),
            }
            self.turns.insert(position, turn);
        }
        if let Some(due) = self.due.take() {
            self.sleep_until(due).await?;
        }
        Ok(None)
    }

    /// True for the entity's own bucket on the resource whose tokens take longest; before the first refusal, where others
    /// wait.
    fn is_own_of_short(&self, index: usize) -> bool {
        let part = self.charges[index].part;
        let in_part = |charge: &&Charge| charge.part == part;
        let is_own = index == 0 || self.charges[index - 1].part != part;
        let is_short = match self.short {
            Some(short) => self.charges[short].part == part,
            None => self.charges.iter().filter(in_part).any(others_wait),
        };
        is_own && is_short
    }

    /// The refusal of a call that never had its turn: what the calls ahead want is not available to it. None if there is
    /// enough for all of them.
    fn refusal_behind(&self, index: usize, turn: &Turn) -> Option<Refusal> {
        let ahead = turn.ahead();
        let part = self.charges[index].part;
        let statuses = self.charges.iter().enumerate().flat_map(|(at, charge)| {
            // Those ahead need tokens of the parents too; what else they need is not known.
            if at >= index && charge.part == part {
                charge.statuses_behind(&ahead)
            } else {
                charge.statuses(false)
            }
        });
        let refused = Refusal::new(statuses.collect());
        let is_short = refused.refused_limits().next().is_some();
        is_short.then_some(refused)
    }

    /// True if what a refusal asks for is there before the deadline.
    fn is_due(&self, refused: &Refusal) -> bool {
        match refused.retry_after() {
            RetryAfter::Now => true,
            RetryAfter::After(wait) => Instant::now() + wait <= self.deadline,
            RetryAfter::Never => false,
        }
    }

    /// Keeps its place at the bucket that it waits for and at the entity's own on that resource, and leaves all others. An
    /// error if its tokens will not be available in time.
    fn refused(&mut self, refused: Arc<Refusal>) -> Result<()> {
        let due = match refused.retry_after() {
            RetryAfter::After(wait) if Instant::now() + wait <= self.deadline => Instant::now() + wait,
            _ => return Err(Error::Refused(refused)),
        };
        let longest = refused
            .primary_limit()
            .map(|status| (&status.entity, &status.resource));
        self.short = self.charges.iter().position(|charge| {
            let key = charge.bucket.key();
            Some((&key.entity, &key.resource)) == longest
        });
        self.due = Some(due);
        for (position, index) in self.order.iter().enumerate() {
            if !self.is_own_of_short(*index) && self.short != Some(*index) {
                self.turns.remove(&position);
            }
        }
        self.turns.values_mut().for_each(Turn::step_back_unless_first);
        Ok(())
    }

    /// True if an earlier call has joined the queue since its turn began: that one goes first.
    fn is_behind(&mut self) -> bool {
        self.turns.values().any(Turn::is_waiting)
    }

    /// The next waiters that fit as well ask with it.
    fn wake_next(&self) {
        for (position, turn) in &self.turns {
            let charge = &self.charges[self.order[*position]];
            turn.wake_next(|batch| charge.fits(batch));
        }
    }

    async fn sleep_until(&mut self, due: Instant) -> Result<()> {
        let wait = due.saturating_duration_since(Instant::now());
        let due = due + wait_jitter(wait, &self.buckets.shared().entropy);
        let short = self.short.and_then(|index| self.charges.get(index));
        let released = async {
            match short {
                Some(charge) => charge.bucket.permits_released().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(due.min(self.deadline)) => {}
            // Earlier than by the last refusal.
            () = released => {}
            error = self.buckets.closing() => return Err(error),
        }
        self.turns.values_mut().for_each(Turn::step_back_unless_first);
        Ok(())
    }
}
