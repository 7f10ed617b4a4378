//! The cases of `acquire`, on every endpoint.

mod fleet;
mod list;
mod meter;
mod on_memory;

use std::net::SocketAddr;

use tokio::runtime::Runtime;
use zae_limiter::{Limit, NewEntity};

use self::fleet::fleet;
use self::list::{CASES, OnLimiter};
use self::meter::meter;
use self::on_memory::{OnMemory, Quick};
pub(crate) use self::on_memory::{chunked, refused, warm_up_chunks};
use crate::clients::{self, RESOURCE, admitted, bare, large};
use crate::measure::{Figures, Operation, one_round};
use crate::peer;
use crate::results::{Contestant, Results};

/// The contestant that this project is.
pub(crate) const OURS: &str = "zae-limiter";
pub(crate) const BARE: &str = "bare UpdateItem";
pub(crate) const PEER: &str = "peer, asyncio";
pub(crate) const PEER_THREADS: &str = "peer, threads";
pub(crate) const PACKAGE: &str = "package, asyncio";
pub(crate) const PACKAGE_THREADS: &str = "package, threads";
pub(crate) const DYNAMODB: &str = "dynoxide";
pub(crate) const CANNED: &str = "canned";
pub(crate) const IN_RESPONSE: &str = "allocations in the result of a refusal";
pub(crate) const CANNED_LATE: &str = "canned + 5 ms";
/// The only one of the other cases that also runs on recorded responses.
pub(crate) const CASCADE: &str = "cascade of two";

/// Where a case runs: the endpoint's name and address.
pub(crate) type Endpoint = (&'static str, SocketAddr);

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

/// Warm acquires beside the bare call and the peer, if their name is wanted: 1 task, 16 on their own buckets, and many on one.
pub(crate) fn warm(
    runtime: &Runtime,
    results: &mut Results,
    (name, endpoint): Endpoint,
    is_wanted: impl Fn(&str) -> bool,
) {
    let limiter = runtime.block_on(async { clients::limiter(endpoint).await.unwrap() });
    let client = clients::sdk(endpoint);
    for (case, tasks, own) in [
        ("1 task", 1, true),
        ("16 tasks, own buckets", 16, true),
        ("16 tasks, one bucket", 16, false),
        ("64 tasks, one bucket", 64, false),
        ("256 tasks, one bucket", 256, false),
    ] {
        if !is_wanted(case) {
            continue;
        }
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
            against_peer(results, (name, endpoint), case, tasks, "user-0", own);
        }
    }
}

fn against_peer(
    results: &mut Results,
    (name, endpoint): Endpoint,
    case: &str,
    tasks: usize,
    entity: &str,
    own: bool,
) {
    let Some(python) = peer::python() else { return };
    let package = peer::own_package();
    let mut contestants = vec![(PEER, "asyncio", None), (PEER_THREADS, "threads", None)];
    if let Some(package) = &package {
        contestants.push((PACKAGE, "asyncio", Some(package.as_path())));
        contestants.push((PACKAGE_THREADS, "threads", Some(package.as_path())));
    }
    for (who, how, package) in contestants {
        let run = || peer::run((&python, package), endpoint, how, tasks, entity, own);
        match results.disturbance.undisturbed(run) {
            Ok(figures) => results.add(name, case, who, figures),
            Err(error) => eprintln!("  {name} {case} {who}: {error}"),
        }
    }
}

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
    named(runtime, results, (DYNAMODB, endpoint), |_| true);
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
    (name, endpoint): Endpoint,
    is_wanted: impl Fn(&str) -> bool,
) {
    if name == DYNAMODB
        && let Some(allocations) = allocations_in_answer(runtime, endpoint)
    {
        results.single.push((IN_RESPONSE, allocations));
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
        results.side_by_side(name, case.name, contestants);
        if let Some((entity, own)) = case.peer {
            against_peer(results, (name, endpoint), case.name, case.tasks, entity, own);
        }
        if name == DYNAMODB {
            let builder = (case.build)(endpoint);
            meter(runtime, results, case.name, builder, case.operation, case.quick);
        }
    }
}
