//! What chunks admit and cost.

use std::sync::atomic::Ordering;

use tokio::time::Instant;
use zae_limiter_schema::LimitName;
use zae_limiter_schema::bucket::{Attributes, Decoded};

use super::flood::{ENTITY, Flood, Process, empty_results, limits, settings, simulate, throttled_world};
use crate::acquire::Acquire;
use crate::simulation::clock::{SimClock, block_on};
use crate::simulation::is_long;
use crate::simulation::traffic::RESOURCE;
use crate::simulation::world::lock;

/// 50 processes with 1,100 calls a second each, at 55 % of the limit.
const FIFTY: Flood = Flood {
    processes: 50,
    phases: &[(1_100, 2_000)],
    limit: (100_000, 100_000),
    chunks: true,
    crash: false,
};

#[test]
fn fifty_processes_on_one_throttled_item_admit_fifty_thousand_calls_a_second() {
    let flood = if is_long() {
        Flood {
            phases: &[(1_100, 10_000)],
            ..FIFTY
        }
    } else {
        FIFTY
    };
    let seconds = flood.phases[0].1 / 1000;
    let outcome = simulate(flood);
    eprintln!(
        "50 processes, chunks on: {} acquires/s, {} unavailable, {} writes/s, {} throttled in all, slowest call {:?}, \
         {} tokens beyond burst and refill, {} reported",
        outcome.admitted / seconds,
        outcome.unavailable,
        outcome.writes / seconds,
        outcome.throttled,
        outcome.slowest,
        outcome.excess,
        outcome.bound
    );
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{outcome:?}");
    assert_eq!(outcome.unavailable + outcome.refused, 0, "{outcome:?}");
    assert!(outcome.admitted / seconds >= 50_000, "{outcome:?}");
}

/// Chunks are held when suddenly every caller wants much more than there is.
const SURGE: Flood = Flood {
    processes: 10,
    phases: &[(60, 3_000), (1_000, 500), (60, 3_000)],
    limit: (1_000, 1_000),
    chunks: true,
    crash: false,
};

#[test]
fn a_surge_admits_at_most_the_tokens_held_beyond_burst_and_refill() {
    let outcome = simulate(SURGE);
    eprintln!(
        "a surge on 10 processes: {} admitted, {} refused, {} tokens beyond burst and refill, {} reported",
        outcome.admitted, outcome.refused, outcome.excess, outcome.bound
    );
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{outcome:?}");
    assert_eq!(outcome.unavailable, 0, "{outcome:?}");
    assert!(outcome.refused > 0 && outcome.excess > 0, "{outcome:?}");
}

#[test]
fn a_crash_strands_no_more_than_one_chunk() {
    let outcome = simulate(Flood { crash: true, ..SURGE });
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{outcome:?}");
    assert!(outcome.booked > outcome.admitted, "{outcome:?}");
}

#[test]
fn without_chunks_nothing_is_admitted_beyond_burst_and_refill() {
    let outcome = simulate(Flood {
        chunks: false,
        ..SURGE
    });
    assert_eq!(outcome.broken(), Vec::<String>::new(), "{outcome:?}");
    assert_eq!((outcome.excess, outcome.bound, outcome.unavailable), (0, 0, 0));
}

/// The burst that the bucket has after the limits were halved under a process that has tokens taken ahead and calls on.
fn burst_after_a_change() -> i128 {
    block_on(async {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let world = throttled_world(clock, limits(10_000, 10_000));
        let results = empty_results(10_000);
        let process = Process::new(&world, clock, settings(true), 1, results);
        process.run(1_000, 2_000).await;
        assert!(
            process.buckets.stats().chunk_tokens > 50,
            "{:?}",
            process.buckets.stats()
        );
        lock(&world).change_limits(limits(5_000, 10_000));
        // Two calls a second keep the chunk until the process has read the new limits, and a while longer.
        process.run(2, 14_000).await;
        let world = lock(&world);
        let Some(Ok(Decoded::Bucket(image))) = world.items.values().next().map(Attributes::decode) else {
            panic!("no bucket")
        };
        let rpm = LimitName::parse("rpm")
            .ok()
            .and_then(|rpm| image.limits.get(&rpm).copied());
        rpm.map_or(0, |limit| limit.token_bucket.params.burst())
    })
}

#[test]
fn a_chunk_is_not_spent_after_the_configuration_has_changed() {
    assert_eq!(burst_after_a_change(), 5_000_000);
}

/// While the table is unavailable a process goes on with the tokens taken ahead.
#[test]
fn tokens_taken_ahead_are_spent_while_the_table_is_unavailable() {
    block_on(async {
        let clock = SimClock {
            start: Instant::now(),
            skew: 0,
        };
        let world = throttled_world(clock, limits(10_000, 10_000));
        let process = Process::new(&world, clock, settings(true), 1, empty_results(10_000));
        process.run(1_000, 2_000).await;
        let held = process.buckets.stats().chunk_tokens;
        assert!(held > 50, "{held}");
        process.port.alive.store(false, Ordering::Relaxed);
        for _ in 0..held / 2 {
            let acquire = Acquire::new(process.buckets.clone(), ENTITY, RESOURCE);
            let lease = acquire.consume("rpm", 1).await;
            assert!(lease.is_ok(), "{lease:?}");
            if let Ok(lease) = lease {
                assert!(lease.commit().await.is_ok());
            }
        }
        assert_eq!(process.buckets.stats().chunk_tokens, held - held / 2);
    });
}
