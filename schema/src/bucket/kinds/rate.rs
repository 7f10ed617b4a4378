//! Rates: tokens that refill.

use super::super::{
    Action, Attr, Demand, Field, Outlook, Params, Pending, Scalar, Sharing, Statement, TokenBucket,
};
use super::{Held, Presence, RateRow, Remainder, RowForm, WriteContext};
use crate::{LimitName, Rate};

/// A rate of a bucket as last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateImage {
    /// Parameters, level and remainder.
    pub token_bucket: TokenBucket,
    /// Net millitokens consumed since the limit came to the bucket (`tc`).
    pub consumed: i128,
}

impl RateImage {
    /// Makes it full. What earlier calls give back ends at its burst, as it does after any refill.
    pub(super) fn reset(&self, name: &LimitName, statement: &mut Statement) {
        let attr = |field| Attr::Limit(name.clone(), field);
        let burst = Scalar::Number(self.token_bucket.params.burst());
        statement.actions.extend([
            Action::Set(attr(Field::Tokens), burst),
            Action::Remove(attr(Field::Remainder)),
        ]);
    }
}

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
    pub(super) fn lost(params: Params, elapsed: i128) -> Self {
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
            used: None,
            retry_after: token_bucket.wait_for(0, amount),
            reset: None,
            topped_up: 0,
        }
    }

    /// What comes back when calls give back this much. `held` says that they took it from a limit of another kind that had
    /// this name.
    pub(super) fn given_back(amount: i128, held: Option<Held>, same_bucket: bool) -> Demand {
        match held {
            Some(_) => Demand::default(),
            None if same_bucket => Demand::credit(amount),
            None => Demand::recount(-amount),
        }
    }

    pub(super) fn life(&self, demand: Demand) -> (i128, i128) {
        let TokenBucket { params, tokens, .. } = self.after_write(demand);
        (params.fill_time(), params.time_for(params.burst() - tokens))
    }

    /// The row that leaves the time of the last refill alone; none if the demand cannot do with what is on the item.
    pub(super) fn touch_row(
        &self,
        name: &LimitName,
        demand: Demand,
        context: &WriteContext,
    ) -> Option<RateRow> {
        if !demand.moves_tokens() {
            return Some(row(name, RowForm::Recount, demand));
        }
        let (credit, taken) = (demand.credit, demand.taken());
        let (tokens, pending, burst) = (self.token_bucket.tokens, self.pending, self.burst);
        // A refill needs time to have passed; without it nothing has come back either.
        let may_refill = context.elapsed > 0;
        if may_refill && demand.debit > 0 && tokens + credit < taken {
            return None;
        }
        let ceiling = burst - pending.bound - credit;
        let floor = (demand.debit > 0).then_some(taken - credit);
        // An old image of a shared bucket says little about now: the condition proves on the server that the limit is
        // not full, and a wrong guess brings a fresh image.
        let guess = context.sharing == Sharing::SharedAndStale && floor.is_none_or(|floor| floor <= ceiling);
        if tokens <= ceiling || guess {
            let form = RowForm::Open {
                floor,
                ceiling,
                add: credit - taken,
                remainder: Remainder::Keep,
            };
            return Some(row(name, form, demand));
        }
        // Setting a level without moving the time of the last refill rounds down where the refill is not whole; a refill does not.
        // On a shared bucket that millitoken is worth it: while that time stays, every other client's image is usable.
        let rounds = pending.ceiling != pending.whole && !context.sharing.is_shared();
        let margin = self.margin(demand, context);
        if may_refill && (rounds || burst - pending.bound - taken - margin < 0) {
            return None;
        }
        let form = RowForm::Full {
            floor: burst - pending.whole - credit,
            set: burst - pending.ceiling - taken - margin,
            remainder: Remainder::Keep,
        };
        Some(row(name, form, demand))
    }

    /// The row of a write that moves the last refill to now.
    pub(super) fn refilled_row(&self, name: &LimitName, demand: Demand, context: &WriteContext) -> RateRow {
        let (credit, taken) = (demand.credit, demand.taken());
        let (token_bucket, pending, burst) = (self.token_bucket, self.pending, self.burst);
        let written = context.writes_params && self.presence != Presence::Leaving;
        let params = written.then_some(self.after);
        let form = match self.presence {
            Presence::Fresh | Presence::Broken => RowForm::Fresh {
                set: burst - taken,
                replaces_broken: self.presence == Presence::Broken,
            },
            Presence::Lost => RowForm::Fresh {
                set: self.level(demand) - demand.debit,
                replaces_broken: true,
            },
            Presence::Kept | Presence::Leaving if token_bucket.tokens + pending.ceiling + credit <= burst => {
                let same_rate = token_bucket.params.same_rate(&self.after);
                RowForm::Open {
                    floor: (demand.debit > 0).then_some(taken - pending.whole - credit),
                    ceiling: burst - pending.ceiling - credit,
                    add: pending.whole + credit - taken,
                    remainder: Remainder::Becomes(if same_rate { pending.remainder } else { 0 }),
                }
            }
            Presence::Leaving if demand.is_nothing() => RowForm::Drop {
                floor: burst - pending.whole,
            },
            Presence::Kept | Presence::Leaving => RowForm::Full {
                floor: burst - pending.whole - credit,
                set: burst - taken - self.margin(demand, context),
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
        let left = self.burst - demand.taken();
        self.token_bucket.params.margin().min(left.max(0))
    }
}

/// The part of a rate that one of several processes may use on its own.
pub(super) fn part_for(rate: &Rate, processes: i128) -> Option<Params> {
    let whole = Params::from(rate);
    let (capacity, burst) = ((whole.capacity() / processes).max(1), whole.burst() / processes);
    Params::new(capacity, burst, whole.amount(), whole.period() * processes)
        .or_else(|| Params::new(capacity, burst, whole.amount() / processes, whole.period()))
}

fn row(limit: &LimitName, form: RowForm, demand: Demand) -> RateRow {
    RateRow {
        limit: limit.clone(),
        form,
        consumed: demand.consumption(),
        params: None,
    }
}
