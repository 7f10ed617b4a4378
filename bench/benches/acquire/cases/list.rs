//! The cases that one limiter is enough for.

use std::net::SocketAddr;
use std::time::Duration;

use zae_limiter::RateLimiter;

use super::on_memory::{Quick, chunked, refused};
use crate::clients::{self, admitted, call};

/// Refusals and chunk hits are timed in groups of this many.
const GROUP: u32 = 64;

/// An operation on a limiter, so that it can be run with and without a meter.
pub(super) type OnLimiter = fn(RateLimiter, usize, u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) tasks: usize,
    pub(super) group: u32,
    pub(super) build: fn(SocketAddr) -> zae_limiter::RateLimiterBuilder,
    pub(super) operation: OnLimiter,
    /// The same operation, if it takes less than a microsecond: a box for its future would be much of what is measured.
    pub(super) quick: Option<Quick>,
    pub(super) peer: Option<(&'static str, bool)>,
}

pub(super) const CASES: [Case; 9] = [
    Case {
        name: super::CASCADE,
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
        operation: |limiter, _, _| Box::pin(async move { adjusted(&limiter).await }),
        quick: None,
        peer: None,
    },
    Case {
        name: "wait, 16 tasks on 400/s",
        tasks: 16,
        group: 1,
        build: clients::limiter,
        operation: |limiter, _, _| Box::pin(async move { waiting(&limiter).await }),
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

/// A call that used more tokens than it took.
async fn adjusted(limiter: &RateLimiter) {
    let mut lease = call(limiter, "adjusted", 100).await.unwrap();
    lease.adjust("tpm", 20);
    lease.commit().await.unwrap();
}

/// A call that waits for its tokens for up to a second.
async fn waiting(limiter: &RateLimiter) {
    let patient = call(limiter, "waiting", 1).wait_up_to(Duration::from_secs(1));
    if let Ok(lease) = patient.await {
        lease.commit().await.unwrap();
    }
}
