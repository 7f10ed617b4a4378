//! One client process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use aws_sdk_dynamodb::config::Credentials;
use serde_json::json;
use tokio::task::JoinSet;
use zae_limiter::{Error, Lease, Limit, Mode, RateLimiter};

use crate::ledger::{Call, Ended, Ledger};

/// Calls at the same time.
const TASKS: usize = 2;
/// Between two calls of a task: the table's process is one, and is not to be the bottleneck, and other tests run at the same time.
const PAUSE: Duration = Duration::from_millis(300);
pub(crate) const RESOURCE: &str = "gpt-4";
/// What some calls charge, too.
pub(crate) const BUDGET: &str = "budget";
pub(crate) const TABLE: &str = "soak";
/// Clients from this number on are never killed.
pub(crate) const NEVER_KILLED: usize = 4;
/// Parents, an even number; entity number `n` belongs to number `n % PARENTS`.
pub(crate) const PARENTS: usize = 10;

/// What a client is told.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) endpoint: String,
    pub(crate) folder: PathBuf,
    pub(crate) number: usize,
    /// How often a client of this number was started before.
    pub(crate) life: usize,
    pub(crate) entities: usize,
}

/// The entity whose permits clients hold as long as they live.
pub(crate) const HOLDERS: &str = "holders";
/// The most permits that are held of one entity. Those of a killed client may have to come back before the next one of its
/// number gets its own.
pub(crate) const PERMITS: u64 = 40;

/// How many permits a client holds as long as it lives.
pub(crate) fn permits_of(client: usize) -> u64 {
    client as u64 + 1
}

/// Limits of a parent, which clients change: the two have different bursts and rates.
pub(crate) fn parent_limits(generous: bool) -> [Limit; 4] {
    let (burst, rate) = if generous { (4_000, 2_000) } else { (2_000, 1_000) };
    with_all_kinds([
        Limit::custom("rpm", 1, burst, rate, 1).unwrap(),
        Limit::custom("tpm", 1, burst * 10, rate * 10, 1).unwrap(),
    ])
}

/// The mode of an entity with little, if it has one: the calls of most are refused.
pub(crate) fn mode_of(number: usize) -> Option<Mode> {
    match number % 12 {
        // Odd and even: with the calls of clients that are killed, and without.
        5 | 8 => Some(Mode::Observe),
        7 => Some(Mode::Bypass),
        _ => None,
    }
}

/// Limits of an entity with a mode, of which nearly every call wants more.
pub(crate) fn small_limits() -> [Limit; 4] {
    with_all_kinds([
        Limit::custom("rpm", 1, 2, 1, 100).unwrap(),
        Limit::custom("tpm", 1, 40, 1, 10).unwrap(),
    ])
}

/// Limits of all other entities.
pub(crate) fn default_limits() -> [Limit; 4] {
    with_all_kinds([
        Limit::custom("rpm", 1, 20, 5, 1).unwrap(),
        Limit::custom("tpm", 1, 400, 100, 1).unwrap(),
    ])
}

fn with_all_kinds([rpm, tpm]: [Limit; 2]) -> [Limit; 4] {
    let spend = "spend:1000000000 per year".parse().unwrap();
    let expiry = Duration::from_secs(8);
    [
        rpm,
        tpm,
        spend,
        Limit::concurrency("parallel", PERMITS, expiry).unwrap(),
    ]
}

pub(crate) async fn limiter(endpoint: &str, chunks: bool) -> RateLimiter {
    let builder = RateLimiter::builder(TABLE)
        .endpoint_url(endpoint)
        .region("us-east-1")
        .credentials(Credentials::new("test", "test", None, None, "tests"))
        .principal("soak")
        // Nothing expires, and nothing is given up while the table is unavailable.
        .bucket_ttl_refill_multiplier(1_000_000)
        .settle_budget(Duration::from_mins(10))
        .time_budget(Duration::from_secs(5))
        .config_cache_ttl(Duration::from_secs(5));
    let builder = if chunks { builder.token_chunks() } else { builder };
    builder.await.unwrap()
}

pub(crate) fn main(place: &Place) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let report = runtime.block_on(client(place));
    println!("{report}");
}

async fn client(place: &Place) -> serde_json::Value {
    let before = open_files();
    // Only clients that are never killed take chunks: the unspent tokens of a killed one would be lost with it.
    let limiter = limiter(&place.endpoint, place.number >= NEVER_KILLED).await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(calls(limiter.clone(), place.clone(), task));
    }
    let holder = tokio::spawn(holds_permits(limiter.clone(), place.clone()));
    let mut ledgers = Vec::new();
    let mut calls = 0;
    let mut resident = 0;
    while let Some(ended) = tasks.join_next().await {
        let (made, half_way, ledger) = ended.unwrap();
        calls += made;
        ledgers.push(ledger);
        resident = resident.max(half_way);
    }
    holder.await.unwrap();
    let resident_at_the_end = resident_kib();
    let closed = limiter.shutdown().await;
    let stats = limiter.stats();
    if closed.unwritten_total == 0 {
        ledgers.iter_mut().for_each(Ledger::settled);
    }
    drop(ledgers);
    drop(limiter);
    // Connections and tasks end when they notice that nobody needs them any more.
    let metrics = tokio::runtime::Handle::current().metrics();
    let mut left = (usize::MAX, usize::MAX);
    for _ in 0..600 {
        left = (metrics.num_alive_tasks(), open_files().saturating_sub(before));
        if left == (0, 0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    json!({
        "number": place.number, "calls": calls, "granted": stats.granted, "refused": stats.refused, "observed": stats.observed,
        "unavailable": stats.unavailable, "unwritten": stats.unwritten, "shutdown": format!("{closed:?}"),
        "tasks": left.0, "files": left.1, "kib_half_way": resident, "kib_at_the_end": resident_at_the_end,
    })
}

async fn calls(limiter: RateLimiter, place: Place, task: usize) -> (u64, u64, Ledger) {
    let name = format!("client-{}-{}-{task}.ledger", place.number, place.life);
    let mut ledger = Ledger::create(&place.folder.join(name));
    let stop = place.folder.join("stop");
    let half = place.folder.join("half");
    let (mut step, mut made, mut resident) = ((place.number * 7 + task) as u64, 0, 0);
    let mut unconfirmed = BTreeSet::new();
    while !stop.exists() {
        step = step
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let drawn = step >> 33;
        let number = entity(usize::try_from(drawn).unwrap() % place.entities, place.number);
        let (entity, parent) = (format!("user-{number}"), format!("org-{}", number % PARENTS));
        let call = Call {
            entity: &entity,
            parent: &parent,
            estimate: 1 + drawn % 20,
            used: drawn % 31,
            // Chunks serve calls of rates alone.
            all_kinds: place.number < NEVER_KILLED || drawn.is_multiple_of(3),
            budget: drawn.is_multiple_of(4),
        };
        ledger.begins(&call);
        let (ended, passed) = one(&limiter, &call, drawn).await;
        ledger.ended(ended, passed || mode_of(number) == Some(Mode::Bypass));
        if ended == Ended::Unavailable {
            unconfirmed.insert(number);
        }
        made += 1;
        if drawn.is_multiple_of(50) && place.number == 7 {
            let limits = parent_limits(drawn.is_multiple_of(100));
            let changed = limiter.repository().set_limits(&parent, RESOURCE, limits).await;
            assert!(
                changed.as_ref().err().is_none_or(Error::is_unavailable),
                "{changed:?}"
            );
        }
        if resident == 0 && half.exists() {
            resident = resident_kib();
        }
        tokio::time::sleep(PAUSE).await;
    }
    // A write whose response was lost is found by the next write of the same process on that bucket.
    for number in unconfirmed {
        ask_again(&limiter, &mut ledger, number).await;
    }
    (made, resident, ledger)
}

/// Holds permits until the end, others if these are lost: a killed client leaves its own behind.
async fn holds_permits(limiter: RateLimiter, place: Place) {
    let stop = place.folder.join("stop");
    let mut lease: Option<Lease> = None;
    while !stop.exists() {
        if lease.as_ref().is_none_or(Lease::is_lost) {
            drop(lease.take());
            let call = limiter
                .acquire(HOLDERS, RESOURCE)
                .consume("parallel", permits_of(place.number));
            lease = call.wait_up_to(Duration::from_secs(5)).await.ok();
        }
        tokio::time::sleep(PAUSE).await;
    }
    if let Some(lease) = lease {
        // An error says that the release goes on in the background: the shutdown waits for it.
        drop(lease.commit().await);
    }
}

/// The outcome of the last calls of killed clients is unknown, so they call for every other entity only: the rest, and their parents, must be exact.
fn entity(drawn: usize, client: usize) -> usize {
    if client < NEVER_KILLED { drawn & !1 } else { drawn }
}

async fn ask_again(limiter: &RateLimiter, ledger: &mut Ledger, number: usize) {
    let (entity, parent) = (format!("user-{number}"), format!("org-{}", number % PARENTS));
    let call = Call {
        entity: &entity,
        parent: &parent,
        estimate: 1,
        used: 1,
        all_kinds: false,
        // What is unconfirmed may be on either bucket.
        budget: true,
    };
    for _ in 0..600 {
        ledger.begins(&call);
        let (ended, passed) = one(limiter, &call, 1).await;
        ledger.ended(ended, passed || mode_of(number) == Some(Mode::Bypass));
        if matches!(ended, Ended::Committed | Ended::CommitQueued) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{entity} is stuck");
}

/// Makes the call. True if it was only observed that the entity has too little.
async fn one(limiter: &RateLimiter, call: &Call<'_>, drawn: u64) -> (Ended, bool) {
    let mut acquire = limiter
        .acquire(call.entity, RESOURCE)
        .consume("rpm", 1)
        .consume("tpm", call.estimate);
    if call.all_kinds {
        acquire = acquire.consume("spend", call.estimate).consume("parallel", 1);
    }
    if call.budget {
        acquire = acquire.and(BUDGET).cascade(false).consume("usd", call.estimate);
    }
    let mut lease = match acquire.await {
        Ok(lease) => lease,
        Err(Error::Refused(_)) => return (Ended::Refused, false),
        Err(error) if error.is_unavailable() => return (Ended::Unavailable, false),
        Err(error) => panic!("{error}"),
    };
    let observed = lease.observed_limits();
    assert!(
        observed
            .iter()
            .all(|status| status.entity.as_str() == call.entity && status.resource.as_str() == RESOURCE),
        "{observed:?}"
    );
    let passed = !observed.is_empty();
    if drawn.is_multiple_of(9) {
        drop(lease);
        return (Ended::Dropped, passed);
    }
    let correction = i64::try_from(call.used).unwrap() - i64::try_from(call.estimate).unwrap();
    lease.adjust("tpm", correction);
    if call.all_kinds {
        lease.adjust("spend", correction);
    }
    if call.budget {
        lease.adjust("usd", correction);
    }
    match lease.commit().await {
        Ok(()) => (Ended::Committed, passed),
        Err(error) if error.is_unavailable() => (Ended::CommitQueued, passed),
        Err(error) => panic!("{error}"),
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
