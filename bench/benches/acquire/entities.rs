//! Many entities: calls of a second pass, memory per entity, and the configuration cache (the five benchmarks of the Python
//! project's ADR-001).

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use zae_limiter::{CapacityMeter, ManualClock, RateLimiter, Timestamp};

use crate::cases::{DYNAMODB, OURS};
use crate::clients::{self, RESOURCE, admitted};
use crate::measure::one_round;
use crate::recorded::Recorded;
use crate::results::Results;

pub(crate) const BYTES: &str = "bytes per entity, 20,000";
pub(crate) const SECOND_CALLS: &str = "calls per acquire, second pass";
pub(crate) const SECOND_RCU: &str = "RCU per acquire, second pass";
pub(crate) const MEGABYTES: &str = "megabytes kept for them";

const ENTITIES: u64 = 20_000;
const TASKS: usize = 32;
const MILLION: u64 = 1_000_000;
/// Threads that share the million.
const THREADS: u64 = 2;

/// Every entity once, by several tasks.
async fn pass(limiter: &RateLimiter, entities: Range<u64>) {
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let limiter = limiter.clone();
            let entities = entities.clone();
            tokio::spawn(async move {
                for entity in entities.skip(task).step_by(TASKS) {
                    admitted(&limiter, &format!("entity-{entity}")).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// A limiter that serves everything that follows from memory. It has used one entity.
fn on_recorded(runtime: &Runtime, meter: CapacityMeter) -> RateLimiter {
    let recorded = Recorded::new();
    let builder = clients::limiter(SocketAddr::from(([127, 0, 0, 1], 1)))
        .http_client(recorded.clone())
        .create_table(true)
        // Two passes end before what the first one has read expires, however slow the machine is.
        .config_cache_ttl(Duration::from_secs(3_600))
        .meter(meter);
    runtime.block_on(async {
        let limiter = builder.await.unwrap();
        // The second read is one of an entity alone: the levels that all share are known.
        for entity in ["first", "second"] {
            admitted(&limiter, entity).await;
        }
        recorded.replay();
        pass(&limiter, 0..1).await;
        limiter
    })
}

/// 20,000 entities twice, and a million for the bound, on responses from memory.
pub(crate) fn many(runtime: &Runtime, results: &mut Results) {
    let meter = CapacityMeter::new();
    let limiter = on_recorded(runtime, meter.clone());
    let kept = allocation_counter::measure(|| runtime.block_on(pass(&limiter, 0..ENTITIES)));
    let per_entity = |sum: f64| sum / ENTITIES as f64;
    let single = &mut results.single;
    single.push((BYTES, per_entity(kept.bytes_current as f64)));
    let before = meter.consumed();
    runtime.block_on(pass(&limiter, 0..ENTITIES));
    let after = meter.consumed();
    single.push((SECOND_CALLS, per_entity((after.calls - before.calls) as f64)));
    single.push((SECOND_RCU, per_entity(after.read_units - before.read_units)));
    drop(limiter);
    let limiter = on_recorded(runtime, CapacityMeter::new());
    single.push(("entities for memory", MILLION as f64));
    single.push((MEGABYTES, bytes_kept(&limiter) as f64 / 1e6));
}

/// What the limiter keeps of a million entities. Threads count for themselves: what one allocates and another one frees is in the sum.
fn bytes_kept(limiter: &RateLimiter) -> i64 {
    let part = MILLION / THREADS;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let runtime = crate::runtime();
                    let entities = thread * part..(thread + 1) * part;
                    allocation_counter::measure(|| runtime.block_on(pass(limiter, entities))).bytes_current
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// Random entities among 20,000 for a while.
pub(crate) fn at_random(runtime: &Runtime, results: &mut Results, endpoint: SocketAddr) {
    let limiter = runtime.block_on(async { clients::limiter(endpoint).await.unwrap() });
    let operation = move |_, _| {
        let limiter = limiter.clone();
        async move { admitted(&limiter, &format!("entity-{}", fastrand::u64(..ENTITIES))).await }
    };
    let contestants: Vec<crate::results::Contestant<'_>> =
        vec![(OURS, Box::new(|| one_round(runtime, 16, 1, &operation)))];
    results.side_by_side(DYNAMODB, "20,000 entities at random", contestants);
}

/// What the configuration costs.
pub(crate) fn configuration(runtime: &Runtime, results: &mut Results, endpoint: SocketAddr) {
    runtime.block_on(async {
        let uncached = clients::limiter(endpoint)
            .config_cache_ttl(Duration::ZERO)
            .await
            .unwrap();
        results
            .single
            .push(("config_read_latency, p50 µs", lookup(&uncached, 200).await));
        let meter = CapacityMeter::new();
        let limiter = clients::limiter(endpoint).meter(meter.clone()).await.unwrap();
        lookup(&limiter, 1).await;
        results
            .single
            .push(("config_cache_hit, p50 µs", lookup(&limiter, 10_000).await));

        admitted(&limiter, "with-config").await;
        let before = meter.consumed();
        for _ in 0..100 {
            admitted(&limiter, "with-config").await;
        }
        let reads = meter.consumed().read_units - before.read_units;
        results
            .single
            .push(("config_cache_hit, RCU per acquire", reads / 100.0));

        let before = meter.consumed();
        let mut taken = Vec::with_capacity(100);
        for user in 0..100 {
            let started = Instant::now();
            admitted(&limiter, &format!("regular-{user}")).await;
            taken.push(started.elapsed().as_secs_f64() * 1e6);
        }
        results
            .single
            .push(("acquire_with_config, p50 µs", median(taken)));
        let first = meter.consumed().read_units - before.read_units;
        let before = meter.consumed();
        for user in 0..100 {
            admitted(&limiter, &format!("regular-{user}")).await;
        }
        let second = meter.consumed().read_units - before.read_units;
        results
            .single
            .push(("config_negative_cache, RCU of the first acquire", first / 100.0));
        results
            .single
            .push(("config_negative_cache, RCU of the second acquire", second / 100.0));
    });
    runtime.block_on(sparse_traffic(results));
}

/// The median time of a lookup of one entity's limits, in microseconds. The cache decides whether it reads the table.
async fn lookup(limiter: &RateLimiter, times: usize) -> f64 {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let started = Instant::now();
        let limits = limiter.repository().resolve_limits("user-0", RESOURCE).await;
        taken.push(started.elapsed().as_secs_f64() * 1e6);
        limits.unwrap();
    }
    median(taken)
}

fn median(mut taken: Vec<f64>) -> f64 {
    taken.sort_by(f64::total_cmp);
    taken[taken.len() / 2]
}

/// 200,000 lookups a day by 20,000 users, and the configuration is known for 60 seconds: a tenth of that day. Users are almost never
/// seen twice in that time, and the levels that they share always are.
async fn sparse_traffic(results: &mut Results) {
    const LOOKUPS: u32 = 20_000;
    let between = Duration::from_secs(24 * 3_600) / 200_000;
    let clock = Arc::new(ManualClock::at(Timestamp::parse("2026-01-31T12:00:00Z").unwrap()));
    let meter = CapacityMeter::new();
    let limiter = RateLimiter::embedded()
        .default_limits(clients::large())
        .clock(clock.clone())
        .meter(meter.clone())
        .await
        .unwrap();
    let mut users = fastrand::Rng::with_seed(1);
    let (before, units) = (limiter.repository().cache_stats(), meter.consumed().read_units);
    for _ in 0..LOOKUPS {
        clock.advance(between);
        let user = format!("user-{}", users.u64(..ENTITIES));
        limiter.repository().resolve_limits(user, RESOURCE).await.unwrap();
    }
    let after = limiter.repository().cache_stats();
    let hits = (after.hits - before.hits) as f64 / f64::from(LOOKUPS);
    results.single.push(("config_sparse_traffic, hit rate", hits));
    let units = (meter.consumed().read_units - units) / f64::from(LOOKUPS);
    results
        .single
        .push(("config_sparse_traffic, RCU per lookup", units));
}
