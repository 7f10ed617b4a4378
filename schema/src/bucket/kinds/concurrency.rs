//! Limits on calls in flight.
//!
//! The item has the number of permits held (`n`) and, for each epoch in which permits expire, how many of them do (`e…`). An
//! epoch is a quarter of the limit's expiry long, so there are few of them, however many calls are in flight. A call adds to
//! both numbers, its release subtracts from both if its epoch still has them, and any process that writes the bucket after an epoch has
//! ended takes its permits back.

use std::collections::BTreeMap;

use super::super::{
    Action, Attr, Batch, Condition, Demand, Outlook, Params, PermitField, RetryAfter, Scalar, Statement,
};
use super::{Held, Presence, WriteContext};
use crate::{Concurrency, LimitName, Timestamp};

/// An epoch's permits are taken back this long after its end: clocks differ by up to 2 seconds.
const GRACE_MILLIS: i64 = 2_000;
/// Epochs in the expiry of a permit.
const EPOCHS: i64 = 4;
/// When a refused call may try again: others release permits at any time.
const RETRY_MILLIS: i128 = 250;

/// When a permit expires: the end of its epoch, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(i64);

impl Epoch {
    /// The epoch of a permit that is taken or renewed now.
    pub const fn of(now: Timestamp, expires_after_seconds: i64) -> Self {
        // Rounded up, so that there are few of them whatever the expiry is.
        let length = if expires_after_seconds > EPOCHS {
            (expires_after_seconds + EPOCHS - 1) / EPOCHS
        } else {
            1
        };
        let expires = now.seconds() + expires_after_seconds;
        // Rounded up, so that a permit never lasts shorter than its expiry.
        Self((expires / length + 1) * length)
    }

    /// The epoch that ends then, in seconds since 1970.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Its end, in seconds since 1970.
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// Its end.
    pub const fn end(self) -> Timestamp {
        Timestamp::from_seconds(self.0)
    }

    /// True if its permits may be taken back.
    fn is_over(self, now: Timestamp) -> bool {
        self.end().plus_millis(GRACE_MILLIS) <= now
    }
}

/// A limit on calls in flight as last seen, in thousandths of permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencyImage {
    /// How many may be held (`cp`).
    pub permits: i128,
    /// How long one lasts, in seconds (`xp`).
    pub expires_after_seconds: i64,
    /// How many are held (`n`).
    pub held: i128,
    /// How many of them expire when.
    pub epochs: BTreeMap<Epoch, i128>,
    /// Permits taken since the limit came to the bucket (`tc`).
    pub consumed: i128,
}

impl ConcurrencyImage {
    /// True if it has these parameters.
    pub(super) fn has(&self, limit: &Concurrency) -> bool {
        self.permits == limit.permits().millis() && self.expires_after_seconds == seconds(limit)
    }

    /// How many permits are held and have not expired.
    pub fn held_at(&self, now: Timestamp) -> i128 {
        let expired = self.epochs.iter().filter(|(epoch, _)| epoch.is_over(now));
        self.held - expired.map(|(_, permits)| permits).sum::<i128>()
    }

    /// Takes all permits back. A call that takes permits changes their count, and every other change of permits takes some out
    /// of an epoch: with both as seen, no epoch is left behind.
    pub(super) fn reset(&self, name: &LimitName, statement: &mut Statement) {
        let attr = |field| Attr::Permits(name.clone(), field);
        let is = |field, number| Condition::Is(attr(field), Scalar::Number(number));
        let Statement { conditions, actions } = statement;
        conditions.push(is(PermitField::Consumed, self.consumed));
        for (epoch, held) in &self.epochs {
            conditions.push(is(PermitField::Epoch(*epoch), *held));
            actions.push(Action::Remove(attr(PermitField::Epoch(*epoch))));
        }
        actions.push(Action::Set(attr(PermitField::Held), Scalar::Number(0)));
    }
}

fn seconds(limit: &Concurrency) -> i64 {
    i64::try_from(limit.expires_after_seconds()).unwrap_or(i64::MAX)
}

/// A limit on calls in flight under a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencyState {
    pub(super) presence: Presence,
    /// How many may be held after the write.
    permits: i128,
    /// How long one lasts after the write, in seconds.
    expires_after_seconds: i64,
    /// How many are held, without those that are taken back.
    held: i128,
    /// Epochs that have not ended.
    running: BTreeMap<Epoch, i128>,
    /// Epochs whose permits are taken back.
    over: Vec<(Epoch, i128)>,
    now: Timestamp,
}

impl ConcurrencyState {
    pub(super) fn absent(limit: &Concurrency, presence: Presence, now: Timestamp) -> Self {
        Self {
            presence,
            permits: limit.permits().millis(),
            expires_after_seconds: seconds(limit),
            // Where the number is lost, nobody knows how many are held: none is given until they have expired.
            held: if presence == Presence::Lost {
                limit.permits().millis()
            } else {
                0
            },
            running: BTreeMap::new(),
            over: Vec::new(),
            now,
        }
    }

    pub(super) fn kept(on_item: &ConcurrencyImage, limit: &Concurrency, now: Timestamp) -> Self {
        Self {
            permits: limit.permits().millis(),
            expires_after_seconds: seconds(limit),
            ..Self::as_it_is(on_item, Presence::Kept, now)
        }
    }

    pub(super) fn as_it_is(on_item: &ConcurrencyImage, presence: Presence, now: Timestamp) -> Self {
        let (over, running): (Vec<_>, Vec<_>) = on_item
            .epochs
            .iter()
            .map(|(epoch, permits)| (*epoch, *permits))
            .partition(|(epoch, _)| epoch.is_over(now));
        Self {
            presence,
            permits: on_item.permits,
            expires_after_seconds: on_item.expires_after_seconds,
            held: on_item.held_at(now),
            running: running.into_iter().collect(),
            over,
            now,
        }
    }

    /// How many permits are held.
    pub const fn held(&self) -> i128 {
        self.held
    }

    /// The epoch of permits that are taken or renewed now.
    pub const fn epoch(&self) -> Epoch {
        Epoch::of(self.now, self.expires_after_seconds)
    }

    /// True if an epoch still has this many permits: then they are not expired and may be released or renewed.
    fn has(&self, epoch: Epoch, permits: i128) -> bool {
        self.running.get(&epoch).is_some_and(|there| *there >= permits)
    }

    /// A release gives back what its epoch still has. Permits that have expired were taken back already.
    pub(super) fn release(&self, name: &LimitName, permits: i128, held: Option<Held>, batch: &mut Batch) {
        match held {
            Some(Held::Permits(epoch)) if self.has(epoch, batch.leaving(name, epoch) + permits) => {
                batch.release(name, epoch, permits);
            }
            _ => batch.add(name, Demand::default()),
        }
    }

    /// Keeps permits for longer. False if their epoch no longer has them.
    pub(super) fn renew(&self, name: &LimitName, permits: i128, held: Held, batch: &mut Batch) -> bool {
        match held {
            Held::Permits(epoch) if self.has(epoch, batch.leaving(name, epoch) + permits) => {
                batch.renew(name, epoch, permits);
                true
            }
            Held::Permits(_) | Held::Period(_) => false,
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.presence == Presence::Leaving
    }

    pub(super) fn level(&self, demand: Demand) -> i128 {
        self.permits - self.held + demand.credit
    }

    pub(super) fn outlook(&self, demand: Demand, amount: i128) -> Outlook {
        let left = self.level(demand) - demand.debit;
        let retry_after = if amount > self.permits {
            RetryAfter::Never
        } else if left >= amount {
            RetryAfter::Now
        } else {
            RetryAfter::after_millis(RETRY_MILLIS)
        };
        Outlook {
            left,
            used: Some(self.permits - left),
            retry_after,
            reset: None,
            topped_up: 0,
        }
    }

    pub(super) fn until_unused(&self, name: &LimitName, batch: &Batch) -> i128 {
        let last = self.running.last_key_value().map(|(epoch, _)| *epoch);
        let extends = batch.demand(name).debit > 0
            || batch.moves(name).any(|(_, moves)| moves.renewed > 0)
            || self.presence == Presence::Lost;
        let taken = extends.then(|| self.epoch());
        let end = last.max(taken).map(Epoch::end);
        end.map_or(0, |end| i128::from(end.plus_millis(GRACE_MILLIS).since(self.now)))
    }

    pub(super) fn row(
        &self,
        name: &LimitName,
        batch: &Batch,
        context: &WriteContext,
    ) -> Option<ConcurrencyRow> {
        let demand = batch.demand(name);
        let leaves = self.presence == Presence::Leaving;
        if leaves && self.held == 0 && demand.is_nothing() && context.writes_params {
            let epochs = self.running.iter().map(|(epoch, permits)| (*epoch, *permits));
            return Some(ConcurrencyRow {
                ends: true,
                over: self.over.iter().copied().chain(epochs).collect(),
                ..ConcurrencyRow::nothing(name)
            });
        }
        let mut row = ConcurrencyRow::nothing(name);
        row.consumed = demand.debit;
        row.params = (context.writes_params && !leaves).then_some((self.permits, self.expires_after_seconds));
        let epoch = self.epoch();
        let mut change = |epoch: Epoch, by: i128| *row.epochs.entry(epoch).or_insert(0) += by;
        if demand.debit > 0 {
            change(epoch, demand.debit);
            row.taken = Some(epoch);
        }
        for (old, moves) in batch.moves(name) {
            change(old, -moves.released - moves.renewed);
            if moves.renewed > 0 {
                change(epoch, moves.renewed);
                row.taken = Some(epoch);
            }
            row.floors.push((old, moves.released + moves.renewed));
        }
        row.epochs.retain(|_, by| *by != 0);
        match self.presence {
            Presence::Fresh | Presence::Broken => row.set = Some(demand.debit),
            Presence::Lost => {
                row.set = Some(self.held + demand.debit);
                *row.epochs.entry(epoch).or_insert(0) += self.held;
            }
            Presence::Kept | Presence::Leaving => {
                let nothing = demand.is_nothing() && row.floors.is_empty() && row.params.is_none();
                if nothing {
                    return None;
                }
                row.over.clone_from(&self.over);
                let back: i128 = self.over.iter().map(|(_, permits)| permits).sum();
                row.add = demand.debit - demand.credit - back;
                row.ceiling = (demand.debit > 0).then(|| self.permits - demand.debit + demand.credit + back);
            }
        }
        Some(row)
    }
}

/// The permits that one of several processes may use on its own. They are never refilled but given back.
pub(super) fn part_for(limit: &Concurrency, processes: i128) -> Option<Params> {
    let permits = i128::from(limit.permits().get()) / processes * 1000;
    Params::new(permits, permits, 1, Params::MAX_PERIOD)
}

/// The part of a write that concerns one limit on calls in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencyRow {
    /// Which limit.
    pub limit: LimitName,
    /// The most permits that may be held.
    pub ceiling: Option<i128>,
    /// What epochs must have for releases and renewals.
    pub floors: Vec<(Epoch, i128)>,
    /// Epochs that have ended, as seen: they leave the item.
    pub over: Vec<(Epoch, i128)>,
    /// By how much the number of held permits changes.
    pub add: i128,
    /// The number of held permits, where the limit is new on the item or lost.
    pub set: Option<i128>,
    /// By how much epochs change.
    pub epochs: BTreeMap<Epoch, i128>,
    /// By how much the count of taken permits changes.
    pub consumed: i128,
    /// Its new parameters, where they are written: permits, and their expiry in seconds.
    pub params: Option<(i128, i64)>,
    /// The epoch of the permits that calls take or renew.
    pub taken: Option<Epoch>,
    /// The limit is no longer configured and no permit is held: it leaves the item.
    pub ends: bool,
}

impl ConcurrencyRow {
    fn nothing(limit: &LimitName) -> Self {
        Self {
            limit: limit.clone(),
            ceiling: None,
            floors: Vec::new(),
            over: Vec::new(),
            add: 0,
            set: None,
            epochs: BTreeMap::new(),
            consumed: 0,
            params: None,
            taken: None,
            ends: false,
        }
    }

    fn attr(&self, field: PermitField) -> Attr {
        Attr::Permits(self.limit.clone(), field)
    }

    fn epoch(&self, epoch: Epoch) -> Attr {
        self.attr(PermitField::Epoch(epoch))
    }

    pub(super) fn conditions(&self, conditions: &mut Vec<Condition>) {
        let held = self.attr(PermitField::Held);
        if self.set.is_some() {
            conditions.push(Condition::Missing(held));
        } else {
            conditions.extend(
                self.ceiling
                    .map(|ceiling| Condition::AtMost(held.clone(), ceiling)),
            );
            conditions.extend(self.ends.then(|| {
                let expired = self.over.iter().map(|(_, permits)| permits).sum();
                Condition::Is(held, Scalar::Number(expired))
            }));
        }
        let floors = self.floors.iter();
        conditions.extend(floors.map(|(epoch, permits)| Condition::AtLeast(self.epoch(*epoch), *permits)));
        let over = self.over.iter();
        conditions
            .extend(over.map(|(epoch, permits)| Condition::Is(self.epoch(*epoch), Scalar::Number(*permits))));
    }

    pub(super) fn actions(&self, actions: &mut Vec<Action>) {
        actions.extend(
            self.over
                .iter()
                .map(|(epoch, _)| Action::Remove(self.epoch(*epoch))),
        );
        if self.ends {
            actions.extend(PermitField::FIXED.map(|field| Action::Remove(self.attr(field))));
            return;
        }
        let held = self.attr(PermitField::Held);
        match self.set {
            Some(permits) => actions.push(Action::Set(held, Scalar::Number(permits))),
            None => actions.extend((self.add != 0).then_some(Action::Add(held, self.add))),
        }
        let epochs = self.epochs.iter();
        actions.extend(epochs.map(|(epoch, by)| Action::Add(self.epoch(*epoch), *by)));
        if self.consumed != 0 || self.set.is_some() {
            actions.push(Action::Add(self.attr(PermitField::Consumed), self.consumed));
        }
        if let Some((permits, expiry)) = self.params {
            let permits = Scalar::Number(permits);
            actions.push(Action::Set(self.attr(PermitField::Permits), permits));
            let expiry = Scalar::Number(i128::from(expiry));
            actions.push(Action::Set(self.attr(PermitField::Expiry), expiry));
        }
    }
}
