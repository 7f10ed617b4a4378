//! Whether a call that was told "limit exceeded" really found too little.
//!
//! A call that does not wait is refused rightly if one of its limits had too little around the time of the call. One that
//! waits is refused rightly if one of them would have had too little even at its deadline, by the level and the rate around
//! the time of the refusal: before that, its wait had not run out. Calls of the same process that arrived earlier and still
//! wait are served first, so what they want is not there for it. Neither is what the process itself has used beyond what it
//! acquired and could not write yet.
//!
//! Under faults a call may keep losing its writes to others, or to conflicts. After its patience it is refused by the last image
//! and the number of those in line, though there may be enough. Such a refusal is not judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{EntityId, LimitName};

use super::clock::START;
use super::oracle::{Shortage, Violation};
use super::unwritten::SharedUnwritten;
use super::world::{Shared, lock};

/// A process may refuse by what it read this long ago, and what others held then shows this much later, in milliseconds.
const AROUND: i64 = 1_000;

/// Calls of runs lose their writes for at least this long, in milliseconds, before they are refused for it: nine tenths of their
/// time budget.
const PATIENCE: i64 = 180;

/// What a call asks for, by limit, in tokens.
pub(super) type Amounts = [(&'static str, u64); 2];

/// The same of each resource of a call.
pub(super) type Requested = Vec<(&'static str, Amounts)>;

/// The calls of one process that wait, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    next: u64,
    by_arrival: BTreeMap<u64, (EntityId, Requested)>,
}

pub(super) type SharedWaiters = Arc<Mutex<Waiters>>;

/// A call of the process that waits, until it is dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    waiters: SharedWaiters,
    arrival: u64,
}

impl Waiter {
    pub(super) fn join(waiters: &SharedWaiters, entity: &EntityId, asked: &Requested) -> Self {
        let mut list = waiters.lock().unwrap();
        list.next += 1;
        let arrival = list.next;
        list.by_arrival.insert(arrival, (entity.clone(), asked.clone()));
        Self {
            waiters: waiters.clone(),
            arrival,
        }
    }

    /// What those who arrived earlier want of a bucket: the entity's own, or that of a parent, which any of them may charge.
    fn ahead(&self, key: &BucketKey, children: &[EntityId], limit: &str) -> u64 {
        let bucket = &key.entity;
        let waiters = self.waiters.lock().unwrap();
        let ahead = waiters.by_arrival.range(..self.arrival).map(|(_, waiter)| waiter);
        ahead
            .filter(|(entity, _)| entity == bucket || !children.contains(bucket))
            .flat_map(|(_, asked)| asked)
            .filter(|(resource, _)| key.resource.as_str() == *resource)
            .flat_map(|(_, amounts)| amounts)
            .filter(|(name, _)| *name == limit)
            .map(|(_, tokens)| tokens)
            .sum()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.lock().unwrap().by_arrival.remove(&self.arrival);
    }
}

/// A call that was refused.
#[derive(Debug)]
pub(super) struct Refusal<'a> {
    /// The buckets that it asked.
    pub(super) chain: BTreeSet<BucketKey>,
    pub(super) asked: &'a Requested,
    /// When it was made, in milliseconds.
    pub(super) from: i64,
    /// If it waits: until when, in milliseconds, and its place.
    pub(super) waits: Option<(i64, &'a Waiter)>,
    /// The entities that calls are made for.
    pub(super) children: &'a [EntityId],
    /// What its process has used and not written yet.
    pub(super) unwritten: &'a SharedUnwritten,
}

impl Refusal<'_> {
    fn asked(&self) -> Vec<Shortage> {
        let by_limit = |key: &BucketKey| {
            let key = key.clone();
            let own = self.asked.iter().filter({
                let key = key.clone();
                move |(resource, _)| key.resource.as_str() == *resource
            });
            own.flat_map(|(_, amounts)| amounts)
                .filter_map(move |(limit, tokens)| {
                    let waiter = self.waits.as_ref().map(|(_, waiter)| waiter);
                    let ahead = waiter.map_or(0, |waiter| waiter.ahead(&key, self.children, limit));
                    let limit = LimitName::parse(limit).ok()?;
                    let owed = self.unwritten.lock().unwrap().of(&key, &limit);
                    Some(Shortage {
                        key: key.clone(),
                        limit,
                        amount: i128::from(tokens + ahead) * 1000 + owed,
                    })
                })
        };
        self.chain.iter().flat_map(by_limit).collect()
    }

    /// Checks it once everything has shown that was under way.
    pub(super) fn check(&self, world: &Shared) {
        let (to, only_weather) = {
            let world = lock(world);
            (world.clock.millis(), world.scenario.only_weather())
        };
        if !only_weather && to - self.from >= PATIENCE {
            return;
        }
        let (asked, chain) = (self.asked(), self.chain.clone());
        let (from, until) = match self.waits {
            Some((deadline, _)) => (to - AROUND, deadline),
            None => (self.from - AROUND, self.from - AROUND),
        };
        let world = world.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(AROUND.unsigned_abs())).await;
            let mut world = lock(&world);
            let right = asked
                .iter()
                .any(|short| world.oracle.was_short(short, from..=to + AROUND, until));
            if world.scenario.peers == 0 && !right {
                let entities: Vec<_> = chain.iter().map(|key| key.entity.as_str()).collect();
                let what = format!("{entities:?}: refused though there was enough");
                world.oracle.violations.push(Violation { at: to - START, what });
            }
        });
    }
}
