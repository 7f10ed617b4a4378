//! The Python peer and this library on one bucket at the same time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zae_limiter::{Error, Limit, RateLimiter};
use zae_limiter_testing::{MiniStack, peer_output};

async fn limiter(name: &str) -> RateLimiter {
    let cloud = MiniStack::shared();
    RateLimiter::builder(name)
        .sdk_config(cloud.aws())
        .create_table(true)
        .await
        .unwrap()
}

/// How many calls one limiter was admitted until it was told to stop.
async fn admitted_until(limiter: RateLimiter, stop: Arc<AtomicBool>) -> u64 {
    let mut admitted = 0;
    while !stop.load(Ordering::SeqCst) {
        admitted += u64::from(is_admitted(&limiter).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    admitted
}

async fn is_admitted(limiter: &RateLimiter) -> bool {
    match limiter.acquire("user-1", "gpt-4").consume("calls", 1).await {
        Ok(lease) => {
            lease.commit().await.unwrap();
            true
        }
        // A bucket that several processes fight for may be contended; that is no admission.
        Err(error) if error.is_unavailable() => false,
        Err(Error::Refused(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_together_admit_exactly_what_the_limit_allows() {
    const LIMIT: u64 = 600;
    let name = "shared-bucket";
    let first = limiter(name).await;
    first
        .repository()
        .set_resource_defaults("gpt-4", [Limit::per_day("calls", LIMIT).unwrap()])
        .await
        .unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shared_bucket.py");
    let endpoint = MiniStack::shared().endpoint();
    let peer = tokio::task::spawn_blocking(move || peer_output(&script, &[name, &endpoint, "3", "60"]));
    let stop = Arc::new(AtomicBool::new(false));
    let mut ours = Vec::new();
    for _ in 0..2 {
        ours.push(tokio::spawn(admitted_until(limiter(name).await, stop.clone())));
    }
    let printed = peer.await.unwrap();
    stop.store(true, Ordering::SeqCst);
    let by_peer: u64 = String::from_utf8(printed).unwrap().trim().parse().unwrap();
    let mut by_us = 0;
    for task in ours {
        by_us += task.await.unwrap();
    }
    assert!(by_peer > 0 && by_us > 0, "{by_peer} by the peer, {by_us} by us");

    // The processes that are left take what is left: no more and no less than the limit.
    while is_admitted(&first).await {
        by_us += 1;
    }
    assert_eq!(by_us + by_peer, LIMIT, "{by_peer} by the peer");
    let bucket = first.acquire("user-1", "gpt-4").peek().await.unwrap();
    assert_eq!(bucket.statuses()[0].available, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_peer_goes_on_beside_quotas_and_permits_and_leaves_them_alone() {
    let name = "shared-kinds";
    let ours = limiter(name).await;
    let limits = [
        "calls:600/day",
        "spend:5 per year",
        "parallel:1 at once for 10min",
    ];
    let limits = limits.map(|text| text.parse::<Limit>().unwrap());
    let defaults = ours.repository().set_resource_defaults("gpt-4", limits);
    defaults.await.unwrap();
    let call = || ours.acquire("user-1", "gpt-4").consume("calls", 1);
    let all = || call().consume("spend", 1).consume("parallel", 1);
    let lease = call().consume("spend", 4).consume("parallel", 1).await.unwrap();
    assert!(
        matches!(all().await, Err(Error::Refused(_))),
        "the permit is held"
    );

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shared_bucket.py");
    let endpoint = MiniStack::shared().endpoint();
    let peer = tokio::task::spawn_blocking(move || peer_output(&script, &[name, &endpoint, "2", "20"]));
    let printed = String::from_utf8(peer.await.unwrap()).unwrap();
    assert_eq!(printed.trim(), "40", "no call of the peer is refused");

    let left = async || {
        let peek = call().peek().await.unwrap();
        ["calls", "spend", "parallel"].map(|limit| peek.tokens(limit).unwrap())
    };
    assert_eq!(left().await, [559, 1, 0]);
    assert!(matches!(all().await, Err(Error::Refused(_))), "it is still held");
    lease.commit().await.unwrap();
    assert_eq!(left().await, [559, 1, 1]);
    all().await.unwrap().commit().await.unwrap();
    assert!(
        matches!(all().await, Err(Error::Refused(_))),
        "the quota is used up"
    );
}
