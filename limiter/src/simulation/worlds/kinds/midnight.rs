//! The minute around a midnight: processes with wrong clocks that lose responses, die, and are cut off from the table,
//! while somebody tops up their quotas.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use zae_limiter_schema::bucket::BucketKey;
use zae_limiter_schema::{EntityId, Limit, LimitName, LimitSet, Resource, Timestamp};

use super::ledger::{Ledger, SharedLedger, image, periods};
use crate::Error;
use crate::acquire::Acquire;
use crate::bucket::Buckets;
use crate::builder::Settings;
use crate::simulation::Mutation;
use crate::simulation::clock::{START, SimClock, block_on};
use crate::simulation::expiry::forget_expired;
use crate::simulation::faults::Scenario;
use crate::simulation::port::Port;
use crate::simulation::run::connect;
use crate::simulation::top_ups::top_up_buckets;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::{Shared, World, lock};

/// By how much a clock is off at most, either way, in milliseconds.
pub(super) const SKEW: i64 = 1_000;
/// The expiry of a permit, in seconds, and the longest time after which one is taken back: the rest of its epoch, the
/// grace for clocks that differ, and that difference.
const EXPIRY: u64 = 8;
const RECLAIMED: Duration = Duration::from_secs(EXPIRY + 2 + 2 + 2);

/// What is played.
#[derive(Debug, Clone)]
pub(super) struct Night {
    pub(super) seed: u64,
    /// The midnight in Berlin, in UTC.
    pub(super) midnight: &'static str,
    pub(super) processes: u64,
    /// Among how many buckets they are divided: each process uses one.
    pub(super) buckets: u64,
    /// Thousandths of requests that are delivered twice.
    pub(super) repeated: u32,
    /// The mean time between two calls of a process, in milliseconds.
    pub(super) pause: u64,
    /// How long it is played before midnight, and after it.
    pub(super) each_side: Duration,
    pub(super) mutation: Option<Mutation>,
}

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) calls: u64,
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) unavailable: u64,
    pub(super) died: u64,
    pub(super) lost: u64,
    pub(super) writes: u64,
    pub(super) top_ups: usize,
    pub(super) roll_overs: u64,
    /// Thousandths of permits.
    pub(super) reclaimed: i128,
    pub(super) most_held: u64,
    /// Net tokens admitted on all buckets, by the end of the day.
    pub(super) days: BTreeMap<Timestamp, i64>,
    pub(super) violations: Vec<String>,
}

impl Night {
    fn limits(&self) -> LimitSet {
        // Little for few processes, so that every limit refuses now and then.
        let processes = self.processes / self.buckets;
        let limits = [
            format!("rpm:{}/min", processes * 60),
            format!("spend:{} per day in Europe/Berlin", processes * 3),
            format!("sessions:{processes} per 10s from first use"),
            format!("parallel:{} at once for {EXPIRY}s", (processes / 5).max(2)),
        ];
        LimitSet::new(limits.iter().map(|text| text.parse::<Limit>().unwrap())).unwrap()
    }

    fn scenario(&self) -> Scenario {
        Scenario {
            skew: SKEW,
            lost_responses: 200,
            repeated: self.repeated,
            lost_requests: 20,
            late: 30,
            conflicts: 20,
            failed_reads: 20,
            stale_reads: 200,
            mutation: self.mutation,
            ..Scenario::calm(self.seed)
        }
    }
}

/// What the processes of one bucket share.
#[derive(Debug, Clone)]
struct Stage {
    world: Shared,
    key: BucketKey,
    ledger: SharedLedger,
    outcome: Arc<Mutex<Outcome>>,
    pause: u64,
}

struct Process {
    number: u64,
    stage: Stage,
    port: Arc<Port>,
    buckets: Arc<Buckets>,
    calls: JoinSet<()>,
}

impl Stage {
    fn start(&self, number: u64, random: &mut fastrand::Rng) -> Process {
        let port = Port::new(&self.world);
        let clock = lock(&self.world).clock;
        let clock = SimClock {
            skew: clock.skew + random.i64(-SKEW..=SKEW),
            ..clock
        };
        let buckets = connect(&port, clock, Settings::default(), random.u64(..));
        let mut calls = JoinSet::new();
        let random = fastrand::Rng::with_seed(random.u64(..));
        calls.spawn(self.clone().calls(number, buckets.clone(), random));
        Process {
            number,
            stage: self.clone(),
            port,
            buckets,
            calls,
        }
    }

    /// Calls at random times, each on its own, as long as the process lives.
    async fn calls(self, process: u64, buckets: Arc<Buckets>, mut random: fastrand::Rng) {
        let mut calls = JoinSet::new();
        loop {
            let pause = random.u64(1..=self.pause * 2);
            sleep(Duration::from_millis(pause)).await;
            let random = fastrand::Rng::with_seed(random.u64(..));
            calls.spawn(self.clone().call(process, buckets.clone(), random));
        }
    }

    async fn call(self, process: u64, buckets: Arc<Buckets>, mut random: fastrand::Rng) {
        let amount = random.u64(1..=3);
        let amounts: &[(&str, u64)] = match random.u32(..4) {
            0 => &[("rpm", 1), ("spend", amount), ("parallel", 1)],
            1 => &[("rpm", 1), ("spend", amount), ("sessions", amount)],
            _ => &[("rpm", 1), ("parallel", 1)],
        };
        let mut acquire = Acquire::new(buckets, &self.key.entity, RESOURCE);
        for (limit, amount) in amounts {
            acquire = acquire.consume(limit, *amount);
        }
        self.count(|outcome| outcome.calls += 1);
        let before = periods(&self.world, &self.key);
        let gives_up = Duration::from_millis(if random.u32(..20) == 0 {
            random.u64(1..20)
        } else {
            60_000
        });
        let Ok(outcome) = tokio::time::timeout(gives_up, acquire.into_future()).await else {
            return;
        };
        let id = match outcome {
            Ok(lease) => {
                self.count(|outcome| outcome.admitted += 1);
                let after = periods(&self.world, &self.key);
                let at = lock(&self.world).clock.millis();
                let mut ledger = self.ledger.lock().unwrap();
                if let Some(image) = image(&self.world, &self.key) {
                    ledger.sees(&image);
                }
                ledger.granted(process, lease, amounts, (&before, &after), at)
            }
            Err(Error::Refused(_)) => return self.count(|outcome| outcome.refused += 1),
            Err(error) if error.is_unavailable() => return self.count(|outcome| outcome.unavailable += 1),
            Err(error) => {
                let what = format!("a call failed: {error}");
                return self.ledger.lock().unwrap().violations.push(what);
            }
        };
        let hold = match random.u32(..10) {
            0 => random.u64(10_000..25_000),
            1..=2 => random.u64(2_000..10_000),
            _ => random.u64(..2_000),
        };
        sleep(Duration::from_millis(hold)).await;
        self.end(id, amounts, &mut random).await;
    }

    async fn end(&self, id: u64, amounts: &[(&str, u64)], random: &mut fastrand::Rng) {
        let ends = |returned: Option<u64>| {
            let now = periods(&self.world, &self.key);
            self.ledger.lock().unwrap().ends(id, returned, &now)
        };
        let has_quota = amounts.iter().any(|(limit, _)| *limit == "spend");
        let has_sessions = amounts.iter().any(|(limit, _)| *limit == "sessions");
        // Errors say that a change is not written yet; it goes on in the background.
        match random.u32(..10) {
            0..3 => drop(ends(None)),
            3 => {
                let Some(lease) = ends(None) else { return };
                drop(lease.rollback().await);
            }
            4..6 if has_quota => {
                let Some(mut lease) = ends(Some(1)) else { return };
                lease.release("spend", 1);
                if has_sessions {
                    lease.release("sessions", 1);
                }
                drop(lease.commit().await);
            }
            6 if has_quota => {
                let Some(mut lease) = ends(Some(0)) else { return };
                lease.adjust("spend", 2);
                drop(lease.commit().await);
            }
            _ => {
                let Some(lease) = ends(Some(0)) else { return };
                drop(lease.commit().await);
            }
        }
    }

    fn count(&self, count: impl FnOnce(&mut Outcome)) {
        count(&mut self.outcome.lock().unwrap());
    }

    /// Permits on the item that have not expired, and those whose holders live and have not lost them.
    fn permits(&self) -> (i128, i128) {
        let held = i128::from(self.ledger.lock().unwrap().permits_held()) * 1_000;
        let now = Timestamp::from_millis(lock(&self.world).clock.millis());
        let parallel = LimitName::parse("parallel").unwrap();
        let on_item =
            image(&self.world, &self.key).and_then(|image| Some(image.permits.get(&parallel)?.held_at(now)));
        (on_item.unwrap_or(0), held)
    }

    fn fail(&self, what: String) {
        self.ledger.lock().unwrap().violations.push(what);
    }
}

pub(super) fn simulate(night: &Night) -> Outcome {
    block_on(play(night))
}

async fn play(night: &Night) -> Outcome {
    let midnight = Timestamp::parse(night.midnight).unwrap().millis();
    let side = i64::try_from(night.each_side.as_millis()).unwrap();
    let clock = SimClock {
        start: Instant::now(),
        skew: midnight - side - START,
    };
    let world = Arc::new(Mutex::new(World::new(night.scenario(), clock, night.limits())));
    let outcome: Arc<Mutex<Outcome>> = Arc::default();
    let stage = |number: u64| Stage {
        world: world.clone(),
        key: BucketKey {
            entity: EntityId::parse(format!("team-{number}")).unwrap(),
            resource: Resource::parse(RESOURCE).unwrap(),
        },
        ledger: Ledger::new(night.limits()),
        outcome: outcome.clone(),
        pause: night.pause,
    };
    let stages: Vec<_> = (0..night.buckets).map(stage).collect();
    let mut random = fastrand::Rng::with_seed(night.seed);
    let mut started = 0;
    let mut start = |stage: &Stage, random: &mut fastrand::Rng| {
        started += 1;
        stage.start(started, random)
    };
    let of_each = stages
        .iter()
        .cycle()
        .take(usize::try_from(night.processes).unwrap());
    let mut processes: Vec<_> = of_each.map(|stage| start(stage, &mut random)).collect();
    let mut others = JoinSet::new();
    others.spawn(forget_expired(world.clone()));
    let of_top_ups = fastrand::Rng::with_seed(night.seed.wrapping_add(33));
    others.spawn(top_up_buckets(world.clone(), &["spend", "sessions"], of_top_ups));
    let end = Instant::now() + night.each_side * 2;
    while Instant::now() < end && !stages.iter().any(Stage::is_broken) {
        sleep(Duration::from_millis(random.u64(300..=2_000))).await;
        let victim = random.usize(..processes.len());
        if random.bool() {
            let dead = processes.swap_remove(victim);
            processes.push(start(&dead.stage, &mut random));
            die(dead);
        } else {
            others.spawn(cut_off(
                processes[victim].port.clone(),
                random.u64(3_000..=20_000),
            ));
        }
    }
    finish(&world, &stages, processes, others).await
}

/// A process dies with everything that it holds.
fn die(process: Process) {
    process.port.alive.store(false, Ordering::Relaxed);
    process.stage.ledger.lock().unwrap().died(process.number);
    process.stage.count(|outcome| outcome.died += 1);
    let mut calls = process.calls;
    calls.abort_all();
    std::mem::forget(calls);
}

/// Nobody responds to a process for a while, so that it cannot renew its permits, and does not stop by itself.
async fn cut_off(port: Arc<Port>, millis: u64) {
    port.silent.store(true, Ordering::Relaxed);
    sleep(Duration::from_millis(millis)).await;
    port.silent.store(false, Ordering::Relaxed);
}

/// Stops calling. After one expiry the items have the permits of living holders, and no others; then they are released.
async fn finish(
    world: &Shared,
    stages: &[Stage],
    mut processes: Vec<Process>,
    mut others: JoinSet<()>,
) -> Outcome {
    for process in &mut processes {
        process.calls.shutdown().await;
        process.port.silent.store(false, Ordering::Relaxed);
    }
    others.shutdown().await;
    lock(world).calm = true;
    if !stages.iter().any(Stage::is_broken) {
        sleep(RECLAIMED).await;
        for stage in stages {
            let (on_item, held) = stage.permits();
            if on_item != held {
                stage.fail(format!(
                    "{on_item} permits on the item, and {held} held by the living"
                ));
            }
            stage.release_all().await;
        }
        for (process, stage) in processes.iter().map(|process| (process, &process.stage)) {
            let settled = tokio::time::timeout(RECLAIMED, process.buckets.settled());
            if settled.await.is_err() {
                stage.fail(format!("process {} does not settle", process.number));
            }
        }
        for stage in stages {
            let (on_item, _) = stage.permits();
            if on_item != 0 {
                stage.fail(format!("{on_item} permits on the item, and none is held"));
            }
        }
    }
    let mut outcome = std::mem::take(&mut *stages[0].outcome.lock().unwrap());
    for stage in stages {
        let mut ledger = stage.ledger.lock().unwrap();
        outcome.violations.append(&mut ledger.violations);
        outcome.lost += ledger.lost;
        outcome.most_held = outcome.most_held.max(ledger.most_held);
        for (day, admitted) in ledger.admitted("spend") {
            *outcome.days.entry(day).or_default() += admitted;
        }
    }
    let world = lock(world);
    let judged = world.oracle.violations.iter();
    outcome
        .violations
        .extend(judged.map(|violation| format!("{} at {} ms", violation.what, violation.at)));
    outcome.writes = world.oracle.writes;
    outcome.top_ups = world.oracle.top_ups.len();
    (outcome.roll_overs, outcome.reclaimed) = (world.oracle.kinds.roll_overs, world.oracle.kinds.reclaimed);
    outcome
}

impl Stage {
    /// The callers end their leases.
    async fn release_all(&self) {
        let now = periods(&self.world, &self.key);
        let ids = self.ledger.lock().unwrap().ids();
        for id in ids {
            let lease = self.ledger.lock().unwrap().ends(id, Some(0), &now);
            if let Some(lease) = lease {
                drop(lease.commit().await);
            }
        }
    }

    /// True if something was noticed already: there is no need to go on.
    fn is_broken(&self) -> bool {
        !self.ledger.lock().unwrap().violations.is_empty() || !lock(&self.world).oracle.violations.is_empty()
    }
}
