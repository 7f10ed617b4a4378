//! The Rust blocks, as tests. `tests/build.rs` writes them.
#![allow(
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    unused,
    reason = "examples show what a reader needs, and nothing else"
)]

use std::sync::Arc;
use std::time::Duration;

use zae_limiter::audit::*;
use zae_limiter::usage::*;
use zae_limiter::versions::*;
use zae_limiter::*;

pub(crate) type Outcome = std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// A limiter on a store of its own, with limits for `gpt-4`.
async fn limiter() -> RateLimiter {
    let limits = [
        Limit::per_minute("rpm", 100).unwrap(),
        Limit::per_minute("tpm", 10_000).unwrap(),
    ];
    RateLimiter::embedded().default_limits(limits).await.unwrap()
}

/// What a model returns.
struct Response {
    tokens: i64,
    total_tokens: i64,
}

async fn call_model() -> Result<Response> {
    Ok(Response {
        tokens: 1_500,
        total_tokens: 1_500,
    })
}

/// Tokens of each chunk of a streamed response.
fn chunks_of_the_response() -> Vec<i64> {
    vec![200, 250, 300]
}

/// A refusal.
async fn refused(limiter: &RateLimiter) -> Arc<Refusal> {
    match limiter.acquire("user-1", "gpt-4").consume("rpm", 101).await {
        Err(Error::Refused(exceeded)) => exceeded,
        other => panic!("{other:?}"),
    }
}

include!(concat!(env!("OUT_DIR"), "/rust_blocks.rs"));
