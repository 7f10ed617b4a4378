//! The cases of `acquire`, on every endpoint.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::Runtime;
use zae_limiter::{CapacityMeter, Limit, NewEntity, RateLimiter};

use crate::clients::{self, RESOURCE, admitted, bare, large};
use crate::measure::{Figures, Operation, one_round};
use crate::peer;
use crate::results::{Contestant, Results};

/// The contestant that this project is.
pub(crate) const OURS: &str = "zae-limiter";
pub(crate) const BARE: &str = "bare UpdateItem";
pub(crate) const PEER: &str = "peer, asyncio";
pub(crate) const PEER_THREADS: &str = "peer, threads";
pub(crate) const DYNAMODB: &str = "dynoxide";
pub(crate) const CANNED: &str = "canned";
pub(crate) const IN_ANSWER: &str = "allocations in the answer of a refusal";
pub(crate) const CANNED_LATE: &str = "canned + 5 ms";
/// The number of metered calls. As many unmetered calls warm up first.
const METERED: u64 = 200;
/// The number of metered chunk hits: many, because only one call in thousands takes the next chunk.
const METERED_HITS: u64 = 100_000;
/// Chunks are warm when they cover this many calls in a row.
const WARM_HITS: u64 = 1_000;
/// Chunks that are not warm after this many times as many calls never will be.
const MAX_WARM_UP: u32 = 1_000;
/// Refusals and tokens in hand are timed in groups of this many.
const GROUP: u32 = 64;

/// The stored configuration that the cases need.
pub(crate) async fn prepare(dynamodb: SocketAddr) {
    let limiter = clients::limiter(dynamodb).create_table(true).await.unwrap();
    let stored = limiter.repository();
    stored.set_system_defaults(large()).await.unwrap();
    let once = [Limit::per_day("rpm", 1).unwrap(), large()[1].clone()];
    stored.set_limits("refused", RESOURCE, once).await.unwrap();
    let slow = [Limit::per_second("rpm", 400).unwrap(), large()[1].clone()];
    stored.set_limits("waiting", RESOURCE, slow).await.unwrap();
    for fleet in ["fleet-8", "fleet-20", "fleet-100"] {
        let limit = [Limit::per_second("rpm", 200).unwrap()];
        stored.set_limits(fleet, RESOURCE, limit).await.unwrap();
    }
    for entity in ["root", "level-1", "level-2", "level-3"] {
        let parent = match entity {
            "root" => None,
            "level-1" => Some("root"),
            "level-2" => Some("level-1"),
            _ => Some("level-2"),
        };
        let new = NewEntity::new(entity);
        let new = match parent {
            Some(parent) => new.parent(parent).cascade(true),
            None => new,
        };
        stored.create_entity(new).await.unwrap();
    }
    limiter.shutdown().await;
}

fn round<'a>(
    runtime: &'a Runtime,
    tasks: usize,
    group: u32,
    operation: impl Operation + 'a,
) -> Box<dyn FnMut() -> Figures + 'a> {
    Box::new(move || one_round(runtime, tasks, group, &operation))
}

fn own_or_one(own: bool, task: usize) -> String {
    if own {
        format!("user-{task}")
    } else {
        "user-0".to_owned()
    }
}

/// Warm acquires beside the bare call and the peer: 1 task, 16 on their own buckets, and many on one.
pub(crate) fn warm(runtime: &Runtime, results: &mut Results, name: &'static str, endpoint: SocketAddr) {
    let limiter = runtime.block_on(async { clients::limiter(endpoint).await.unwrap() });
    let client = clients::sdk(endpoint);
    for (case, tasks, own) in [
        ("1 task", 1, true),
        ("16 tasks, own buckets", 16, true),
        ("16 tasks, one bucket", 16, false),
        ("64 tasks, one bucket", 64, false),
        ("256 tasks, one bucket", 256, false),
    ] {
        let limiter = limiter.clone();
        let ours = move |task, _| {
            let limiter = limiter.clone();
            async move { admitted(&limiter, &own_or_one(own, task)).await }
        };
        let mut contestants: Vec<Contestant<'_>> = vec![(OURS, round(runtime, tasks, 1, ours))];
        if tasks <= 16 {
            let client = client.clone();
            let call = move |task, _| {
                let client = client.clone();
                async move { bare(&client, &own_or_one(own, task)).await }
            };
            contestants.push((BARE, round(runtime, tasks, 1, call)));
        }
        results.side_by_side(name, case, contestants);
        if tasks <= 16 {
            against_peer(results, name, case, endpoint, tasks, "user-0", own);
        }
    }
}

fn against_peer(
    results: &mut Results,
    name: &'static str,
    case: &str,
    endpoint: SocketAddr,
    tasks: usize,
    entity: &str,
    own: bool,
) {
    let Some(python) = peer::python() else { return };
    for (who, how) in [(PEER, "asyncio"), (PEER_THREADS, "threads")] {
        match peer::run(&python, endpoint, how, tasks, entity, own) {
            Ok(figures) => results.add(name, case, who, figures),
            Err(error) => eprintln!("  {name} {case} {who}: {error}"),
        }
    }
}

/// An operation on a limiter, so that it can be run with and without a meter.
type OnLimiter = fn(RateLimiter, usize, u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

struct Case {
    name: &'static str,
    tasks: usize,
    group: u32,
    build: fn(SocketAddr) -> zae_limiter::Builder,
    operation: OnLimiter,
    /// The same operation, if it takes less than a microsecond: a box for its future would be much of what is measured.
    quick: Option<Quick>,
    peer: Option<(&'static str, bool)>,
}

#[derive(Clone, Copy)]
enum Quick {
    Refusal,
    ChunkHit,
}

/// Calls that memory decides, on one limiter.
#[derive(Clone)]
struct OnMemory(RateLimiter, Quick);

impl Operation for OnMemory {
    async fn call(&self, _: usize, _: u64) {
        match self.1 {
            Quick::Refusal => refused(&self.0).await,
            Quick::ChunkHit => chunked(&self.0).await,
        }
    }
}

pub(crate) async fn refused(limiter: &RateLimiter) {
    let call = limiter
        .acquire("refused", RESOURCE)
        .consume("rpm", 1)
        .consume("tpm", 100);
    if let Ok(lease) = call.await {
        lease.commit().await.unwrap();
    }
}

/// Calls until chunks cover all of them. A chunk has the size of the traffic of the last half second, so that it grows for a few
/// seconds.
pub(crate) async fn warm_up_chunks(limiter: &RateLimiter) {
    for _ in 0..MAX_WARM_UP {
        let before = limiter.stats().chunk_grants;
        for _ in 0..WARM_HITS {
            chunked(limiter).await;
        }
        if limiter.stats().chunk_grants - before == WARM_HITS {
            return;
        }
    }
    panic!("calls still wait for chunks");
}

/// A call on a busy bucket that takes tokens in chunks.
pub(crate) async fn chunked(limiter: &RateLimiter) {
    let call = limiter.acquire("chunked", RESOURCE).consume("rpm", 1);
    call.await.unwrap().commit().await.unwrap();
}

const CASES: [Case; 9] = [
    Case {
        name: "cascade of two",
        tasks: 1,
        group: 1,
        build: clients::limiter,
        operation: |limiter, _, _| Box::pin(async move { admitted(&limiter, "level-1").await }),
        quick: None,
        peer: Some(("level-1", false)),
    },
    Case {
        name: "cascade of four",
        tasks: 1,
        group: 1,
        build: clients::limiter,
        operation: |limiter, _, _| Box::pin(async move { admitted(&limiter, "level-3").await }),
        quick: None,
        peer: None,
    },
    Case {
        name: "refusal",
        tasks: 1,
        group: GROUP,
        build: clients::limiter,
        operation: |limiter, _, _| Box::pin(async move { refused(&limiter).await }),
        quick: Some(Quick::Refusal),
        peer: Some(("refused", false)),
    },
    Case {
        name: "refusal, 16 tasks",
        tasks: 16,
        group: GROUP,
        build: clients::limiter,
        operation: |limiter, _, _| Box::pin(async move { refused(&limiter).await }),
        quick: Some(Quick::Refusal),
        peer: None,
    },
    Case {
        name: "adjust",
        tasks: 1,
        group: 1,
        build: clients::limiter,
        operation: |limiter, _, _| {
            Box::pin(async move {
                let call = limiter
                    .acquire("adjusted", RESOURCE)
                    .consume("rpm", 1)
                    .consume("tpm", 100);
                let mut lease = call.await.unwrap();
                lease.adjust("tpm", 20);
                lease.commit().await.unwrap();
            })
        },
        quick: None,
        peer: None,
    },
    Case {
        name: "wait, 16 tasks on 400/s",
        tasks: 16,
        group: 1,
        build: clients::limiter,
        operation: |limiter, _, _| {
            Box::pin(async move {
                let call = limiter
                    .acquire("waiting", RESOURCE)
                    .consume("rpm", 1)
                    .consume("tpm", 1);
                if let Ok(lease) = call.wait_up_to(Duration::from_secs(1)).await {
                    lease.commit().await.unwrap();
                }
            })
        },
        quick: None,
        peer: None,
    },
    Case {
        name: "chunk hit",
        tasks: 1,
        group: GROUP,
        build: |endpoint| clients::limiter(endpoint).token_chunks(),
        operation: |limiter, _, _| Box::pin(async move { chunked(&limiter).await }),
        quick: Some(Quick::ChunkHit),
        peer: None,
    },
    Case {
        name: "cold bucket",
        tasks: 1,
        group: 1,
        build: clients::limiter,
        operation: |limiter, _, _| {
            Box::pin(async move { admitted(&limiter, &format!("cold-{}", fastrand::u64(..))).await })
        },
        quick: None,
        peer: None,
    },
    Case {
        name: "config miss",
        tasks: 1,
        group: 1,
        build: |endpoint| clients::limiter(endpoint).config_cache_ttl(Duration::ZERO),
        operation: |limiter, _, _| Box::pin(async move { admitted(&limiter, "user-0").await }),
        quick: None,
        peer: None,
    },
];

/// How many allocations the error of a refusal consists of: copying it makes them once more.
fn allocations_in_answer(runtime: &Runtime, endpoint: SocketAddr) -> Option<f64> {
    let error = runtime.block_on(async {
        let limiter = clients::limiter(endpoint).await.unwrap();
        refused(&limiter).await;
        let call = limiter.acquire("refused", RESOURCE).consume("rpm", 1);
        call.consume("tpm", 100).await.err()
    })?;
    let mut copy = None;
    let copied = allocation_counter::measure(|| copy = Some(error.clone()));
    Some(copied.count_total as f64)
}

/// Everything else, on DynamoDB.
pub(crate) fn others(runtime: &Runtime, results: &mut Results, endpoint: SocketAddr) {
    named(runtime, results, endpoint, |_| true);
    let warm: OnLimiter = |limiter, _, _| Box::pin(async move { admitted(&limiter, "user-0").await });
    meter(runtime, results, "1 task", clients::limiter(endpoint), warm, None);
    for limiters in [8, 20, 100] {
        let figures = runtime.block_on(fleet(endpoint, limiters));
        results.add(
            DYNAMODB,
            &format!("{limiters} limiters, 60 % of 200/s"),
            OURS,
            figures,
        );
    }
}

/// Those of them that one limiter is enough for, if their name is wanted.
pub(crate) fn named(
    runtime: &Runtime,
    results: &mut Results,
    endpoint: SocketAddr,
    is_wanted: impl Fn(&str) -> bool,
) {
    if let Some(allocations) = allocations_in_answer(runtime, endpoint) {
        results.single.push((IN_ANSWER, allocations));
    }
    for case in CASES.iter().filter(|case| is_wanted(case.name)) {
        let limiter = runtime.block_on(async { (case.build)(endpoint).await.unwrap() });
        if let Some(Quick::ChunkHit) = case.quick {
            runtime.block_on(warm_up_chunks(&limiter));
        }
        let operation = case.operation;
        let ours = if let Some(quick) = case.quick {
            round(runtime, case.tasks, case.group, OnMemory(limiter, quick))
        } else {
            let call = move |task, call| operation(limiter.clone(), task, call);
            round(runtime, case.tasks, case.group, call)
        };
        let contestants: Vec<Contestant<'_>> = vec![(OURS, ours)];
        results.side_by_side(DYNAMODB, case.name, contestants);
        if let Some((entity, own)) = case.peer {
            against_peer(results, DYNAMODB, case.name, endpoint, case.tasks, entity, own);
        }
        meter(
            runtime,
            results,
            case.name,
            (case.build)(endpoint),
            case.operation,
            case.quick,
        );
    }
}

/// Adds calls and capacity per operation to a row: measured apart, because asking for it makes requests larger.
fn meter(
    runtime: &Runtime,
    results: &mut Results,
    case: &str,
    builder: zae_limiter::Builder,
    operation: OnLimiter,
    quick: Option<Quick>,
) {
    let meter = CapacityMeter::new();
    let consumed = runtime.block_on(async {
        let limiter = builder.meter(meter.clone()).await.unwrap();
        let calls = if let Some(Quick::ChunkHit) = quick {
            warm_up_chunks(&limiter).await;
            METERED_HITS
        } else {
            for call in 0..METERED {
                operation(limiter.clone(), 0, call).await;
            }
            METERED
        };
        let before = meter.consumed();
        for call in 0..calls {
            operation(limiter.clone(), 0, METERED + call).await;
        }
        let after = meter.consumed();
        let per_call = |sum: f64| sum / calls as f64;
        (
            per_call((after.calls - before.calls) as f64),
            per_call(after.read_units - before.read_units),
            per_call(after.write_units - before.write_units),
        )
    });
    if let Some(figures) = results.find_mut(DYNAMODB, case, OURS) {
        (figures.calls, figures.rcu, figures.wcu) = (Some(consumed.0), Some(consumed.1), Some(consumed.2));
    }
}

/// Many limiters, each with its own connections, on one bucket at 60 % of its limit.
async fn fleet(endpoint: SocketAddr, limiters: u32) -> Figures {
    const RUN: Duration = Duration::from_secs(2);
    let (meter, entity) = (CapacityMeter::new(), format!("fleet-{limiters}"));
    let mut tasks = Vec::new();
    let pause = Duration::from_secs_f64(f64::from(limiters) / 120.0);
    let started = tokio::time::Instant::now() + Duration::from_millis(200);
    for index in 0..limiters {
        let limiter = clients::limiter(endpoint).meter(meter.clone()).await.unwrap();
        let entity = entity.clone();
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            let mut next = started + pause * index / limiters;
            while next < started + RUN {
                tokio::time::sleep_until(next).await;
                let asked = std::time::Instant::now();
                if let Ok(lease) = limiter.acquire(&entity, RESOURCE).consume("rpm", 1).await {
                    lease.commit().await.unwrap();
                    times.push(asked.elapsed().as_secs_f64() * 1e6);
                }
                next += pause;
            }
            times
        }));
    }
    let mut times: Vec<f64> = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    times.sort_by(f64::total_cmp);
    let consumed = meter.consumed();
    let at = |part: f64| {
        times
            .get((times.len() as f64 * part) as usize)
            .copied()
            .unwrap_or(0.0)
    };
    let per_call = |sum: f64| Some(sum / times.len().max(1) as f64);
    Figures {
        rate: times.len() as f64 / RUN.as_secs_f64(),
        p50: at(0.5),
        p99: at(0.99),
        calls: per_call(consumed.calls as f64),
        rcu: per_call(consumed.read_units),
        wcu: per_call(consumed.write_units),
        ..Figures::default()
    }
}
