//! Calls that memory decides.

use zae_limiter::RateLimiter;

use crate::clients::RESOURCE;
use crate::measure::Operation;

/// Chunks are warm when they cover this many calls in a row.
const WARM_HITS: u64 = 1_000;
/// Chunks that are not warm after this many times as many calls never will be.
const MAX_WARM_UP: u32 = 1_000;

#[derive(Clone, Copy)]
pub(super) enum Quick {
    Refusal,
    ChunkHit,
}

/// Calls that memory decides, on one limiter.
#[derive(Clone)]
pub(super) struct OnMemory(pub(super) RateLimiter, pub(super) Quick);

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
    let mut rounds = 0;
    loop {
        let before = limiter.stats().chunk_grants;
        for _ in 0..WARM_HITS {
            chunked(limiter).await;
        }
        if limiter.stats().chunk_grants - before == WARM_HITS {
            return;
        }
        rounds += 1;
        assert!(rounds < MAX_WARM_UP, "calls still wait for chunks");
    }
}

/// A call on a busy bucket that takes tokens in chunks.
pub(crate) async fn chunked(limiter: &RateLimiter) {
    let call = limiter.acquire("chunked", RESOURCE).consume("rpm", 1);
    call.await.unwrap().commit().await.unwrap();
}
