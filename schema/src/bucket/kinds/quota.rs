//! Quotas: an amount per period.
//!
//! The item has what was used (`us`) and when the period ends (`pe`). Within a period calls add to what was used, so that they
//! do not disturb each other. The first call after the end begins the next period in the same write; nothing else resets a
//! quota. The period on the item counts, whatever a client's clock or time zone database says about boundaries: a clock that
//! is behind cannot open a period again.
//!
//! A top-up adds to what may be used in one period (`tu`), and stores that period's end beside it (`te`): it counts while the
//! item has that end, and nobody has to remove it.

use std::time::Duration;

use super::super::{
    Action, Attr, Condition, Demand, Outlook, Params, QuotaField, Reset, RetryAfter, Scalar, Statement,
};
use super::{Held, Presence, WriteContext};
use crate::{LimitName, Quota, QuotaPeriod, Thresholds, Timestamp};

/// All refused calls are tried again when the period ends: within this many milliseconds of it.
const RETRY_SPREAD_MILLIS: i64 = 3_000;

/// A quota of a bucket as last seen, in millitokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaImage {
    /// What may be used in a period (`cp`).
    pub amount: i128,
    /// The period (`sc`).
    pub period: QuotaPeriod,
    /// The percentages of the amount at which an event is sent (`al`).
    pub alerts: Thresholds,
    /// What was used in the period (`us`).
    pub used: i128,
    /// When the period ends (`pe`). None has begun where it is missing.
    pub period_end: Option<Timestamp>,
    /// Net millitokens consumed since the limit came to the bucket (`tc`).
    pub consumed: i128,
    /// What was added to the amount (`tu`),
    pub topped_up: i128,
    /// in the period that ends then (`te`).
    pub topped_up_until: Option<Timestamp>,
}

impl QuotaImage {
    /// True if it has these parameters.
    pub(super) fn has(&self, quota: &Quota) -> bool {
        self.amount == quota.amount().millis()
            && self.period == *quota.period()
            && self.alerts == quota.alerts()
    }

    /// What is used at this time, and the end of the period if one runs.
    pub fn at(&self, now: Timestamp) -> (i128, Option<Timestamp>) {
        match self.period_end {
            Some(end) if now < end => (self.used, Some(end)),
            _ => (0, None),
        }
    }

    /// What may still be used at this time.
    pub fn left_at(&self, now: Timestamp) -> i128 {
        self.amount + self.topped_up_at(now) - self.at(now).0
    }

    /// What may be used beyond the amount at this time.
    pub fn topped_up_at(&self, now: Timestamp) -> i128 {
        let (_, open_until) = self.at(now);
        if open_until.is_some() && open_until == self.topped_up_until {
            self.topped_up
        } else {
            0
        }
    }

    /// Makes its period one of which nothing is used. It ends a millisecond later, and so is another one than that of
    /// earlier calls. Nothing is used of a quota whose period has ended.
    pub(super) fn reset(&self, name: &LimitName, now: Timestamp, statement: &mut Statement) {
        let attr = |field| Attr::Quota(name.clone(), field);
        let (_, open_until) = self.at(now);
        let Some(end) = open_until else { return };
        let period_end = attr(QuotaField::PeriodEnd);
        statement
            .conditions
            .push(Condition::Is(period_end.clone(), millis(end)));
        statement.actions.extend([
            Action::Set(period_end, millis(end.plus_millis(1))),
            Action::Set(attr(QuotaField::Used), Scalar::Number(0)),
            Action::Remove(attr(QuotaField::ToppedUp)),
            Action::Remove(attr(QuotaField::ToppedUpUntil)),
        ]);
    }
}

/// A quota under a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaState {
    pub(super) presence: Presence,
    /// What may be used after the write.
    amount: i128,
    /// The period after the write.
    period: QuotaPeriod,
    /// The item has another period.
    period_changes: bool,
    /// The percentages of the amount at which an event is sent, after the write.
    alerts: Thresholds,
    /// The item has such percentages.
    has_alerts: bool,
    /// What is used in the period that runs.
    used: i128,
    /// When the period that runs ends; none runs, or it has ended.
    open_until: Option<Timestamp>,
    /// The end of the period on the item, ended or not.
    seen_end: Option<Timestamp>,
    /// What may be used beyond the amount in the period that runs.
    topped_up: i128,
    /// The end of the period of the last top-up on the item.
    seen_top_up: Option<Timestamp>,
    now: Timestamp,
}

impl QuotaState {
    pub(super) fn absent(quota: &Quota, presence: Presence, now: Timestamp) -> Self {
        let lost = presence == Presence::Lost;
        Self {
            presence,
            amount: quota.amount().millis(),
            period: quota.period().clone(),
            period_changes: false,
            alerts: quota.alerts(),
            has_alerts: false,
            used: if lost { quota.amount().millis() } else { 0 },
            open_until: lost.then(|| quota.period().end_after(now)),
            seen_end: None,
            topped_up: 0,
            seen_top_up: None,
            now,
        }
    }

    pub(super) fn kept(on_item: &QuotaImage, quota: &Quota, now: Timestamp) -> Self {
        Self {
            amount: quota.amount().millis(),
            period: quota.period().clone(),
            period_changes: on_item.period != *quota.period(),
            alerts: quota.alerts(),
            ..Self::as_it_is(on_item, Presence::Kept, now)
        }
    }

    pub(super) fn as_it_is(on_item: &QuotaImage, presence: Presence, now: Timestamp) -> Self {
        let (used, open_until) = on_item.at(now);
        Self {
            presence,
            amount: on_item.amount,
            period: on_item.period.clone(),
            period_changes: false,
            alerts: on_item.alerts,
            has_alerts: !on_item.alerts.is_empty(),
            used,
            open_until,
            seen_end: on_item.period_end,
            topped_up: on_item.topped_up_at(now),
            seen_top_up: on_item.topped_up_until,
            now,
        }
    }

    /// When the period ends that a call is in now.
    pub fn period_end(&self) -> Timestamp {
        match self.open_until {
            Some(end) if !self.period_changes => end,
            _ => self.period.end_after(self.now),
        }
    }

    /// What is used in the period, in millitokens.
    pub const fn used(&self) -> i128 {
        self.used
    }

    /// True if what is held belongs to the period that runs.
    fn is_open(&self, held: Option<Held>) -> bool {
        match (held, self.open_until) {
            (Some(Held::Period(end)), Some(open)) => end == open,
            _ => false,
        }
    }

    /// What comes back when calls give back this much: nothing of an earlier period.
    pub(super) fn given_back(&self, amount: i128, held: Option<Held>, same_bucket: bool) -> Demand {
        if same_bucket && self.is_open(held) {
            Demand::credit(amount)
        } else {
            Demand::recount(-amount)
        }
    }

    /// What is used of a period is never below zero.
    fn credit(&self, demand: Demand) -> i128 {
        demand.credit.min(self.used.max(0))
    }

    fn used_after(&self, demand: Demand) -> i128 {
        self.used - self.credit(demand) + demand.taken()
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.presence == Presence::Leaving
    }

    /// What may be used in the period, in millitokens: the amount, and what it was topped up with.
    pub const fn allowed(&self) -> i128 {
        self.amount + self.topped_up
    }

    pub(super) fn level(&self, demand: Demand) -> i128 {
        self.allowed() + demand.top_up - self.used_after(Demand { debit: 0, ..demand })
    }

    pub(super) fn outlook(&self, demand: Demand, amount: i128) -> Outlook {
        let allowed = self.allowed() + demand.top_up;
        let left = allowed - self.used_after(demand);
        let retry_after = if amount > self.amount.max(allowed) {
            RetryAfter::Never
        } else if left >= amount {
            RetryAfter::Now
        } else {
            let wait = self.period_end().since(self.now);
            RetryAfter::after_millis(i128::from(wait.saturating_add(spread(self.now))))
        };
        Outlook {
            left,
            used: Some(self.used_after(demand)),
            retry_after,
            reset: Some(self.reset()),
            topped_up: self.topped_up + demand.top_up,
        }
    }

    fn reset(&self) -> Reset {
        let at = self.period_end();
        let millis = u64::try_from(at.since(self.now)).unwrap_or(0);
        Reset {
            at,
            after: Duration::from_millis(millis),
            period: Duration::from_secs(self.period.length_seconds(self.now)),
        }
    }

    pub(super) fn until_unused(&self, demand: Demand) -> i128 {
        if self.used_after(demand) > 0 || self.topped_up + demand.top_up > 0 {
            i128::from(self.period_end().since(self.now))
        } else {
            0
        }
    }

    pub(super) fn row(&self, name: &LimitName, demand: Demand, context: &WriteContext) -> Option<QuotaRow> {
        let (credit, taken) = (self.credit(demand), demand.taken());
        let form = match self.presence {
            Presence::Fresh | Presence::Broken => QuotaForm::Fresh {
                used: taken,
                end: (taken > 0 || demand.top_up > 0).then(|| self.period_end()),
            },
            Presence::Lost => QuotaForm::Fresh {
                used: self.used_after(demand),
                end: Some(self.period_end()),
            },
            Presence::Leaving if demand.is_nothing() => {
                // What is used still counts should the limit come back.
                return (self.open_until.is_none() && context.writes_params).then(|| QuotaRow {
                    limit: name.clone(),
                    form: QuotaForm::Drop { seen: self.seen_end },
                    top_up: None,
                    consumed: 0,
                    params: None,
                });
            }
            Presence::Kept | Presence::Leaving => match self.open_until {
                Some(end) => QuotaForm::Within {
                    end,
                    new_end: self.period_changes.then(|| self.period_end()),
                    add: taken - credit,
                    floor: (credit > 0).then_some(credit),
                    ceiling: (demand.debit > 0).then(|| self.allowed() - taken + credit),
                },
                None if taken > 0 || demand.top_up > 0 => QuotaForm::Begin {
                    seen: self.seen_end,
                    end: self.period_end(),
                    used: taken,
                },
                None => QuotaForm::Keep,
            },
        };
        let params = (context.writes_params && self.presence != Presence::Leaving).then(|| QuotaParams {
            amount: self.amount,
            period: self.period.clone(),
            alerts: self.alerts,
            had_alerts: self.has_alerts,
        });
        let row = QuotaRow {
            limit: name.clone(),
            form,
            top_up: self.top_up_row(demand),
            consumed: demand.consumption(),
            params,
        };
        row.changes_anything().then_some(row)
    }

    /// What was added to the amount stays with its period, also where the period gets another end.
    fn top_up_row(&self, demand: Demand) -> Option<TopUpRow> {
        let until = self.period_end();
        let continues = self.topped_up > 0;
        let moves = continues && self.seen_top_up != Some(until);
        (demand.top_up > 0 || moves).then_some(TopUpRow {
            seen: self.seen_top_up,
            until,
            continues,
            amount: demand.top_up,
        })
    }
}

/// The part of a quota that one of several processes may use on its own, over the length of a period.
pub(super) fn part_for(quota: &Quota, processes: i128, now: Timestamp) -> Option<Params> {
    let amount = quota.amount().millis() / processes;
    let period = i128::from(quota.period().length_seconds(now)) * 1000;
    Params::new(amount, amount, amount, period)
}

/// Spreads the retries of those who are refused within a few seconds of each other.
const fn spread(now: Timestamp) -> i64 {
    const GOLDEN: i64 = 0x9E37_79B1;
    (now.millis().wrapping_mul(GOLDEN) >> 13).rem_euclid(RETRY_SPREAD_MILLIS)
}

/// What becomes of what was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaForm {
    /// It stays.
    Keep,
    /// The period on the item runs: what was used is added to.
    Within {
        /// When it ends.
        end: Timestamp,
        /// When it ends from now on, where the limit has got another period.
        new_end: Option<Timestamp>,
        /// What is added.
        add: i128,
        /// The least that must have been used: what is given back.
        floor: Option<i128>,
        /// The most that may have been used.
        ceiling: Option<i128>,
    },
    /// The next period begins.
    Begin {
        /// When the last one ended; none has begun yet where it is missing.
        seen: Option<Timestamp>,
        /// When the next one ends.
        end: Timestamp,
        /// What is used of it.
        used: i128,
    },
    /// The limit is new on the item, or lost.
    Fresh {
        /// What is used.
        used: i128,
        /// When its first period ends, if one begins.
        end: Option<Timestamp>,
    },
    /// The limit is no longer configured and no period runs: it leaves the item.
    Drop {
        /// When its last period ended.
        seen: Option<Timestamp>,
    },
}

/// What a write adds to what may be used in one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopUpRow {
    /// The end of the period of the last top-up; none where there was none.
    pub seen: Option<Timestamp>,
    /// The end of the period that it counts in.
    pub until: Timestamp,
    /// The last top-up counts in this period, too.
    pub continues: bool,
    /// How much is added.
    pub amount: i128,
}

/// The parameters of a quota that a write gives to the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaParams {
    /// What may be used in a period.
    pub amount: i128,
    /// The period.
    pub period: QuotaPeriod,
    /// The percentages of the amount at which an event is sent.
    pub alerts: Thresholds,
    /// The item has such percentages.
    pub had_alerts: bool,
}

/// The part of a write that concerns one quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaRow {
    /// Which limit.
    pub limit: LimitName,
    /// What becomes of what was used.
    pub form: QuotaForm,
    /// What becomes of what was added to the amount, if that changes.
    pub top_up: Option<TopUpRow>,
    /// By how much its count of consumption changes.
    pub consumed: i128,
    /// Its new parameters, where they are written.
    pub params: Option<QuotaParams>,
}

impl QuotaRow {
    fn attr(&self, field: QuotaField) -> Attr {
        Attr::Quota(self.limit.clone(), field)
    }

    fn changes_anything(&self) -> bool {
        let moves = match self.form {
            QuotaForm::Keep => false,
            QuotaForm::Within {
                add,
                new_end,
                floor,
                ceiling,
                ..
            } => add != 0 || new_end.is_some() || floor.is_some() || ceiling.is_some(),
            QuotaForm::Begin { .. } | QuotaForm::Fresh { .. } | QuotaForm::Drop { .. } => true,
        };
        moves || self.top_up.is_some() || self.consumed != 0 || self.params.is_some()
    }

    /// When the period ends that the write counts in.
    pub const fn period_end(&self) -> Option<Timestamp> {
        match self.form {
            QuotaForm::Within { end, new_end, .. } => match new_end {
                Some(end) => Some(end),
                None => Some(end),
            },
            QuotaForm::Begin { end, .. } => Some(end),
            QuotaForm::Fresh { end, .. } => end,
            QuotaForm::Keep | QuotaForm::Drop { .. } => None,
        }
    }

    pub(super) fn conditions(&self, conditions: &mut Vec<Condition>) {
        let (used, end) = (self.attr(QuotaField::Used), self.attr(QuotaField::PeriodEnd));
        let ended = |seen: Option<Timestamp>| match seen {
            Some(seen) => Condition::Is(end.clone(), millis(seen)),
            None => Condition::Missing(end.clone()),
        };
        match self.form {
            QuotaForm::Keep => {}
            QuotaForm::Within {
                end: open,
                new_end,
                add,
                floor,
                ceiling,
            } => {
                if add != 0 || new_end.is_some() || ceiling.is_some() || self.top_up.is_some() {
                    conditions.push(Condition::Is(end, millis(open)));
                }
                conditions.extend(floor.map(|floor| Condition::AtLeast(used.clone(), floor)));
                conditions.extend(ceiling.map(|ceiling| Condition::AtMost(used, ceiling)));
            }
            QuotaForm::Begin { seen, .. } | QuotaForm::Drop { seen } => conditions.push(ended(seen)),
            QuotaForm::Fresh { .. } => conditions.push(Condition::Missing(used)),
        }
        if let Some(top_up) = self.top_up {
            let until = self.attr(QuotaField::ToppedUpUntil);
            conditions.push(match top_up.seen {
                Some(seen) => Condition::Is(until, millis(seen)),
                None => Condition::Missing(until),
            });
        }
    }

    pub(super) fn actions(&self, actions: &mut Vec<Action>) {
        let (used, end) = (self.attr(QuotaField::Used), self.attr(QuotaField::PeriodEnd));
        let set = |attr: &Attr, value: i128| Action::Set(attr.clone(), Scalar::Number(value));
        let ends = |at: Timestamp| Action::Set(end.clone(), millis(at));
        match self.form {
            QuotaForm::Keep => {}
            QuotaForm::Within { add, new_end, .. } => {
                actions.extend((add != 0).then_some(Action::Add(used, add)));
                actions.extend(new_end.map(ends));
            }
            QuotaForm::Begin {
                end: at,
                used: amount,
                ..
            } => actions.extend([set(&used, amount), ends(at)]),
            QuotaForm::Fresh {
                used: amount,
                end: at,
            } => {
                actions.push(set(&used, amount));
                actions.push(at.map_or_else(|| Action::Remove(end.clone()), ends));
            }
            QuotaForm::Drop { .. } => {
                actions.extend(QuotaField::ALL.map(|field| Action::Remove(self.attr(field))));
                return;
            }
        }
        if let Some(top_up) = self.top_up {
            let amount = self.attr(QuotaField::ToppedUp);
            if !top_up.continues {
                actions.push(set(&amount, top_up.amount));
            } else if top_up.amount != 0 {
                actions.push(Action::Add(amount, top_up.amount));
            }
            if top_up.seen != Some(top_up.until) {
                let until = self.attr(QuotaField::ToppedUpUntil);
                actions.push(Action::Set(until, millis(top_up.until)));
            }
        }
        if self.consumed != 0 || matches!(self.form, QuotaForm::Fresh { .. }) {
            actions.push(Action::Add(self.attr(QuotaField::Consumed), self.consumed));
        }
        if let Some(params) = &self.params {
            actions.push(set(&self.attr(QuotaField::Amount), params.amount));
            let text = |text: String| Scalar::Text(text.into());
            let period = text(params.period.to_string());
            actions.push(Action::Set(self.attr(QuotaField::Period), period));
            let alerts = self.attr(QuotaField::Alerts);
            if !params.alerts.is_empty() {
                actions.push(Action::Set(alerts, text(params.alerts.to_stored())));
            } else if params.had_alerts {
                actions.push(Action::Remove(alerts));
            }
        }
    }
}

fn millis(at: Timestamp) -> Scalar {
    Scalar::Number(i128::from(at.millis()))
}
