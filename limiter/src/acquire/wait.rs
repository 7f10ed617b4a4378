//! Waiting for tokens: first come, first served, at every bucket that is short of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zae_limiter_schema::bucket::RetryAfter;

use super::call::Call;
use super::charge::{Charge, check_enabled};
use super::lease::Lease;
use crate::bucket::{Buckets, Turn, Wakeup, wait_jitter};
use crate::status::Refusal;
use crate::{Error, Result};

/// A longer wait is cut to this, so that its deadline can be represented.
const LONGEST_PATIENCE: Duration = Duration::from_hours(24 * 365);

/// Asks like everybody else; only one that is refused waits, and one that finds others waiting. A waiter is in the wait
/// queue of the entity's own bucket and, while a parent is what takes longest, in that parent's, together with the parent's
/// other children. When its turn comes it asks again, and wakes the next waiters that fit as well.
pub(super) async fn acquire_within(buckets: &Arc<Buckets>, call: &Call, patience: Duration) -> Result<Lease> {
    let deadline = Instant::now() + patience.min(LONGEST_PATIENCE);
    let arrival = buckets.arrival();
    let charges = buckets.in_time(&call.key, buckets.charges(call)).await?;
    check_enabled(&charges)?;
    let mut waiting = Waiting {
        buckets,
        charges: &charges,
        deadline,
        arrival,
        turns: BTreeMap::new(),
        short: None,
        due: None,
    };
    let others_wait = charges
        .iter()
        .any(|charge| charge.can_refuse() && !charge.bucket.waiters().is_empty());
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

/// A call that waits.
struct Waiting<'a> {
    buckets: &'a Arc<Buckets>,
    charges: &'a [Charge],
    deadline: Instant,
    /// Its place among all who wait.
    arrival: u64,
    /// Its places in wait queues, by charge.
    turns: BTreeMap<usize, Turn>,
    /// The charge that takes longest.
    short: Option<usize>,
    /// When its tokens should be there, by the last refusal.
    due: Option<Instant>,
}

impl Waiting<'_> {
    /// Waits for its turn wherever others wait, from the entity's own bucket up, and then for its tokens to be due. A
    /// refusal if there is no turn in time; at once if the calls ahead need everything until then.
    async fn wait_for_turn(&mut self) -> Result<Option<Refusal>> {
        let charges = self.charges;
        for (index, charge) in charges.iter().enumerate() {
            let joins = index == 0 || self.short == Some(index) || !charge.bucket.waiters().is_empty();
            let has_turn = self.turns.get(&index).is_some_and(|turn| !turn.is_waiting());
            if has_turn || !charge.can_refuse() || !joins {
                continue;
            }
            // All calls take places in the same order, so that no call holds a place that another needs while it waits for one itself.
            drop(self.turns.split_off(&(index + 1)));
            let mut turn = match self.turns.remove(&index) {
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
            self.turns.insert(index, turn);
        }
        if let Some(due) = self.due.take() {
            self.sleep_until(due).await?;
        }
        Ok(None)
    }

    /// The refusal of a call that never had its turn: what the calls ahead want is not available to it. None if there is
    /// enough for all of them.
    fn refusal_behind(&self, index: usize, turn: &Turn) -> Option<Refusal> {
        let ahead = turn.ahead();
        let statuses = self.charges.iter().enumerate().flat_map(|(at, charge)| {
            if at < index {
                charge.statuses(false)
            } else {
                charge.statuses_behind(&ahead)
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

    /// Keeps its place at the entity's own bucket and at the one it waits for, and leaves all others. An error if its
    /// tokens will not be available in time.
    fn refused(&mut self, refused: Arc<Refusal>) -> Result<()> {
        let due = match refused.retry_after() {
            RetryAfter::After(wait) if Instant::now() + wait <= self.deadline => Instant::now() + wait,
            _ => return Err(Error::Refused(refused)),
        };
        let longest = refused.primary_limit().map(|status| &status.entity);
        let short = self
            .charges
            .iter()
            .position(|charge| Some(&charge.bucket.key().entity) == longest);
        self.turns.retain(|index, _| *index == 0 || Some(*index) == short);
        self.turns.values_mut().for_each(Turn::step_back_unless_first);
        (self.short, self.due) = (short, Some(due));
        Ok(())
    }

    /// True if an earlier call has joined the queue since its turn began: that one goes first.
    fn is_behind(&mut self) -> bool {
        self.turns.values().any(Turn::is_waiting)
    }

    /// The next waiters that fit as well ask with it.
    fn wake_next(&self) {
        for (index, turn) in &self.turns {
            let charge = &self.charges[*index];
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
