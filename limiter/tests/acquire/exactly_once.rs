//! Every debit, credit and adjustment of a living process happens exactly once, with several of them on one bucket and
//! a connection that loses responses and delivers requests late.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use zae_limiter::RateLimiter;

use crate::acquire::support::*;

const BAD: FaultRates = FaultRates {
    lost_responses: 20,
    late: 3,
    throttled: 3,
    conflicts: 2,
};

/// Ten times as many with `ZAE_SIMULATION=long`.
fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    let long = std::env::var("ZAE_SIMULATION").is_ok_and(|length| length == "long");
    first..first + count * if long { 10 } else { 1 }
}

async fn processes(
    stage: &Stage,
    seed: u64,
    count: u64,
    limit: zae_limiter::Limit,
) -> Vec<(Connection, RateLimiter)> {
    let mut limiters = Vec::new();
    for number in 0..count {
        let wire = stage.another_wire();
        let builder = stage.builder_on(&wire).default_limits([limit.clone()]);
        let limiter = builder.seed(seed * 100 + number).await.unwrap();
        wire.latency(millis(2 + number));
        wire.random_faults(seed * 1000 + number, BAD);
        limiters.push((wire, limiter));
    }
    limiters
}

/// One caller: acquires, and then commits, adjusts, gives back or drops. Adds what it has really used.
async fn caller(limiter: RateLimiter, mut chance: fastrand::Rng, used: Arc<AtomicI64>) {
    for _ in 0..12 {
        tokio::time::sleep(millis(chance.u64(0..30))).await;
        let amount = chance.u64(1..20);
        let Ok(mut lease) = lease(&limiter, "user-1", "tokens", amount).await else {
            continue;
        };
        let mut total = i64::try_from(amount).unwrap();
        match chance.u8(0..6) {
            0 => {
                drop(lease);
                continue;
            }
            1 => {
                // Whether it is written now or later in the background, it is written once.
                let _ = lease.rollback().await;
                continue;
            }
            2 => total += adjust(&mut lease, chance.i64(1..40)),
            3 => total += adjust(&mut lease, -chance.i64(1..=total)),
            4 if lease.consume("tokens", 5).await.is_ok() => total += 5,
            _ => {}
        }
        let _ = lease.commit().await;
        used.fetch_add(total, Ordering::Relaxed);
    }
}

fn adjust(lease: &mut zae_limiter::Lease, delta: i64) -> i64 {
    lease.adjust("tokens", delta);
    delta
}

async fn account(seed: u64, burst: u64) {
    let stage = Stage::new();
    let limiters = processes(&stage, seed, 4, hoard("tokens", burst)).await;
    let used = Arc::new(AtomicI64::new(0));
    let callers: Vec<_> = limiters
        .iter()
        .enumerate()
        .flat_map(|(process, (_, limiter))| (0..6).map(move |number| (process, number, limiter)))
        .map(|(process, number, limiter)| {
            let chance = fastrand::Rng::with_seed(seed * 10_000 + process as u64 * 100 + number);
            tokio::spawn(caller(limiter.clone(), chance, used.clone()))
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    // Requests that are under way arrive; then everything that is unconfirmed is found.
    tokio::time::sleep(secs(2)).await;
    for (wire, limiter) in &limiters {
        wire.heal();
        let report = limiter.shutdown().await;
        assert_eq!(report.unwritten_total, 0, "seed {seed}: {report:?}");
    }
    let bucket = stage.bucket("user-1").await.unwrap();
    let used = used.load(Ordering::Relaxed) * 1000;
    assert_eq!(
        bucket.consumed("tokens"),
        used,
        "seed {seed}: what is counted is what was used"
    );
    // What is pending is rounded up once when a full bucket is touched.
    let missing = i64::try_from(burst).unwrap() * 1000 - used - bucket.level("tokens");
    assert!(
        (0..=1).contains(&missing),
        "seed {seed}: and the level agrees, but for {missing}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_counted_is_what_was_used() {
    for seed in seeds(1, 8) {
        account(seed, 1_000_000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn also_when_most_calls_are_refused() {
    for seed in seeds(1_001, 12) {
        account(seed, 300).await;
    }
}

#[tokio::test(start_paused = true)]
async fn never_more_than_the_burst_is_admitted() {
    for seed in seeds(1, 8) {
        let stage = Stage::new();
        let limiters = processes(&stage, seed, 3, hoard("tokens", 50)).await;
        let calls: Vec<_> = limiters
            .iter()
            .flat_map(|(_, limiter)| std::iter::repeat_n(limiter, 40))
            .enumerate()
            .map(|(number, limiter)| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(millis(number as u64 % 17 * 9)).await;
                    take(&limiter, "user-1", "tokens", 1).await
                })
            })
            .collect();
        let mut admitted = 0;
        for call in calls {
            match call.await.unwrap() {
                Ok(()) => admitted += 1,
                Err(error) if error.is_unavailable() => {}
                Err(error) => drop(exceeded(error)),
            }
        }
        tokio::time::sleep(secs(2)).await;
        for (wire, limiter) in &limiters {
            wire.heal();
            limiter.shutdown().await;
        }
        assert!(admitted <= 50, "seed {seed}: {admitted}");
        let bucket = stage.bucket("user-1").await.unwrap();
        let missing = (50 - admitted) * 1000 - bucket.level("tokens");
        assert!((0..=1).contains(&missing), "seed {seed}: {missing}");
    }
}

/// The slots on a bucket.
async fn slots(stage: &Stage, entity: &str) -> Vec<String> {
    let bucket = stage.bucket(entity).await.unwrap();
    let mut slots: Vec<_> = bucket
        .0
        .into_keys()
        .filter(|name| name.starts_with("o_"))
        .collect();
    slots.sort();
    slots
}

#[tokio::test(start_paused = true)]
async fn limiters_that_drew_the_same_id_notice_and_count_exactly() {
    for seed in 0..20 {
        let stage = Stage::new();
        let mut callers = Vec::new();
        for number in 0..2 {
            let wire = stage.another_wire();
            wire.latency(millis(2 + number));
            let builder = stage.builder_on(&wire).default_limits([hoard("tokens", 30)]);
            // The same seed, and so the same id.
            let limiter = builder.seed(seed).await.unwrap();
            for caller in 0..20 {
                let limiter = limiter.clone();
                callers.push(tokio::spawn(async move {
                    tokio::time::sleep(millis(caller * 5)).await;
                    let Ok(held) = lease(&limiter, "user-1", "tokens", 2).await else {
                        return 0;
                    };
                    if caller % 3 == 0 {
                        // One that notices the other gives back nothing that the other may give back too.
                        return if held.rollback().await.is_ok() { 0 } else { 2 };
                    }
                    held.commit().await.unwrap();
                    2
                }));
            }
        }
        let mut used = 0;
        for caller in callers {
            used += caller.await.unwrap();
        }
        let bucket = stage.bucket("user-1").await.unwrap();
        assert_eq!(bucket.consumed("tokens"), used * 1000, "seed {seed}");
        assert_eq!(bucket.level("tokens"), (30 - used) * 1000, "seed {seed}");
        let slots = slots(&stage, "user-1").await;
        assert!(
            slots.len() >= 2,
            "seed {seed}: one of them drew another id: {slots:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_limiter_whose_slot_was_taken_over_while_it_was_idle_goes_on() {
    let stage = Stage::new();
    let idle = stage.limiter(&["tpm:100"]).await;
    let held = lease(&idle, "user-1", "tpm", 40).await.unwrap();
    assert_eq!(slots(&stage, "user-1").await, ["o_0"]);
    for _ in 0..40 {
        advance(secs(2)).await;
        let other = stage.limiter(&["tpm:100"]).await;
        take(&other, "user-1", "tpm", 1).await.unwrap();
    }
    assert_eq!(slots(&stage, "user-1").await.len(), 16, "however many there are");
    held.rollback().await.unwrap();
    take(&idle, "user-1", "tpm", 1).await.unwrap();
    let bucket = stage.bucket("user-1").await.unwrap();
    assert_eq!(bucket.consumed("tpm"), 41_000);
    assert_eq!(slots(&stage, "user-1").await.len(), 16);
}

#[tokio::test(start_paused = true)]
async fn slots_of_an_earlier_release_are_removed_by_the_writes_that_see_them() {
    let stage = Stage::new();
    let limiter = stage.limiter(&["tpm:100"]).await;
    take(&limiter, "user-1", "tpm", 1).await.unwrap();
    for number in 0..40 {
        let slot = format!("o_ab{number:02}");
        stage.tamper("user-1", &[(&slot, Some(1))]).await;
    }
    assert_eq!(slots(&stage, "user-1").await.len(), 41);
    let other = stage.limiter(&["tpm:100"]).await;
    for left in [30, 18, 6, 2] {
        take(&other, "user-1", "tpm", 1).await.unwrap();
        assert_eq!(slots(&stage, "user-1").await.len(), left);
    }
}
