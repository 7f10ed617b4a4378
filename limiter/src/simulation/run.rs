//! One run of the simulation.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zae_limiter_dynamo::Entropy;
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{EntityId, Limit, LimitSet, Mode, OnUnavailable, Resource};

use super::clock::{SimClock, block_on};
use super::expiry::{delete_buckets, forget_expired};
use super::faults::{Scenario, Weather};
use super::oracle::Violation;
use super::peer::Peer;
use super::port::Port;
use super::refusals::SharedWaiters;
use super::sdk::SdkTable;
use super::top_ups::top_up_buckets;
use super::traffic::{CallTotals, Caller, LocalUse, RESOURCE, SharedCallTotals};
use super::world::{Shared, World, lock};
use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::Settings;
use crate::config::cache::{CacheLimits, ConfigCache};
use crate::config::resolution::Defaults;

/// Up to this many processes a bucket knows every write by its slot.
const SLOTS: usize = 16;
/// Among how many processes the limits are divided in an outage.
pub(super) const PROCESSES: NonZeroU32 = NonZeroU32::new(4).unwrap();

/// What a run came to.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) acquires: u64,
    pub(super) granted: u64,
    pub(super) refused: u64,
    pub(super) unavailable: u64,
    pub(super) local: u64,
    pub(super) observed: u64,
    pub(super) disabled: u64,
    pub(super) several: u64,
    pub(super) writes: u64,
    pub(super) on_slots_of_others: u64,
    /// Changes that were given up.
    pub(super) unwritten: u64,
    pub(super) parameters: u64,
    pub(super) violations: Vec<Violation>,
    pub(super) excesses: usize,
    pub(super) expired: u64,
    pub(super) legacy_removed: u64,
    pub(super) trace: u64,
}

/// Runs a scenario from start to end, on one thread and in simulated time.
pub(super) fn run(scenario: Scenario) -> Report {
    block_on(simulate(scenario))
}

/// Configurations between which a run changes. No two are equal: a late write must not find the etag of an earlier one.
fn variant(index: usize) -> LimitSet {
    let limit = |name: &str, burst, amount, seconds| Limit::custom(name, 1, burst, amount, seconds);
    let more = index as u64 / 4;
    let limits = match index % 4 {
        0 => vec![limit("rpm", 10, 10, 1), limit("tpm", 50 + more, 30, 1)],
        1 => vec![
            limit("rpm", 5, 10, 1),
            limit("tpm", 50 + more, 30, 1),
            limit("tpd", 20, 7, 3),
        ],
        2 => vec![limit("rpm", 20, 11, 1), limit("tpm", 80 + more, 91, 3)],
        _ => vec![
            limit("rpm", 10, 20, 2),
            limit("tpm", 30 + more, 30, 1),
            limit("tpd", 10, 7, 3),
        ],
    };
    let limits: Vec<Limit> = limits.into_iter().flatten().collect();
    LimitSet::new(limits).unwrap_or_default()
}

/// A limit that takes days to fill.
fn daily() -> LimitSet {
    let limits = [
        Limit::custom("rpm", 1, 10, 10, 1),
        Limit::custom("tpm", 1, 500, 700, 86_400),
    ];
    LimitSet::new(limits.into_iter().flatten()).unwrap_or_default()
}

/// Lets the table be unavailable again and again, for longer than every budget.
async fn change_weather(world: Shared) {
    let writes_only = lock(&world).scenario.write_outages;
    let weathers = if writes_only {
        vec![Weather::WritesSilent, Weather::WritesRefused]
    } else {
        vec![Weather::Silent, Weather::Refusing, Weather::BrownOut]
    };
    for weather in weathers.into_iter().cycle() {
        let (clear, bad) = {
            let mut world = lock(&world);
            (world.between(5_000..=20_000), world.between(6_000..=12_000))
        };
        sleep(Duration::from_millis(clear)).await;
        lock(&world).set_weather(weather);
        sleep(Duration::from_millis(bad)).await;
        lock(&world).set_weather(Weather::Clear);
    }
}

fn entity(name: &str) -> EntityId {
    match EntityId::parse(name) {
        Ok(entity) => entity,
        Err(error) => panic!("{error}"),
    }
}

struct Limiter {
    port: Arc<Port>,
    buckets: Arc<Buckets>,
    callers: JoinSet<()>,
}

/// The buckets of a limiter that reaches the table through this port.
pub(super) fn connect(
    port: &Arc<Port>,
    clock: impl crate::Clock + 'static,
    settings: Settings,
    seed: u64,
) -> Arc<Buckets> {
    let clock: Arc<dyn crate::Clock> = Arc::new(clock);
    let defaults = Defaults {
        limits: LimitSet::default(),
        on_unavailable: OnUnavailable::Block,
    };
    let kept = CacheLimits {
        ttl: Duration::from_secs(10),
        entries: 100,
    };
    let cache = Arc::new(ConfigCache::new(port.clone(), clock.clone(), defaults, kept));
    let entropy = Arc::new(Entropy::seeded(seed));
    let table = "simulated".to_owned();
    Arc::new(Buckets::new(port.clone(), cache, clock, entropy, settings, table))
}

struct Run {
    scenario: Scenario,
    world: Shared,
    call_totals: SharedCallTotals,
    random: fastrand::Rng,
    clock: SimClock,
    made: u64,
    crashed: bool,
}

impl Run {
    fn limiter(&mut self) -> Limiter {
        self.made += 1;
        let seed = self.scenario.seed.wrapping_mul(1_000_003).wrapping_add(self.made);
        let mut limiter = self.process(seed);
        self.start_callers(&mut limiter, seed);
        limiter
    }

    fn process(&mut self, seed: u64) -> Limiter {
        let port = Port::new(&self.world);
        let skew = match self.scenario.skew {
            0 => 0,
            most => self.random.i64(-most..=most),
        };
        let settings = Settings {
            time_budget: Duration::from_millis(200),
            settle_budget: self.scenario.settle_budget,
            processes: self.scenario.share.then_some(PROCESSES),
            ttl_multiplier: self.scenario.ttl_multiplier,
            buckets: self.scenario.kept_buckets,
            ..Settings::default()
        };
        let buckets = connect(&port, SimClock { skew, ..self.clock }, settings, seed);
        Limiter {
            port,
            buckets,
            callers: JoinSet::new(),
        }
    }

    /// The same seed makes the same calls at the same times.
    fn start_callers(&self, limiter: &mut Limiter, seed: u64) {
        let local: Arc<Mutex<LocalUse>> = Arc::default();
        let waiters = SharedWaiters::default();
        for index in 0..self.scenario.callers_per_limiter {
            let caller = Caller {
                world: self.world.clone(),
                buckets: limiter.buckets.clone(),
                call_totals: self.call_totals.clone(),
                entities: vec![entity("a"), entity("b")],
                random: fastrand::Rng::with_seed(seed.wrapping_mul(31).wrapping_add(index as u64)),
                scenario: self.scenario.clone(),
                local: local.clone(),
                waiters: waiters.clone(),
                unwritten: limiter.port.unwritten.clone(),
            };
            limiter.callers.spawn(caller.run());
        }
    }

    /// The process of the first limiter is copied while none of its calls is under way, as a function is between two
    /// invocations. Then original and copies do the same at the same time.
    async fn copy_first(&mut self, limiters: &mut Vec<Limiter>) {
        let Some(first) = limiters.first_mut() else { return };
        first.callers.shutdown().await;
        first.buckets.settled().await;
        sleep(Duration::from_millis(700)).await;
        let seed = self.scenario.seed;
        for number in 0..self.scenario.copies {
            let mut copy = self.process(seed.wrapping_mul(77).wrapping_add(number as u64));
            copy.buckets.becomes_copy_of(&limiters[0].buckets);
            self.start_callers(&mut copy, seed);
            limiters.push(copy);
        }
        self.start_callers(&mut limiters[0], seed);
    }
}

async fn simulate(scenario: Scenario) -> Report {
    let clock = SimClock {
        start: Instant::now(),
        skew: 0,
    };
    let limits = if scenario.long_periods {
        daily()
    } else {
        variant(0)
    };
    let mut world = World::new(scenario.clone(), clock, limits);
    if scenario.cascade {
        for (child, parent) in [("a", "p"), ("b", "p"), ("p", "g")] {
            world.config.parents.insert(entity(child), entity(parent));
        }
    }
    if scenario.sdk {
        world.sdk = Some(Arc::new(SdkTable::new().await));
    }
    let world = Arc::new(Mutex::new(world));
    let mut run = Run {
        random: fastrand::Rng::with_seed(scenario.seed),
        scenario,
        world: world.clone(),
        call_totals: Arc::new(Mutex::new(CallTotals::default())),
        clock,
        made: 0,
        crashed: false,
    };
    let mut limiters: Vec<Limiter> = (0..run.scenario.limiters).map(|_| run.limiter()).collect();
    let mut others = JoinSet::new();
    if run.scenario.expiry {
        others.spawn(forget_expired(world.clone()));
    }
    if run.scenario.deletions {
        others.spawn(delete_buckets(world.clone()));
    }
    if run.scenario.top_ups {
        let random = fastrand::Rng::with_seed(run.scenario.seed.wrapping_add(33));
        others.spawn(top_up_buckets(world.clone(), &["rpm", "tpm"], random));
    }
    if run.scenario.outages {
        others.spawn(change_weather(world.clone()));
    }
    for index in 0..run.scenario.peers {
        let Ok(resource) = Resource::parse(RESOURCE) else {
            continue;
        };
        let key = BucketKey {
            entity: entity("a"),
            resource,
        };
        let random = fastrand::Rng::with_seed(run.scenario.seed.wrapping_add(77 + index as u64));
        others.spawn(
            Peer {
                world: world.clone(),
                key,
                random,
            }
            .run(),
        );
    }
    let end = Instant::now() + run.scenario.duration;
    let (mut next_change, mut family) = (1, 0);
    let mut copies_at = (run.scenario.copies > 0).then(|| Instant::now() + run.scenario.duration / 2);
    while Instant::now() < end {
        let pause = run.random.u64(200..=3_000);
        sleep(Duration::from_millis(pause)).await;
        if copies_at.take_if(|at| *at <= Instant::now()).is_some() {
            run.copy_first(&mut limiters).await;
        }
        if run.scenario.config_changes {
            lock(&world).change_limits(variant(next_change));
            next_change += 1;
        }
        if run.scenario.modes && run.random.u32(0..3) == 0 {
            change_mode(&mut run);
        }
        if run.scenario.family_changes {
            lock(&world).config.change_family(family);
            family += 1;
        }
        if run.scenario.crashes > 0 && run.random.u32(0..100) < 10 {
            crash(&mut run, &mut limiters);
        }
    }
    finish(run, limiters, others).await
}

/// Somebody changes the mode of an entity.
fn change_mode(run: &mut Run) {
    let entities: &[&str] = if run.scenario.cascade {
        &["a", "b", "p", "g"]
    } else {
        &["a", "b"]
    };
    let name = entities[run.random.usize(..entities.len())];
    let mode = match run.random.u32(0..8) {
        0..3 => Mode::Enforce,
        3..6 => Mode::Observe,
        6 => Mode::Bypass,
        _ => Mode::Disabled,
    };
    let refreshes = run.random.bool();
    lock(&run.world).set_mode(&entity(name), mode, refreshes);
}

/// A limiter dies with everything that it holds; another one takes its place.
fn crash(run: &mut Run, limiters: &mut Vec<Limiter>) {
    let victim = run.random.usize(..limiters.len());
    let dead = limiters.swap_remove(victim);
    dead.port.alive.store(false, Ordering::Relaxed);
    let mut callers = dead.callers;
    callers.abort_all();
    // Its leases must not be given back: a dead process does nothing.
    std::mem::forget(callers);
    run.crashed = true;
    let replacement = run.limiter();
    limiters.push(replacement);
}

/// Stops the callers, lets everything that is under way be written, and adds up.
async fn finish(run: Run, mut limiters: Vec<Limiter>, mut others: JoinSet<()>) -> Report {
    for limiter in &mut limiters {
        limiter.callers.shutdown().await;
    }
    others.shutdown().await;
    lock(&run.world).calm = true;
    if run.scenario.modes {
        // Everything that is left is written by calls that are enforced.
        for name in ["a", "b", "p", "g"] {
            lock(&run.world).set_mode(&entity(name), Mode::Enforce, true);
        }
        sleep(Duration::from_secs(12)).await;
    }
    for limiter in &limiters {
        limiter.buckets.settled().await;
    }
    sleep(Duration::from_secs(2)).await;
    // What arrived after its sender had looked shows when the bucket is used again.
    let used: Vec<BucketKey> = lock(&run.world).items.keys().cloned().collect();
    for limiter in &limiters {
        for key in &used {
            let last = Acquire::new(limiter.buckets.clone(), key.entity.as_str(), &key.resource);
            if let Ok(lease) = last.consume("rpm", 1).await {
                drop(lease.rollback().await);
            }
        }
        limiter.buckets.settled().await;
    }
    let mut world = lock(&run.world);
    let call_totals = run
        .call_totals
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut expected = call_totals.expected.clone();
    let mut unconfirmed: BTreeMap<_, (i128, i128)> = BTreeMap::new();
    for unwritten in limiters
        .iter()
        .flat_map(|limiter| limiter.buckets.report().unwritten)
    {
        let key = BucketKey {
            entity: unwritten.entity,
            resource: unwritten.resource,
        };
        for (limit, change) in unwritten.changes {
            let expected = expected.entry((key.clone(), limit.clone())).or_default();
            *expected -= change;
            if unwritten.maybe_written {
                let (low, high) = unconfirmed.entry((key.clone(), limit)).or_insert((0, 0));
                *low += change.min(0);
                *high += change.max(0);
            }
        }
    }
    // Callers that were stopped in the middle of a call have told nobody what they used, and the dead keep theirs.
    let exact = !run.crashed && run.scenario.peers == 0;
    if exact {
        let booked = world.oracle.booked.clone();
        for ((key, limit), amount) in &booked {
            let should = expected.get(&(key.clone(), limit.clone())).copied().unwrap_or(0);
            let (low, high) = unconfirmed
                .get(&(key.clone(), limit.clone()))
                .copied()
                .unwrap_or_default();
            // What was on a bucket that was deleted before its process asked again stays booked: nobody can tell any more.
            let expired = world
                .oracle
                .lost_debits
                .expired
                .get(&(key.clone(), limit.clone()));
            let most = should + high + expired.copied().unwrap_or(0);
            // With more processes than slots a debit whose response is lost may be asked for twice.
            let most = if run.scenario.limiters > SLOTS {
                i128::MAX
            } else {
                most
            };
            if !(should + low..=most).contains(amount) {
                let what = format!(
                    "{}/{} {limit}: booked {amount}, used {should}",
                    key.entity, key.resource
                );
                world.oracle.violations.push(Violation { at: 0, what });
            }
        }
    }
    world.oracle.finish();
    Report {
        acquires: call_totals.acquires,
        granted: call_totals.granted,
        refused: call_totals.refused,
        unavailable: call_totals.unavailable,
        local: call_totals.local,
        observed: call_totals.observed,
        disabled: call_totals.disabled,
        several: call_totals.several,
        writes: world.oracle.writes,
        on_slots_of_others: world.oracle.on_slots_of_others,
        unwritten: limiters
            .iter()
            .map(|limiter| limiter.buckets.report().unwritten_total)
            .sum(),
        parameters: world.oracle.parameters,
        violations: world.oracle.violations.clone(),
        excesses: world.oracle.excesses,
        expired: world.oracle.expired,
        legacy_removed: world.oracle.legacy_removed,
        trace: world.trace_hash(),
    }
}
