//! The kinds of limits on a bucket, behind one interface.
//!
//! A kind knows what its limit holds, what a call takes of it, how that comes back and when, its row in the write, how it is
//! reset, how long a bucket must live for it, and what of it a process may use in an outage. Everything else calls
//! [`LimitOnItem`] (as last seen), [`LimitState`] (under a decision) and [`Row`] (in a write), and does not tell kinds apart. A
//! new kind is a file here, a variant of each of these, its attributes, and its numbers in [`LimitKind`].

mod concurrency;
mod quota;
mod rate;
mod rate_row;

pub use concurrency::{ConcurrencyImage, ConcurrencyRow, ConcurrencyState, Epoch};
pub use quota::{QuotaForm, QuotaImage, QuotaParams, QuotaRow, QuotaState, TopUpRow};
pub use rate::{RateImage, RateState};
pub use rate_row::{RateRow, Remainder, RowForm};

use std::collections::BTreeMap;

use super::{Action, Batch, Condition, Demand, Image, Outlook, Params, Sharing, Statement};
use crate::{Limit, LimitKind, LimitName, Timestamp};

/// How a limit stands between the item and the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// On the item and in the config.
    Kept,
    /// In the config only: it starts with nothing used.
    Fresh,
    /// In the config; on the item there is a remnant that cannot be computed with.
    Broken,
    /// In the config; the etag says that the item has it, but what counts is gone. All of it counts as used.
    Lost,
    /// On the item only: it leaves once nothing of it is used.
    Leaving,
}

/// What a call holds of a limit, where that decides how it comes back. Tokens of a rate come back in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Held {
    /// Part of a quota, in the period that ends then. Nothing comes back into another period.
    Period(Timestamp),
    /// Permits that expire with this epoch.
    Permits(Epoch),
}

/// What a decision is made with, for every limit alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteContext {
    /// Milliseconds since the last refill.
    pub(super) elapsed: i128,
    /// Whether others write the bucket.
    pub(super) sharing: Sharing,
    /// The write gives the bucket the parameters of the config.
    pub(super) writes_params: bool,
}

/// One limit of a bucket as last seen, in millitokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOnItem<'a> {
    /// Tokens that refill.
    Rate(&'a RateImage),
    /// An amount per period.
    Quota(&'a QuotaImage),
    /// Calls in flight.
    Concurrency(&'a ConcurrencyImage),
}

impl LimitOnItem<'_> {
    /// The nominal amount: tokens of a rate, the amount of a quota, or permits.
    pub fn capacity(&self) -> i128 {
        match self {
            Self::Rate(rate) => rate.token_bucket.params.capacity(),
            Self::Quota(quota) => quota.amount,
            Self::Concurrency(limit) => limit.permits,
        }
    }

    /// The most that can be taken at once.
    pub fn burst(&self) -> i128 {
        match self {
            Self::Rate(rate) => rate.token_bucket.params.burst(),
            Self::Quota(_) | Self::Concurrency(_) => self.capacity(),
        }
    }

    /// What is available at this time, `elapsed` milliseconds after the last refill. Below zero is debt.
    pub fn available(&self, elapsed: i128, now: Timestamp) -> i128 {
        match self {
            Self::Rate(rate) => rate.token_bucket.available(elapsed),
            Self::Quota(quota) => quota.left_at(now),
            Self::Concurrency(limit) => limit.permits - limit.held_at(now),
        }
    }

    /// What may be taken beyond the amount of a quota in the period that runs.
    pub fn topped_up(&self, now: Timestamp) -> i128 {
        match self {
            Self::Quota(quota) => quota.topped_up_at(now),
            Self::Rate(_) | Self::Concurrency(_) => 0,
        }
    }

    /// What was consumed since the limit came to the bucket, refunds taken off; permits that were taken.
    pub const fn consumed(&self) -> i128 {
        match self {
            Self::Rate(rate) => rate.consumed,
            Self::Quota(quota) => quota.consumed,
            Self::Concurrency(limit) => limit.consumed,
        }
    }

    /// What is left until all of it comes back at once. Nothing for kinds that come back little by little.
    pub fn left_until_reset(&self, now: Timestamp) -> Option<i128> {
        match self {
            Self::Quota(quota) => Some(quota.left_at(now)),
            Self::Rate(_) | Self::Concurrency(_) => None,
        }
    }

    /// True if calls hold it until they end.
    pub(super) const fn is_held_by_calls(&self) -> bool {
        matches!(self, Self::Concurrency(_))
    }

    /// Adds to a statement what makes the limit as if nothing were used.
    pub(super) fn reset(&self, name: &LimitName, now: Timestamp, statement: &mut Statement) {
        match self {
            Self::Rate(rate) => rate.reset(name, statement),
            Self::Quota(quota) => quota.reset(name, now, statement),
            Self::Concurrency(limit) => limit.reset(name, statement),
        }
    }
}

impl Image {
    /// All limits on it: kind by kind, in order of name. A limit that has changed its kind may be there twice.
    pub fn limits_on_item(&self) -> impl Iterator<Item = (&LimitName, LimitOnItem<'_>)> {
        let rates = self
            .limits
            .iter()
            .map(|(name, rate)| (name, LimitOnItem::Rate(rate)));
        let quotas = self
            .quotas
            .iter()
            .map(|(name, quota)| (name, LimitOnItem::Quota(quota)));
        let permits = self.permits.iter();
        let permits = permits.map(|(name, limit)| (name, LimitOnItem::Concurrency(limit)));
        rates.chain(quotas).chain(permits)
    }

    /// All limits on it, by name.
    pub fn all_limits(&self) -> BTreeMap<&LimitName, LimitOnItem<'_>> {
        self.limits_on_item().collect()
    }
}

/// One limit under a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitState {
    /// Tokens that refill.
    Rate(RateState),
    /// An amount per period.
    Quota(QuotaState),
    /// Calls in flight.
    Concurrency(ConcurrencyState),
}

impl LimitState {
    /// A limit that the item does not have.
    pub(super) fn absent(limit: &Limit, presence: Presence, now: Timestamp) -> Self {
        match limit.kind() {
            LimitKind::Rate(rate) => Self::Rate(RateState::absent(Params::from(rate), presence)),
            LimitKind::Quota(quota) => Self::Quota(QuotaState::absent(quota, presence, now)),
            LimitKind::Concurrency(limit) => {
                Self::Concurrency(ConcurrencyState::absent(limit, presence, now))
            }
        }
    }

    /// A limit that the etag says is on the item, but is not, `elapsed` milliseconds after the last refill.
    pub(super) fn lost(limit: &Limit, elapsed: i128, now: Timestamp) -> Self {
        match limit.kind() {
            LimitKind::Rate(rate) => Self::Rate(RateState::lost(Params::from(rate), elapsed)),
            LimitKind::Quota(_) | LimitKind::Concurrency(_) => Self::absent(limit, Presence::Lost, now),
        }
    }

    /// A limit of the config that the item has, in whatever form; none if it does not.
    pub(super) fn kept(image: &Image, limit: &Limit, now: Timestamp) -> Option<Self> {
        let name = limit.name();
        match limit.kind() {
            LimitKind::Rate(rate) => {
                let token_bucket = image.limits.get(name)?.token_bucket;
                let elapsed = image.elapsed(now);
                let state = RateState::new(Presence::Kept, token_bucket, Params::from(rate), elapsed);
                Some(Self::Rate(state))
            }
            LimitKind::Quota(quota) => {
                let on_item = image.quotas.get(name)?;
                Some(Self::Quota(QuotaState::kept(on_item, quota, now)))
            }
            LimitKind::Concurrency(limit) => {
                let on_item = image.permits.get(name)?;
                Some(Self::Concurrency(ConcurrencyState::kept(on_item, limit, now)))
            }
        }
    }

    /// All limits of an item with the parameters that it has.
    pub(super) fn on_item<'a>(
        image: &'a Image,
        presence: impl Fn(&LimitName) -> Presence + Copy + 'a,
        now: Timestamp,
    ) -> impl Iterator<Item = (&'a LimitName, Self)> {
        let rates = image.limits.iter().map(move |(name, limit)| {
            let bucket = limit.token_bucket;
            let state = RateState::new(presence(name), bucket, bucket.params, image.elapsed(now));
            (name, Self::Rate(state))
        });
        let quotas = image.quotas.iter().map(move |(name, quota)| {
            let state = QuotaState::as_it_is(quota, presence(name), now);
            (name, Self::Quota(state))
        });
        let permits = image.permits.iter().map(move |(name, permits)| {
            let state = ConcurrencyState::as_it_is(permits, presence(name), now);
            (name, Self::Concurrency(state))
        });
        rates.chain(quotas).chain(permits)
    }

    /// True if the item has the limit with these parameters.
    pub(super) fn is_on(image: &Image, limit: &Limit) -> bool {
        let name = limit.name();
        match limit.kind() {
            LimitKind::Rate(rate) => image
                .limits
                .get(name)
                .is_some_and(|on_item| on_item.token_bucket.params == Params::from(rate)),
            LimitKind::Quota(quota) => image.quotas.get(name).is_some_and(|on_item| on_item.has(quota)),
            LimitKind::Concurrency(limit) => {
                image.permits.get(name).is_some_and(|on_item| on_item.has(limit))
            }
        }
    }

    /// The rate, if it is one.
    pub const fn rate(&self) -> Option<&RateState> {
        match self {
            Self::Rate(rate) => Some(rate),
            Self::Quota(_) | Self::Concurrency(_) => None,
        }
    }

    /// What is left now, with credits and adjustments booked and debits not.
    pub fn level(&self, demand: Demand) -> i128 {
        match self {
            Self::Rate(rate) => rate.level(demand),
            Self::Quota(quota) => quota.level(demand),
            Self::Concurrency(permits) => permits.level(demand),
        }
    }

    /// What is left when the demand is booked, and when `amount` more will be.
    pub fn outlook(&self, demand: Demand, amount: i128) -> Outlook {
        match self {
            Self::Rate(rate) => rate.outlook(demand, amount),
            Self::Quota(quota) => quota.outlook(demand, amount),
            Self::Concurrency(permits) => permits.outlook(demand, amount),
        }
    }

    /// How long this limit keeps the bucket alive after the batch, in milliseconds: to fill from empty, and until nothing is
    /// used.
    pub(super) fn life(&self, name: &LimitName, batch: &Batch) -> (i128, i128) {
        match self {
            Self::Rate(rate) => rate.life(batch.demand(name)),
            Self::Quota(quota) => (0, quota.until_unused(batch.demand(name))),
            Self::Concurrency(permits) => (0, permits.until_unused(name, batch)),
        }
    }

    /// True if the limit of the config is of the same kind.
    pub(super) fn is_kind_of(&self, limit: &Limit) -> bool {
        matches!(
            (self, limit.kind()),
            (Self::Rate(_), LimitKind::Rate(_))
                | (Self::Quota(_), LimitKind::Quota(_))
                | (Self::Concurrency(_), LimitKind::Concurrency(_))
        )
    }

    /// The same limit on its way out.
    pub(super) fn leaving(mut self) -> Self {
        let presence = match &mut self {
            Self::Rate(rate) => &mut rate.presence,
            Self::Quota(quota) => &mut quota.presence,
            Self::Concurrency(permits) => &mut permits.presence,
        };
        *presence = Presence::Leaving;
        self
    }

    /// True if others may give it back at any time, so that a refusal is soon out of date.
    pub const fn is_returned_by_others(&self) -> bool {
        matches!(self, Self::Concurrency(_))
    }

    /// Adds a change to a batch, in the way in which it can be booked: above zero is taken, below zero given back. `held` says
    /// what is given back, and `same_bucket` that it was taken from this incarnation of the bucket.
    pub(super) fn book(
        &self,
        name: &LimitName,
        change: i128,
        held: Option<Held>,
        same_bucket: bool,
        batch: &mut Batch,
    ) {
        match self {
            _ if change >= 0 => batch.add(name, Demand::adjust(change)),
            Self::Rate(_) => batch.add(name, RateState::given_back(-change, held, same_bucket)),
            Self::Quota(quota) => batch.add(name, quota.given_back(-change, held, same_bucket)),
            Self::Concurrency(permits) => {
                permits.release(name, -change, held.filter(|_| same_bucket), batch);
            }
        }
    }

    /// Adds the renewal of what calls hold to a batch. False if it has expired.
    pub(super) fn renew(&self, name: &LimitName, permits: i128, held: Held, batch: &mut Batch) -> bool {
        match self {
            Self::Concurrency(state) => state.renew(name, permits, held, batch),
            Self::Rate(_) | Self::Quota(_) => false,
        }
    }

    /// What adds to what is left of the limit now and is no consumption; nothing for calls in flight. What a rate is topped up
    /// with ends at its burst, like everything that comes back.
    pub(super) fn top_up(&self, amount: i128) -> Option<Demand> {
        match self {
            Self::Rate(_) => Some(Demand {
                credit: amount,
                recount: amount,
                ..Demand::default()
            }),
            Self::Quota(_) => Some(Demand {
                top_up: amount,
                ..Demand::default()
            }),
            Self::Concurrency(_) => None,
        }
    }

    /// The row that takes a limit off the item which is no longer configured, if nothing of it is used.
    pub(super) fn removal(&self, name: &LimitName, context: &WriteContext) -> Option<Row> {
        match self {
            Self::Rate(rate) => rate.removal(name).map(Row::Rate),
            Self::Quota(quota) if quota.is_leaving() => self.row(name, &Batch::default(), context),
            Self::Concurrency(permits) if permits.is_leaving() => self.row(name, &Batch::default(), context),
            Self::Quota(_) | Self::Concurrency(_) => None,
        }
    }

    /// The row of a write that leaves the time of the last refill as it is; none if nothing of the limit changes. An error if
    /// the demand cannot do with what is on the item.
    pub(super) fn touch_row(
        &self,
        name: &LimitName,
        batch: &Batch,
        context: &WriteContext,
    ) -> Result<Option<Row>, NeedsRefill> {
        let demand = batch.demand(name);
        match self {
            Self::Rate(_) if !demand.moves_tokens() && demand.recount == 0 => Ok(None),
            Self::Rate(rate) => {
                let row = rate.touch_row(name, demand, context).ok_or(NeedsRefill)?;
                Ok(Some(Row::Rate(row)))
            }
            other => Ok(other.row(name, batch, context)),
        }
    }

    /// The row of a write that moves the last refill to now; none if nothing of the limit changes.
    pub(super) fn refilled_row(
        &self,
        name: &LimitName,
        batch: &Batch,
        context: &WriteContext,
    ) -> Option<Row> {
        match self {
            Self::Rate(rate) => Some(Row::Rate(rate.refilled_row(name, batch.demand(name), context))),
            other => other.row(name, batch, context),
        }
    }

    /// The row of a limit that does not refill; none if nothing of it changes.
    fn row(&self, name: &LimitName, batch: &Batch, context: &WriteContext) -> Option<Row> {
        match self {
            Self::Rate(_) => None,
            Self::Quota(quota) => quota.row(name, batch.demand(name), context).map(Row::Quota),
            Self::Concurrency(permits) => permits.row(name, batch, context).map(Row::Concurrency),
        }
    }
}

/// A demand needs what has come back since the last refill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NeedsRefill;

/// The part of a write that concerns one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// Tokens that refill.
    Rate(RateRow),
    /// An amount per period.
    Quota(QuotaRow),
    /// Calls in flight.
    Concurrency(ConcurrencyRow),
}

impl Row {
    /// Which limit.
    pub const fn limit(&self) -> &LimitName {
        match self {
            Self::Rate(row) => &row.limit,
            Self::Quota(row) => &row.limit,
            Self::Concurrency(row) => &row.limit,
        }
    }

    /// The row of a rate.
    pub const fn rate(&self) -> Option<&RateRow> {
        match self {
            Self::Rate(row) => Some(row),
            Self::Quota(_) | Self::Concurrency(_) => None,
        }
    }

    /// What a call holds of the limit after this write.
    pub fn held(&self) -> Option<Held> {
        match self {
            Self::Rate(_) => None,
            Self::Quota(row) => row.period_end().map(Held::Period),
            Self::Concurrency(row) => row.taken.map(Held::Permits),
        }
    }

    pub(super) fn conditions(&self, conditions: &mut Vec<Condition>) {
        match self {
            Self::Rate(row) => row.conditions(conditions),
            Self::Quota(row) => row.conditions(conditions),
            Self::Concurrency(row) => row.conditions(conditions),
        }
    }

    pub(super) fn actions(&self, actions: &mut Vec<Action>) {
        match self {
            Self::Rate(row) => row.actions(actions),
            Self::Quota(row) => row.actions(actions),
            Self::Concurrency(row) => row.actions(actions),
        }
    }
}

impl LimitKind {
    /// True if what a call took can be corrected when its cost is known. Permits are held or released.
    pub const fn can_be_adjusted(&self) -> bool {
        !matches!(self, Self::Concurrency(_))
    }

    /// The part of the limit that one of several processes may use on its own while the table is unavailable, as tokens that
    /// refill: a part of a rate; of a quota, the part over the length of a period; of permits, those that are never refilled
    /// but given back. All parts together are never more than the limit. Nothing if no millitoken is left for each.
    pub fn part_for(&self, processes: u32, now: Timestamp) -> Option<Params> {
        let processes = i128::from(processes.max(1));
        match self {
            Self::Rate(rate) => rate::part_for(rate, processes),
            Self::Quota(quota) => quota::part_for(quota, processes, now),
            Self::Concurrency(limit) => concurrency::part_for(limit, processes),
        }
    }
}
