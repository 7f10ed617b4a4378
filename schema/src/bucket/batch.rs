//! What a write is to do: the sum of the calls that it carries.

use std::collections::BTreeMap;

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

    /// True if there is nothing to do.
    pub const fn is_nothing(&self) -> bool {
        self.credit == 0 && self.adjust == 0 && self.debit == 0 && self.recount == 0
    }

    /// True if the level changes.
    pub const fn moves_tokens(&self) -> bool {
        self.credit != 0 || self.adjust != 0 || self.debit != 0
    }

    /// By how much the count of consumption changes.
    pub const fn consumption(&self) -> i128 {
        self.debit + self.adjust - self.credit + self.recount
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            credit: self.credit + other.credit,
            adjust: self.adjust + other.adjust,
            debit: self.debit + other.debit,
            recount: self.recount + other.recount,
        }
    }
}

/// What is asked of a bucket, by limit, and how many acquires it counts as.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// By limit.
    pub demands: BTreeMap<LimitName, Demand>,
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

    /// Both together.
    pub fn merge(&mut self, other: &Self) {
        for (limit, demand) in &other.demands {
            self.add(limit, *demand);
        }
        self.acquires += other.acquires;
    }

    /// True if it refunds anything: applied twice, it would refund too much.
    pub fn gives_back(&self) -> bool {
        let credit = |demand: &Demand| demand.credit > 0 || demand.recount < 0;
        self.demands.values().any(credit)
    }

    /// True if nothing is asked at all.
    pub fn is_nothing(&self) -> bool {
        self.acquires == 0 && self.demands.values().all(Demand::is_nothing)
    }
}
