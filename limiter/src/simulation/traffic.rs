//! Callers: acquire, use, adjust, give back, change their mind, be cancelled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use zae_limiter_schema::bucket::{BucketKey, Params, TokenBucket};
use zae_limiter_schema::{EntityId, LimitName, OnUnavailable};

use super::config::{WITH_GIVEN_LIMITS, given_limits};
use super::faults::{Scenario, Weather};
use super::oracle::Violation;
use super::refusals::{Amounts, Refusal, Requested, SharedWaiters, Waiter};
use super::run::PROCESSES;
use super::unwritten::SharedUnwritten;
use super::world::{Shared, lock};
use crate::Error;
use crate::acquire::{Acquire, Admission, Lease};
use crate::bucket::Buckets;
use crate::status::LimitStatus;

pub(super) const RESOURCE: &str = "model";
/// What some calls charge, too.
pub(super) const BUDGET: &str = "budget";
/// The most tokens that a call asks for.
const MAX_RPM: u64 = 2;
const MAX_TPM: u64 = 8;
/// The longest that a call waits for tokens, in milliseconds.
const MAX_PATIENCE: u64 = 1_500;

/// What callers have seen, and what should be booked because of it.
#[derive(Debug, Default)]
pub(super) struct CallTotals {
    pub(super) acquires: u64,
    pub(super) granted: u64,
    pub(super) refused: u64,
    pub(super) unavailable: u64,
    pub(super) local: u64,
    pub(super) observed: u64,
    pub(super) disabled: u64,
    /// Granted calls that charged several resources.
    pub(super) several: u64,
    /// Net consumption in millitokens, by bucket and limit.
    pub(super) expected: BTreeMap<(BucketKey, LimitName), i128>,
}

pub(super) type SharedCallTotals = Arc<Mutex<CallTotals>>;

pub(super) struct Caller {
    pub(super) world: Shared,
    pub(super) buckets: Arc<Buckets>,
    pub(super) call_totals: SharedCallTotals,
    pub(super) entities: Vec<EntityId>,
    pub(super) random: fastrand::Rng,
    pub(super) scenario: Scenario,
    pub(super) local: Arc<Mutex<LocalUse>>,
    pub(super) waiters: SharedWaiters,
    pub(super) unwritten: SharedUnwritten,
}

/// What one process has admitted by itself in outages, and what the table has admitted to it.
#[derive(Debug, Default)]
pub(super) struct LocalUse {
    /// By entity, its part of `rpm` and `tpm` as it should be, and at which now.
    by_entity: BTreeMap<EntityId, (i64, [TokenBucket; 2])>,
}

impl LocalUse {
    /// The process's part of both limits at this now. It is full when it is first used.
    fn at(&mut self, entity: &EntityId, now: i64) -> &mut [TokenBucket; 2] {
        let processes = i128::from(PROCESSES.get());
        let full = |burst: i128, refill: i128| {
            let params = Params::new(burst / processes, burst / processes, refill, 1_000 * processes);
            TokenBucket::full(params.unwrap())
        };
        let new = || (now, [full(10_000, 10_000), full(50_000, 30_000)]);
        let (at, parts) = self.by_entity.entry(entity.clone()).or_insert_with(new);
        let elapsed = i128::from(now - *at);
        if elapsed > 0 {
            // Debt of at most one burst.
            *parts = parts.map(|mut part| {
                part.tokens = part.tokens.max(-part.params.burst());
                part.refilled(elapsed)
            });
        }
        *at = now;
        parts
    }

    /// The table has admitted this, or got it back.
    fn counted(&mut self, entity: &EntityId, now: i64, limit: &str, tokens: i64) {
        let parts = self.at(entity, now);
        let part = &mut parts[usize::from(limit != "rpm")];
        *part = if tokens >= 0 {
            part.force_take(0, i128::from(tokens) * 1000)
        } else {
            part.credit(0, i128::from(-tokens) * 1000)
        };
    }
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
            let rest = if self.scenario.rest > 0 && self.random.bool() {
                self.random.u64(..self.scenario.rest)
            } else {
                0
            };
            sleep(Duration::from_millis(think + rest)).await;
            self.call().await;
        }
    }

    fn call_totals(&self) -> std::sync::MutexGuard<'_, CallTotals> {
        self.call_totals
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// True with this chance in a thousand. Nothing is drawn for what never happens.
    fn happens(&mut self, thousandths: u32) -> bool {
        thousandths > 0 && self.random.u32(0..1000) < thousandths
    }

    fn draw_amounts(&mut self) -> Amounts {
        [
            ("rpm", self.random.u64(1..=MAX_RPM)),
            ("tpm", self.random.u64(1..=MAX_TPM)),
        ]
    }

    /// What the next call takes, of one resource or two, in either order.
    fn draw(&mut self) -> Requested {
        let mut asked = vec![(RESOURCE, self.draw_amounts())];
        if self.happens(self.scenario.several) {
            asked.push((BUDGET, self.draw_amounts()));
            if self.random.bool() {
                asked.reverse();
            }
        }
        asked
    }

    async fn call(&mut self) {
        let entity = self.entities[self.random.usize(..self.entities.len())].clone();
        let asked = self.draw();
        let from = lock(&self.world).clock.millis();
        self.call_totals().acquires += 1;
        let given = entity.as_str() == WITH_GIVEN_LIMITS && self.happens(self.scenario.given_limits);
        let mut acquire = Acquire::new(self.buckets.clone(), &entity, asked[0].0);
        for (index, (resource, amounts)) in asked.iter().enumerate() {
            if index > 0 {
                acquire = acquire.and(resource);
            }
            if asked.len() > 1 && *resource == BUDGET && self.random.bool() {
                acquire = acquire.cascade(false);
            }
            for (limit, tokens) in amounts {
                acquire = acquire.consume(limit, *tokens);
            }
            if given {
                acquire = acquire.limits(given_limits().iter().cloned());
            }
        }
        let patience = self
            .happens(self.scenario.patient)
            .then(|| self.random.u64(0..=MAX_PATIENCE));
        if let Some(patience) = patience {
            acquire = acquire.wait_up_to(Duration::from_millis(patience));
        }
        let waits = patience.map(|patience| {
            let deadline = from + i64::try_from(patience).unwrap_or(0);
            (deadline, Waiter::join(&self.waiters, &entity, &asked))
        });
        if self.scenario.share {
            acquire = acquire.on_unavailable(OnUnavailable::Allow);
        }
        let outcome = if self.random.u32(0..1000) < self.scenario.cancelled {
            let patience = Duration::from_millis(self.random.u64(0..=20));
            match tokio::time::timeout(patience, acquire.into_future()).await {
                Ok(outcome) => outcome,
                Err(_) => return,
            }
        } else {
            acquire.await
        };
        self.check_mode(&entity, &outcome, from);
        match outcome {
            Ok(lease) if lease.admission() == Admission::Local => {
                drop(waits);
                self.admitted_locally(lease, asked[0].1).await;
            }
            Ok(lease) => {
                // Under faults a call may be refused because its writes lose to others, though there is enough.
                let is_calm = self.scenario.only_weather() && waits.is_none();
                if is_calm && lease.admission() == Admission::Observed {
                    let refusal = Refusal {
                        chain: charged(&lease.observed_limits()),
                        asked: &asked,
                        from,
                        waits: None,
                        children: &self.entities,
                        unwritten: &self.unwritten,
                    };
                    refusal.check(&self.world);
                }
                drop(waits);
                self.call_totals().granted += 1;
                self.call_totals().several += u64::from(asked.len() > 1);
                for (limit, tokens) in asked[0].1 {
                    self.counted(&entity, limit, tokens.cast_signed());
                }
                self.use_up(lease, asked).await;
            }
            Err(Error::Disabled { .. }) => self.call_totals().disabled += 1,
            Err(Error::Refused(refused)) => {
                self.call_totals().refused += 1;
                if !self.is_short_locally(&entity, asked[0].1) {
                    let refusal = Refusal {
                        chain: charged(refused.statuses()),
                        asked: &asked,
                        from,
                        waits: waits.as_ref().map(|(deadline, waiter)| (*deadline, waiter)),
                        children: &self.entities,
                        unwritten: &self.unwritten,
                    };
                    refusal.check(&self.world);
                }
            }
            Err(error) if error.is_unavailable() => {
                self.call_totals().unavailable += 1;
                self.check_liveness(&error);
            }
            Err(_) if self.scenario.unreadable > 0 => self.call_totals().unavailable += 1,
            Err(error) => self.fail(format!("a call failed: {error}")),
        }
    }

    /// A call follows a mode that its process may have known. An observed refusal is one that had to be.
    fn check_mode(&self, entity: &EntityId, outcome: &crate::Result<Lease>, from: i64) {
        if !self.scenario.modes {
            return;
        }
        let wrong = {
            let world = lock(&self.world);
            let chain = world.config.chain(entity);
            let modes = &world.config.modes;
            modes.explain(&chain, outcome, from, world.clock.millis())
        };
        if let Some(what) = wrong {
            self.fail(what);
        }
        if let Ok(lease) = outcome
            && lease.admission() == Admission::Observed
        {
            self.call_totals().observed += 1;
        }
    }

    /// No call may fail while the table responds.
    fn check_liveness(&self, error: &Error) {
        if self.scenario.only_weather() && !self.may_be_outage() {
            self.fail(format!("unavailable though the table responds: {error}"));
        }
    }

    /// What the table admits counts for the part of the process too.
    fn counted(&self, entity: &EntityId, limit: &str, tokens: i64) {
        if self.scenario.share {
            let now = lock(&self.world).clock.millis();
            self.local.lock().unwrap().counted(entity, now, limit, tokens);
        }
    }

    /// A process admits no more than its part of burst and refill.
    async fn admitted_locally(&self, lease: Lease, amounts: Amounts) {
        self.call_totals().local += 1;
        let (entity, now) = (lease.entity().clone(), lock(&self.world).clock.millis());
        if let Err(error) = lease.commit().await {
            self.fail(format!(
                "{entity}: a local admission cannot be committed: {error}"
            ));
        }
        let mut local = self.local.lock().unwrap();
        for (part, (limit, tokens)) in local.at(&entity, now).iter_mut().zip(amounts) {
            *part = part.force_take(0, i128::from(tokens) * 1000);
            if part.tokens < 0 {
                let missing = -part.tokens;
                self.fail(format!(
                    "{entity}: {missing} millitokens of {limit} too much admitted locally"
                ));
            }
        }
    }

    /// True if the process itself may have refused the call in an outage, because it had too little left of its part.
    fn is_short_locally(&self, entity: &EntityId, amounts: Amounts) -> bool {
        if !self.scenario.share || !self.may_be_outage() {
            return false;
        }
        let now = lock(&self.world).clock.millis();
        let mut local = self.local.lock().unwrap();
        let mut parts = local.at(entity, now).iter().zip(amounts);
        parts.any(|(part, (_, tokens))| part.tokens < i128::from(tokens) * 1000)
    }

    /// The breaker notices the end of an outage after five seconds at the latest.
    fn may_be_outage(&self) -> bool {
        let world = lock(&self.world);
        world.weather() != Weather::Clear || world.clock.millis() - world.weather_since <= 5_500
    }

    fn fail(&self, what: String) {
        lock(&self.world)
            .oracle
            .violations
            .push(Violation { at: 0, what });
    }

    /// What is corrected is of the resource that the call named last.
    async fn use_up(&mut self, mut lease: Lease, mut asked: Requested) {
        let hold = self.random.u64(0..=100);
        sleep(Duration::from_millis(hold)).await;
        let last = asked.len() - 1;
        let resource = asked[last].0;
        if self.happens(self.scenario.more) {
            let more = self.random.u64(1..=4);
            if lease.on(resource).consume("tpm", more).await.is_ok() {
                asked[last].1[1].1 += more;
            }
        }
        let tpm = asked[last].1[1].1;
        let (mut charged, entity) = (charged(&lease.statuses()), lease.entity().clone());
        for passed in lease.observed_limits() {
            // Nothing was taken there.
            charged.retain(|key| key.entity != passed.entity || key.resource != passed.resource);
        }
        let amounts = asked[0].1;
        let returned = |caller: &Self| {
            for (limit, tokens) in amounts {
                caller.counted(&entity, limit, -tokens.cast_signed());
            }
        };
        // Errors say that a change is not written yet; it goes on in the background and is counted in the end.
        match self.random.u32(0..100) {
            _ if self.scenario.keeping => {
                self.expect(&charged, &asked);
                drop(lease.commit().await);
            }
            0..30 => {
                returned(self);
                drop(lease.rollback().await);
            }
            30..40 => {
                returned(self);
                drop(lease);
            }
            40..60 => {
                let more = self.random.u64(1..=6);
                lease.on(resource).adjust("tpm", more.cast_signed());
                self.counted(&entity, "tpm", more.cast_signed());
                self.owe(&charged, resource, "tpm", more);
                asked[last].1[1].1 = tpm + more;
                self.expect(&charged, &asked);
                drop(lease.commit().await);
            }
            60..80 => {
                let less = self.random.u64(1..=3).min(tpm);
                lease.on(resource).release("tpm", less);
                self.counted(&entity, "tpm", -less.cast_signed());
                asked[last].1[1].1 = tpm - less;
                self.expect(&charged, &asked);
                drop(lease.commit().await);
            }
            _ => {
                self.expect(&charged, &asked);
                drop(lease.commit().await);
            }
        }
    }

    /// Notes what will be written on top of what was acquired.
    fn owe(&self, charged: &BTreeSet<BucketKey>, resource: &str, limit: &str, tokens: u64) {
        let Ok(limit) = LimitName::parse(limit) else {
            return;
        };
        let mut unwritten = self.unwritten.lock().unwrap();
        for key in charged.iter().filter(|key| key.resource.as_str() == resource) {
            unwritten.adjusted(key, &limit, i128::from(tokens) * 1000);
        }
    }

    fn expect(&self, charged: &BTreeSet<BucketKey>, used: &Requested) {
        let mut call_totals = self.call_totals();
        for (resource, amounts) in used {
            for key in charged.iter().filter(|key| key.resource.as_str() == *resource) {
                for (limit, tokens) in amounts {
                    let booked = (key.clone(), LimitName::parse(limit).unwrap());
                    *call_totals.expected.entry(booked).or_default() += i128::from(*tokens) * 1000;
                }
            }
        }
    }
}

/// The buckets that a call was booked on, or asked.
fn charged(statuses: &[LimitStatus]) -> BTreeSet<BucketKey> {
    let keys = statuses.iter().map(|status| BucketKey {
        entity: status.entity.clone(),
        resource: status.resource.clone(),
    });
    keys.collect()
}
