//! Counters of a limiter.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use zae_limiter_schema::{EntityId, LimitName, Resource};

/// What is counted as it happens.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) granted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) observed: AtomicU64,
    pub(crate) disabled: AtomicU64,
    pub(crate) unavailable: AtomicU64,
    pub(crate) unwritten: AtomicU64,
    pub(crate) rolled_back: AtomicU64,
    pub(crate) refill_went_back: AtomicU64,
    pub(crate) refills_set_back: AtomicU64,
    pub(crate) chunk_grants: AtomicU64,
    /// In millitokens.
    pub(crate) chunk_tokens: AtomicI64,
    pub(crate) chunk_tokens_peak: AtomicI64,
}

impl Counters {
    /// A lease was dropped without a commit.
    pub(crate) fn rolled_back(&self) {
        self.rolled_back.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn spent_from_chunk(&self) {
        self.chunk_grants.fetch_add(1, Ordering::Relaxed);
    }

    /// The tokens of all chunks have changed by this many millitokens.
    pub(crate) fn chunk_tokens_changed(&self, change: i128) {
        if change != 0 {
            let change = i64::try_from(change).unwrap_or(i64::MAX);
            let before = self.chunk_tokens.fetch_add(change, Ordering::Relaxed);
            if change > 0 {
                let now = before.saturating_add(change);
                self.chunk_tokens_peak.fetch_max(now, Ordering::Relaxed);
            }
        }
    }
}

/// The circuit breaker of a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BreakerState {
    /// Calls ask the table.
    #[default]
    Closed,
    /// The table does not respond. Calls follow their policy at once, and only probes are sent.
    Open,
}

/// Counters of a limiter since it was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Acquires that were admitted and counted.
    pub granted: u64,
    /// Acquires that were refused.
    pub refused: u64,
    /// Acquires that passed though the limits did not allow them, because they are only observed
    /// ([`Mode::Observe`](crate::Mode)).
    pub observed: u64,
    /// Acquires that were refused because the entity may not use the resource ([`Mode::Disabled`](crate::Mode)).
    pub disabled: u64,
    /// Acquires for which the table could not be reached in time.
    pub unavailable: u64,
    /// Adjustments and refunds that could not be written and were given up.
    pub unwritten: u64,
    /// Leases that were dropped without [`commit`](crate::Lease::commit) or [`rollback`](crate::Lease::rollback). Their
    /// tokens were refunded. A high number points to a forgotten commit.
    pub rolled_back: u64,
    /// How often the time of a bucket's last refill was seen to go back: another client's clock is behind, or it has set the
    /// time of the bucket right.
    pub refill_went_back: u64,
    /// How often this limiter has set the time of a bucket's last refill back, because it was more than five seconds in the
    /// future: another client's clock is or was ahead.
    pub refills_set_back: u64,
    /// By how much this machine's clock is corrected, in milliseconds; 0 if it is right.
    pub clock_offset_ms: i64,
    /// Buckets that are kept in memory.
    pub buckets: u64,
    /// How often tokens of a chunk were spent instead of a write, by bucket
    /// ([`RateLimiterBuilder::token_chunks`](crate::RateLimiterBuilder::token_chunks)).
    pub chunk_grants: u64,
    /// Tokens of chunks now: taken from the table and not spent yet, of all buckets and limits together. All processes
    /// together admit at most this much more than burst and refill over an interval that begins now.
    pub chunk_tokens: u64,
    /// The most tokens of chunks at one time: the bound for any interval.
    pub chunk_tokens_peak: u64,
    /// Whether the circuit breaker is open now.
    pub breaker: BreakerState,
    /// How often the circuit breaker has opened.
    pub breaker_opened: u64,
}

/// A change that could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unwritten {
    /// Whose bucket.
    pub entity: EntityId,
    /// For what.
    pub resource: Resource,
    /// By limit, in millitokens: above zero was used and not booked, below zero was not given back.
    pub changes: Vec<(LimitName, i128)>,
    /// Why.
    pub reason: String,
    /// It may have been written: a response was lost, and the item no longer shows it.
    pub maybe_written: bool,
}

/// What was left when a limiter was shut down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Shutdown {
    /// Amounts that could not be written since the limiter was made, the latest thousand.
    pub unwritten: Vec<Unwritten>,
    /// How many there were in all.
    pub unwritten_total: u64,
}
