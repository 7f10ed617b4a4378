//! Callers: acquire, use, adjust, give back, change their mind, be cancelled.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{EntityId, LimitName, Resource};

use super::oracle::Violation;
use super::world::{Shared, lock};
use crate::Error;
use crate::acquire::{Acquire, Lease};
use crate::bucket::Buckets;

pub(super) const RESOURCE: &str = "model";

/// What callers have seen, and what should be booked because of it.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    pub(super) acquires: u64,
    pub(super) granted: u64,
    pub(super) refused: u64,
    pub(super) unavailable: u64,
    /// Net consumption in millitokens, by bucket and limit.
    pub(super) expected: BTreeMap<(BucketKey, LimitName), i128>,
}

pub(super) type SharedTally = Arc<Mutex<InFlight>>;

pub(super) struct Caller {
    pub(super) world: Shared,
    pub(super) buckets: Arc<Buckets>,
    pub(super) tally: SharedTally,
    pub(super) entities: Vec<EntityId>,
    pub(super) random: fastrand::Rng,
    pub(super) cancelled: u32,
    pub(super) keeping: bool,
    pub(super) rest: u64,
}

impl Caller {
    pub(super) async fn run(mut self) {
        loop {
            let think = self.random.u64(1..=80)
                + if self.random.u32(0..20) == 0 {
                    self.random.u64(500..=4_000)
                } else {
                    0
                };
            let rest = if self.rest > 0 && self.random.bool() {
                self.random.u64(..self.rest)
            } else {
                0
            };
            sleep(Duration::from_millis(think + rest)).await;
            self.call().await;
        }
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, InFlight> {
        self.tally
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The buckets that a call of this entity is booked on.
    fn chain(&self, entity: &EntityId) -> Vec<BucketKey> {
        let Ok(resource) = Resource::parse(RESOURCE) else {
            return Vec::new();
        };
        let world = lock(&self.world);
        let mut chain = vec![entity.clone()];
        while let Some(parent) = world.parents.get(&chain[chain.len() - 1]) {
            chain.push(parent.clone());
        }
        chain
            .into_iter()
            .map(|entity| BucketKey {
                entity,
                resource: resource.clone(),
            })
            .collect()
    }

    async fn call(&mut self) {
        let entity = self.entities[self.random.usize(..self.entities.len())].clone();
        let amounts = [("rpm", self.random.u64(1..=2)), ("tpm", self.random.u64(1..=8))];
        let from = lock(&self.world).clock.millis();
        self.tally().acquires += 1;
        let mut acquire = Acquire::new(self.buckets.clone(), entity.to_string(), RESOURCE.to_owned());
        for (limit, tokens) in amounts {
            acquire = acquire.consume(limit, tokens);
        }
        let outcome = if self.random.u32(0..1000) < self.cancelled {
            let patience = Duration::from_millis(self.random.u64(0..=20));
            match tokio::time::timeout(patience, acquire.into_future()).await {
                Ok(outcome) => outcome,
                Err(_) => return,
            }
        } else {
            acquire.await
        };
        match outcome {
            Ok(lease) => {
                self.tally().granted += 1;
                self.use_up(lease, &entity, amounts).await;
            }
            Err(Error::RateLimitExceeded(_)) => {
                self.tally().refused += 1;
                self.check_refusal(&entity, amounts, from);
            }
            Err(error) if error.is_unavailable() => self.tally().unavailable += 1,
            Err(error) => self.fail(format!("a call failed: {error}")),
        }
    }

    fn fail(&self, what: String) {
        lock(&self.world)
            .oracle
            .violations
            .push(Violation { at: 0, what });
    }

    async fn use_up(&mut self, mut lease: Lease, entity: &EntityId, amounts: [(&str, u64); 2]) {
        let hold = self.random.u64(0..=100);
        sleep(Duration::from_millis(hold)).await;
        let tpm = amounts[1].1;
        // Errors say that a change is not written yet; it goes on in the background and is counted in the end.
        match self.random.u32(0..100) {
            _ if self.keeping => {
                self.expect(entity, &amounts);
                drop(lease.commit().await);
            }
            0..30 => drop(lease.rollback().await),
            30..40 => drop(lease),
            40..60 => {
                let more = self.random.u64(1..=6);
                lease.adjust("tpm", i64::try_from(more).unwrap_or(0));
                self.expect(entity, &[("rpm", amounts[0].1), ("tpm", tpm + more)]);
                drop(lease.commit().await);
            }
            60..80 => {
                let less = self.random.u64(1..=3).min(tpm);
                lease.release("tpm", less);
                self.expect(entity, &[("rpm", amounts[0].1), ("tpm", tpm - less)]);
                drop(lease.commit().await);
            }
            _ => {
                self.expect(entity, &amounts);
                drop(lease.commit().await);
            }
        }
    }

    fn expect(&self, entity: &EntityId, used: &[(&str, u64)]) {
        let chain = self.chain(entity);
        let mut tally = self.tally();
        for (limit, tokens) in used {
            let Ok(limit) = LimitName::parse(limit) else {
                continue;
            };
            for key in &chain {
                *tally.expected.entry((key.clone(), limit.clone())).or_default() +=
                    i128::from(*tokens) * 1000;
            }
        }
    }

    /// A refusal is right if there was too little around the time of the call. What others held then shows a moment
    /// later.
    fn check_refusal(&self, entity: &EntityId, amounts: [(&'static str, u64); 2], from: i64) {
        let to = lock(&self.world).clock.millis();
        let chain = self.chain(entity);
        let world = self.world.clone();
        let entity = entity.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            let asked: Vec<_> = chain
                .iter()
                .flat_map(|key| amounts.iter().map(move |(limit, tokens)| (key, limit, tokens)))
                .filter_map(|(key, limit, tokens)| {
                    let limit = LimitName::parse(limit).ok()?;
                    Some((key.clone(), limit, i128::from(*tokens) * 1000))
                })
                .collect();
            let mut world = lock(&world);
            if world.scenario.peers == 0 && !world.oracle.refusal_is_right(&asked, from - 1_000, to + 1_000) {
                let what = format!(
                    "{entity}: refused at {} though there was enough",
                    to - super::clock::START
                );
                world.oracle.violations.push(Violation {
                    at: to - super::clock::START,
                    what,
                });
            }
        });
    }
}
