//! What a write is to do: the sum of the calls that it carries.

use std::collections::BTreeMap;

use super::Epoch;
use crate::LimitName;

/// What is asked of one limit, in millitokens. All but `recount` are not below zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    /// Given back: lifts the level, never above the burst.
    pub credit: i128,
    /// Taken whether it is there or not: may make debt.
    pub adjust: i128,
    /// Taken only if it is there.
    pub debit: i128,
    /// Changes the count of consumption alone: a credit whose tokens belong to an earlier incarnation of the bucket.
    pub recount: i128,
    /// Added to what may be used of a quota in the period that runs.
    pub top_up: i128,
}

impl Demand {
    /// Only this debit.
    pub fn debit(amount: i128) -> Self {
        Self {
            debit: amount,
            ..Self::default()
        }
    }

    /// Only this credit.
    pub fn credit(amount: i128) -> Self {
        Self {
            credit: amount,
            ..Self::default()
        }
    }

    /// Only this adjustment.
    pub fn adjust(amount: i128) -> Self {
        Self {
            adjust: amount,
            ..Self::default()
        }
    }

    /// Only this change of the count.
    pub fn recount(change: i128) -> Self {
        Self {
            recount: change,
            ..Self::default()
        }
    }

    /// What is taken in all.
    pub const fn taken(&self) -> i128 {
        self.debit + self.adjust
    }

    /// True if there is nothing to do.
    pub const fn is_nothing(&self) -> bool {
        self.credit == 0 && self.adjust == 0 && self.debit == 0 && self.recount == 0 && self.top_up == 0
    }

    /// True if the level changes.
    pub const fn moves_tokens(&self) -> bool {
        self.credit != 0 || self.adjust != 0 || self.debit != 0
    }

    /// By how much the count of consumption changes.
    pub const fn consumption(&self) -> i128 {
        self.taken() - self.credit + self.recount
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            credit: self.credit + other.credit,
            adjust: self.adjust + other.adjust,
            debit: self.debit + other.debit,
            recount: self.recount + other.recount,
            top_up: self.top_up + other.top_up,
        }
    }
}

/// Permits that leave an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermitMoves {
    /// Given back.
    pub released: i128,
    /// Kept for longer: they go to a later epoch.
    pub renewed: i128,
}

/// Asks for nothing.
pub(super) static NOTHING: Batch = Batch {
    demands: BTreeMap::new(),
    permits: BTreeMap::new(),
    acquires: 0,
};

/// What is asked of a bucket, by limit, and how many acquires it counts as.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// By limit.
    pub demands: BTreeMap<LimitName, Demand>,
    /// Permits given back or renewed, by limit and the epoch that they would expire in.
    pub permits: BTreeMap<(LimitName, Epoch), PermitMoves>,
    /// How many acquires.
    pub acquires: u32,
}

impl Batch {
    /// What is asked of a limit.
    pub fn demand(&self, limit: &LimitName) -> Demand {
        self.demands.get(limit).copied().unwrap_or_default()
    }

    /// Asks more of a limit.
    pub fn add(&mut self, limit: &LimitName, demand: Demand) {
        let entry = self.demands.entry(limit.clone()).or_default();
        *entry = entry.plus(demand);
    }

    /// Gives permits back.
    pub fn release(&mut self, limit: &LimitName, epoch: Epoch, permits: i128) {
        self.add(limit, Demand::credit(permits));
        let moves = self.permits.entry((limit.clone(), epoch)).or_default();
        moves.released += permits;
    }

    /// Keeps permits for longer.
    pub fn renew(&mut self, limit: &LimitName, epoch: Epoch, permits: i128) {
        self.add(limit, Demand::default());
        let moves = self.permits.entry((limit.clone(), epoch)).or_default();
        moves.renewed += permits;
    }

    /// How many permits leave an epoch.
    pub fn leaving(&self, limit: &LimitName, epoch: Epoch) -> i128 {
        let moves = self.permits.get(&(limit.clone(), epoch));
        moves.map_or(0, |moves| moves.released + moves.renewed)
    }

    /// Permits of a limit that leave their epochs.
    pub(super) fn moves<'a>(
        &'a self,
        limit: &'a LimitName,
    ) -> impl Iterator<Item = (Epoch, PermitMoves)> + 'a {
        let own = self.permits.iter().filter(move |((name, _), _)| name == limit);
        own.map(|((_, epoch), moves)| (*epoch, *moves))
    }

    /// Both together.
    pub fn merge(&mut self, other: &Self) {
        for (limit, demand) in &other.demands {
            self.add(limit, *demand);
        }
        for (place, more) in &other.permits {
            let moves = self.permits.entry(place.clone()).or_default();
            moves.released += more.released;
            moves.renewed += more.renewed;
        }
        self.acquires += other.acquires;
    }

    /// True if it refunds anything: applied twice, it would refund too much.
    pub fn gives_back(&self) -> bool {
        let credit = |demand: &Demand| demand.credit > 0 || demand.recount < 0 || demand.top_up > 0;
        self.demands.values().any(credit) || !self.permits.is_empty()
    }

    /// True if nothing is asked at all.
    pub fn is_nothing(&self) -> bool {
        self.acquires == 0 && self.permits.is_empty() && self.demands.values().all(Demand::is_nothing)
    }
}
