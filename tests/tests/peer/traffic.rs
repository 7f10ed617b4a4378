//! Mixed traffic: clients of the peer and ours on the same buckets, with cascade, adjustments, exceptions and
//! configuration that both sides change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Credentials;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value as Json, json};
use zae_limiter::{Error, Limit, NewEntity, RateLimiter};
use zae_limiter_testing::{dynamodb_endpoint, peer_output};

const RESOURCE: &str = "gpt-4";
const PARENT: &str = "org";
/// The child that only the peer calls for.
const OWN: &str = "key-of-peer";

/// What one run does.
#[derive(Debug, Clone, Copy)]
struct Size {
    children: usize,
    clients_of_peer: usize,
    ours: usize,
    calls_of_peer: usize,
    /// The parent's requests, which never come back. Ours make half as many calls, so that some are left for the peer.
    budget: u64,
}

/// Net tokens by "entity limit".
type Tally = BTreeMap<String, i64>;

fn credentials() -> Credentials {
    Credentials::new("test", "test", None, None, "tests")
}

async fn limiter(table: &str) -> RateLimiter {
    RateLimiter::builder(table)
        .endpoint_url(dynamodb_endpoint())
        .region("us-east-1")
        .credentials(credentials())
        .principal("rust")
        .create_table(true)
        .await
        .unwrap()
}

/// Limits of a child: little with a slow refill, or more with a fast one.
fn configurations() -> [Vec<Limit>; 2] {
    let limits = |burst, rate| {
        vec![
            Limit::custom("rpm", 1, 1_000_000, 1_000_000, 1).unwrap(),
            Limit::custom("tpm", 1, burst, rate, 1).unwrap(),
        ]
    };
    [limits(60, 20), limits(120, 60)]
}

/// The most that a child or the parent may have of a limit: burst, and refill per second, in tokens.
fn most(entity: &str, limit: &str, budget: u64) -> (i128, i128) {
    match (entity, limit) {
        (PARENT, "rpm") => (budget.into(), 0),
        (PARENT, _) => (100_000, 100_000),
        (_, "rpm") => (1_000_000, 1_000_000),
        _ => (120, 60),
    }
}

async fn prepare(table: &str, size: Size) -> Vec<String> {
    let admin = limiter(table).await;
    let repository = admin.repository();
    repository.create_entity(NewEntity::new(PARENT)).await.unwrap();
    let parent = [
        Limit::custom("rpm", 1, size.budget, 1, Limit::MAX_PERIOD_SECONDS).unwrap(),
        Limit::custom("tpm", 1, 100_000, 100_000, 1).unwrap(),
    ];
    repository.set_limits(PARENT, RESOURCE, parent).await.unwrap();
    let children: Vec<String> = (0..size.children).map(|number| format!("key-{number}")).collect();
    for child in children.iter().map(String::as_str).chain([OWN]) {
        let new = NewEntity::new(child).parent(PARENT).cascade(true);
        repository.create_entity(new).await.unwrap();
        let [limits, _] = configurations();
        repository.set_limits(child, RESOURCE, limits).await.unwrap();
    }
    children
}

/// One call of ours: an estimate, then what was really used; one in five gives everything back.
async fn call(limiter: &RateLimiter, child: &str, step: u64, tally: &mut Tally) -> bool {
    let (estimate, used) = (1 + step * 7 % 20, i64::try_from(step * 13 % 31).unwrap());
    let call = limiter
        .acquire(child, RESOURCE)
        .consume("rpm", 1)
        .consume("tpm", estimate);
    let mut lease = match call.await {
        Ok(lease) => lease,
        Err(Error::Refused(_)) => return false,
        // Many processes that fight for one bucket; nothing was admitted.
        Err(error) if error.is_unavailable() => return false,
        Err(error) => panic!("{error}"),
    };
    lease.adjust("tpm", used - i64::try_from(estimate).unwrap());
    if step.is_multiple_of(5) {
        written(lease.rollback().await);
        return true;
    }
    written(lease.commit().await);
    for entity in [child, PARENT] {
        *tally.entry(format!("{entity} rpm")).or_default() += 1;
        *tally.entry(format!("{entity} tpm")).or_default() += used;
    }
    true
}

/// It is written, or will be before the limiter has settled.
fn written(ended: zae_limiter::Result<()>) {
    match ended {
        Err(error) if !error.is_unavailable() => panic!("{error}"),
        _ => {}
    }
}

/// Makes at most `calls` calls between the peer's first call and its last.
async fn client(
    table: String,
    children: Vec<String>,
    number: u64,
    calls: u64,
    stop: Arc<AtomicBool>,
) -> Tally {
    let limiter = limiter(&table).await;
    while !stop.load(Ordering::SeqCst) && bucket(&table, OWN).await.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let mut tally = Tally::new();
    let mut step = number;
    for _ in 0..calls {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let child = &children[usize::try_from(step * 31 % 97).unwrap() % children.len()];
        call(&limiter, child, step, &mut tally).await;
        if step.is_multiple_of(40) {
            let limits = configurations()[usize::try_from(step / 40 % 2).unwrap()].clone();
            limiter
                .repository()
                .set_limits(child, RESOURCE, limits)
                .await
                .unwrap();
        }
        step += 3;
        // The peer's requests are slower.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    limiter.settled().await;
    tally
}

fn settings(size: Size, children: &[String]) -> Json {
    let configurations = configurations().map(|limits| {
        let limit = |limit: &Limit| {
            json!({
                "name": limit.name().as_str(), "capacity": limit.capacity().get(), "burst": limit.burst().get(),
                "refill_amount": limit.rate().unwrap().refill_amount().get(), "refill_period_seconds": limit.rate().unwrap().refill_period_seconds(),
            })
        };
        limits.iter().map(limit).collect::<Vec<_>>()
    });
    json!({
        "parent": PARENT, "own": OWN, "children": children, "resource": RESOURCE, "clients": size.clients_of_peer,
        "calls": size.calls_of_peer, "change_every": 15, "configs": configurations, "seed": 7,
    })
}

/// A bucket's item as anybody sees it, in millitokens.
async fn bucket(table: &str, entity: &str) -> HashMap<String, i128> {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(credentials())
        .endpoint_url(dynamodb_endpoint());
    let client = Client::from_conf(config.build());
    let key = |text: String| AttributeValue::S(text);
    let found = client
        .get_item()
        .table_name(table)
        .key("PK", key(format!("ENTITY#{entity}")))
        .key("SK", key(format!("#BUCKET#{RESOURCE}")))
        .consistent_read(true)
        .send();
    let item = found.await.unwrap().item.unwrap_or_default();
    let numbers = item
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.as_n().ok()?.parse().ok()?)));
    numbers.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_together_admit_at_most_burst_and_refill_and_count_what_was_admitted() {
    let size = if crate::peer::long() {
        Size {
            children: 8,
            clients_of_peer: 4,
            ours: 3,
            calls_of_peer: 250,
            budget: 2_000,
        }
    } else {
        Size {
            children: 4,
            clients_of_peer: 3,
            ours: 2,
            calls_of_peer: 40,
            budget: 400,
        }
    };
    let table = "peer-traffic";
    let children = prepare(table, size).await;
    let started = Instant::now();
    let told = settings(size, &children).to_string();
    let peer = tokio::task::spawn_blocking(move || {
        peer_output(
            &crate::peer::script("traffic.py"),
            &[table, dynamodb_endpoint(), &told],
        )
    });
    let stop = Arc::new(AtomicBool::new(false));
    let ours: Vec<_> = (1..=size.ours as u64)
        .map(|number| {
            let calls = size.budget / 2 / size.ours as u64;
            tokio::spawn(client(
                table.to_owned(),
                children.clone(),
                number,
                calls,
                stop.clone(),
            ))
        })
        .collect();
    let printed: Json = serde_json::from_slice(&peer.await.unwrap()).unwrap();
    stop.store(true, Ordering::SeqCst);
    let mut tally = Tally::new();
    for task in ours {
        for (name, tokens) in task.await.unwrap() {
            *tally.entry(name).or_default() += tokens;
        }
    }
    let by_us = tally.get(&format!("{PARENT} rpm")).copied().unwrap_or_default();
    let mut by_peer = 0;
    for (name, tokens) in printed["admitted"].as_object().unwrap() {
        if *name == format!("{PARENT} rpm") {
            by_peer = tokens.as_i64().unwrap();
        }
        *tally.entry(name.clone()).or_default() += tokens.as_i64().unwrap();
    }
    println!(
        "the peer: {}; calls admitted and kept: {by_peer} by the peer, {by_us} by us",
        printed["ended"]
    );
    assert!(by_peer > 0, "{printed}");
    assert!(printed["ended"]["rolled back"].as_u64() > Some(0), "{printed}");
    assert!(printed["ended"]["configured"].as_u64() > Some(0), "{printed}");

    // The clients that are left take what is left of the parent's requests: no more and no less.
    let last = limiter(table).await;
    drain_parent(&last, &children, &mut tally).await;
    last.settled().await;

    let elapsed = i128::try_from(started.elapsed().as_millis()).unwrap();
    for entity in children.iter().map(String::as_str).chain([OWN, PARENT]) {
        let found = bucket(table, entity).await;
        for limit in ["rpm", "tpm"] {
            let admitted = tally
                .get(&format!("{entity} {limit}"))
                .copied()
                .unwrap_or_default();
            let number = |field: &str| {
                found
                    .get(&format!("b_{limit}_{field}"))
                    .copied()
                    .unwrap_or_default()
            };
            assert_eq!(
                number("tc"),
                i128::from(admitted) * 1_000,
                "{entity} {limit}: consumed and admitted"
            );
            let (burst, per_second) = most(entity, limit, size.budget);
            let bound = burst * 1_000 + per_second * elapsed;
            assert!(
                number("tc") + number("tk") <= bound,
                "{entity} {limit}: {} consumed and {} left are more than {bound}",
                number("tc"),
                number("tk")
            );
        }
    }
    let parent = bucket(table, PARENT).await;
    assert_eq!(
        parent["b_rpm_tc"],
        i128::from(size.budget) * 1_000,
        "the whole budget, and nothing more"
    );
    assert_eq!(parent["b_rpm_tk"], 0);
}

/// Uses up the parent's requests, one call after the other, whatever the children's own limits say about tokens.
async fn drain_parent(limiter: &RateLimiter, children: &[String], tally: &mut Tally) {
    loop {
        let child = &children[0];
        match limiter.acquire(child, RESOURCE).consume("rpm", 1).await {
            Ok(lease) => written(lease.commit().await),
            Err(Error::Refused(refused)) => {
                let violated: Vec<_> = refused.refused_limits().map(|one| one.entity.as_str()).collect();
                assert_eq!(violated, [PARENT], "{refused:?}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
        for entity in [child.as_str(), PARENT] {
            *tally.entry(format!("{entity} rpm")).or_default() += 1;
        }
    }
}
