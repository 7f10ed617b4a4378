//! Rates: tokens that refill.

use super::super::{Demand, Outlook, Params, Pending, Sharing, TokenBucket};
use super::{Presence, RateRow, Remainder, RowForm, WriteContext};
use crate::LimitName;

/// A rate under a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateState {
    /// Between item and config.
    pub presence: Presence,
    /// The limit as on the item; full where it is not there, empty where it is lost.
    pub token_bucket: TokenBucket,
    /// The parameters after the write.
    pub after: Params,
    /// The ceiling for this decision: the smaller of the old and the new burst.
    pub burst: i128,
    /// What has come back since the last refill, at the old rate.
    pub pending: Pending,
}

impl RateState {
    pub(super) fn new(presence: Presence, token_bucket: TokenBucket, after: Params, elapsed: i128) -> Self {
        let burst = token_bucket.params.burst().min(after.burst());
        Self {
            presence,
            token_bucket,
            after,
            burst,
            pending: token_bucket.pending(elapsed),
        }
    }

    /// A rate that the item does not have.
    pub(super) fn absent(params: Params, presence: Presence) -> Self {
        Self::new(presence, TokenBucket::full(params), params, 0)
    }

    /// A rate that the item has lost: empty at the last refill.
    pub(in super::super) fn lost(params: Params, elapsed: i128) -> Self {
        let empty = TokenBucket {
            tokens: 0,
            ..TokenBucket::full(params)
        };
        Self::new(Presence::Lost, empty, params, elapsed)
    }

    /// The level now, with credits and adjusts booked and debits not.
    pub fn level(&self, demand: Demand) -> i128 {
        let filled = match self.presence {
            Presence::Kept | Presence::Leaving | Presence::Lost => {
                self.token_bucket.tokens + self.pending.whole + demand.credit
            }
            Presence::Fresh | Presence::Broken => self.burst,
        };
        self.burst.min(filled) - demand.adjust
    }

    /// The limit after the write, with its last refill now.
    pub fn after_write(&self, demand: Demand) -> TokenBucket {
        let full = self.level(Demand { adjust: 0, ..demand }) >= self.burst;
        let lost = self.presence == Presence::Lost;
        let remainder = if full || lost || !self.token_bucket.params.same_rate(&self.after) {
            0
        } else {
            self.pending.remainder
        };
        TokenBucket {
            params: self.after,
            tokens: self.level(demand) - demand.debit,
            remainder,
        }
    }

    pub(super) fn outlook(&self, demand: Demand, amount: i128) -> Outlook {
        let token_bucket = self.after_write(demand);
        Outlook {
            left: token_bucket.tokens,
            retry_after: token_bucket.wait_for(0, amount),
            reset: None,
            topped_up: 0,
        }
    }

    pub(super) fn life(&self, demand: Demand) -> (i128, i128) {
        let TokenBucket { params, tokens, .. } = self.after_write(demand);
        (params.fill_time(), params.time_for(params.burst() - tokens))
    }

    /// The row that leaves the time of the last refill alone; none if the demand cannot do with what is on the item.
    pub(in super::super) fn touch_row(
        &self,
        name: &LimitName,
        demand: Demand,
        context: &WriteContext,
    ) -> Option<RateRow> {
        if !demand.moves_tokens() {
            return Some(row(name, RowForm::Recount, demand));
        }
        let Demand {
            credit,
            adjust,
            debit,
            ..
        } = demand;
        let Self {
            token_bucket,
            pending,
            burst,
            ..
        } = self;
        // Settling needs time to have passed; without it nothing has come back either.
        let may_settle = context.elapsed > 0;
        if may_settle && debit > 0 && token_bucket.tokens + credit - adjust < debit {
            return None;
        }
        let ceiling = burst - pending.bound - credit;
        let floor = (debit > 0).then_some(debit + adjust - credit);
        // An old image of a shared bucket says little about now: the condition proves on the server that the limit is
        // not full, and a wrong guess brings a fresh image.
        let guess = context.sharing == Sharing::SharedAndStale && floor.is_none_or(|floor| floor <= ceiling);
        if token_bucket.tokens <= ceiling || guess {
            let form = RowForm::Open {
                floor,
                ceiling,
                add: credit - debit - adjust,
                remainder: Remainder::Keep,
            };
            return Some(row(name, form, demand));
        }
        // Setting a level without moving the time of the last refill rounds down where the refill is not whole; a refill does not.
        // On a shared bucket that millitoken is worth it: while that time stays, every other client's image is usable.
        let rounds = pending.ceiling != pending.whole && !context.sharing.is_shared();
        let margin = self.margin(demand, context);
        if may_settle && (rounds || burst - pending.bound - debit - adjust - margin < 0) {
            return None;
        }
        let form = RowForm::Full {
            floor: burst - pending.whole - credit,
            set: burst - pending.ceiling - debit - adjust - margin,
            remainder: Remainder::Keep,
        };
        Some(row(name, form, demand))
    }

    /// The row of a write that moves the last refill to now.
    pub(in super::super) fn refilled_row(
        &self,
        name: &LimitName,
        demand: Demand,
        context: &WriteContext,
    ) -> RateRow {
        let Demand {
            credit,
            adjust,
            debit,
            ..
        } = demand;
        let Self {
            token_bucket,
            pending,
            burst,
            ..
        } = self;
        let written = context.writes_params && self.presence != Presence::Leaving;
        let params = written.then_some(self.after);
        let form = match self.presence {
            Presence::Fresh | Presence::Broken => RowForm::Fresh {
                set: burst - debit - adjust,
                replaces_broken: self.presence == Presence::Broken,
            },
            Presence::Lost => RowForm::Fresh {
                set: self.level(demand) - debit,
                replaces_broken: true,
            },
            Presence::Kept | Presence::Leaving
                if token_bucket.tokens + pending.ceiling + credit <= *burst =>
            {
                let same_rate = token_bucket.params.same_rate(&self.after);
                RowForm::Open {
                    floor: (debit > 0).then_some(debit + adjust - pending.whole - credit),
                    ceiling: burst - pending.ceiling - credit,
                    add: pending.whole + credit - debit - adjust,
                    remainder: Remainder::Becomes(if same_rate { pending.remainder } else { 0 }),
                }
            }
            Presence::Leaving if demand.is_nothing() => RowForm::Drop {
                floor: burst - pending.whole,
            },
            Presence::Kept | Presence::Leaving => RowForm::Full {
                floor: burst - pending.whole - credit,
                set: burst - debit - adjust - self.margin(demand, context),
                remainder: Remainder::Becomes(0),
            },
        };
        RateRow {
            params,
            ..row(name, form, demand)
        }
    }

    /// The row that takes the limit off the item, if it is full.
    pub(super) fn removal(&self, name: &LimitName) -> Option<RateRow> {
        let floor = self.burst - self.pending.whole;
        let leaves = self.presence == Presence::Leaving && self.token_bucket.tokens >= floor;
        leaves.then(|| row(name, RowForm::Drop { floor }, Demand::default()))
    }

    /// By how much a full limit is left below its burst on a bucket that others write too. It never makes debt.
    fn margin(&self, demand: Demand, context: &WriteContext) -> i128 {
        if !context.sharing.is_shared() || !demand.moves_tokens() {
            return 0;
        }
        let left = self.burst - demand.debit - demand.adjust;
        self.token_bucket.params.margin().min(left.max(0))
    }
}

fn row(limit: &LimitName, form: RowForm, demand: Demand) -> RateRow {
    RateRow {
        limit: limit.clone(),
        form,
        consumed: demand.consumption(),
        params: None,
    }
}
