//! A deterministic simulation of admission: several limiters over one table that loses, delays, throttles and conflicts.
//!
//! The limiters are the real ones; the table is the schema crate's interpreter of bucket writes ([`world`]), behind an
//! unreliable connection ([`port`]). Every write that is applied is checked against an exact bucket ([`oracle`]): nothing
//! is admitted that is not there, no level is ever above or below what it should be, every call is booked exactly once.
//! Apart from it the promise itself is checked ([`intervals`]): over no interval is more admitted than burst and refill.
//! The same seed gives the same run; a failing one prints how to repeat it. That the checks can fail is shown by breaking
//! the protocol's rules one by one ([`Mutation`]).
#![allow(clippy::panic, clippy::unwrap_used)]

mod account;
mod broken;
mod chunks;
mod clock;
mod config;
mod cve_2026_27695;
mod doubt;
mod expiry;
mod faults;
mod fleet;
mod intervals;
mod one_call;
mod oracle;
mod outages;
mod peer;
mod port;
mod refusals;
mod run;
mod sdk;
mod tests;
mod throttling;
mod traffic;
mod unwritten;
mod waiting;
mod world;

/// True if `ZAE_SIMULATION=long` asks for long runs.
fn is_long() -> bool {
    std::env::var("ZAE_SIMULATION").is_ok_and(|length| length == "long")
}

/// A rule of the protocol, broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// A touch books refill that would overflow: no upper bound on the level.
    TouchWithoutCeiling,
    /// The item remembers the last write of anybody instead of one per client.
    LastWriterInsteadOfSlots,
    /// Refill is added whole, though the level may have risen since the image was taken.
    RefillAgainstStaleLevel,
    /// Refill is cut to what fitted under the burst when the image was taken, though the level may have fallen since.
    RefillCutToStaleLevel,
    /// Parameters are written from the cache, without reading the configuration again.
    ParametersFromCache,
    /// Credits are added without a ceiling.
    CreditsWithoutClamp,
    /// A conflict with a transaction counts as "limit exceeded".
    ConflictsAreRefusals,
    /// A full limit of a shared bucket is left above its burst by the margin instead of below it.
    MarginAboveBurst,
    /// A full limit of a shared bucket is set exactly, as if nobody else wrote it.
    NoMargin,
    /// A full limit is left below its burst by the margin though nobody else writes the bucket.
    MarginWithoutOthers,
    /// A call fails after eight refused writes, however much time it has left.
    EightTries,
    /// An old image of a shared bucket counts as current.
    NoGuess,
    /// A refill is written from an old image of a shared bucket, though the last such write was refused.
    RefillsFromOldImages,
    /// Tokens in hand stay in hand when they are spent.
    ChunkSpentTwice,
    /// What is left of a chunk is given back twice.
    ChunkGivenBackTwice,
    /// Tokens in hand are spent though the configuration of the bucket has changed.
    ChunkSpentAfterChange,
    /// The limiter does not report the tokens in hand.
    ChunkNotCounted,
    /// No circuit breaker: every bucket and every call finds an outage by itself.
    NoBreaker,
    /// The first response closes the breaker, however often that was too early.
    FirstResponseCloses,
    /// Probes follow each other without a pause.
    ProbesWithoutPause,
    /// Retries that nobody waits for are sent at once.
    RetriesWithoutPace,
    /// Throttling counts as no response.
    ThrottlingOpensBreaker,
    /// A write in doubt is looked for again and again, though nobody asks for the bucket.
    LooksForever,
    /// A refused connection counts as a write that may have happened.
    RefusedIsInDoubt,
    /// A patient call is refused though its tokens are due before its deadline.
    PatientCallsAreRefused,
    /// Patient calls join the wait queue before they have asked.
    WaitsBeforeAsking,
    /// The call whose turn it is asks alone, though others fit as well.
    WaitersAskAlone,
    /// Calls of different processes whose tokens are due at the same time ask at the same time.
    NoJitter,
    /// Waiting calls do not wait for those ahead of them.
    SeveralAtTheHead,
    /// The limits of a call are used for its entity's parents too.
    CallLimitsReachParents,
    /// A bucket with the limits of a call never expires.
    CallLimitsNeverExpire,
    /// The configuration is not read consistently before it is written to a bucket.
    InconsistentReload,
    /// A configuration that was read for one etag is written over another.
    RewriteIgnoresEtag,
    /// A change whose write cannot be traced is written again.
    DoubtfulChangesAgain,
    /// A write is forgotten because its response cannot be read.
    UnreadableIsForgotten,
}

impl Mutation {
    /// Those that the exact bucket notices; the others cost time instead of tokens.
    pub(crate) const INEXACT: [Self; 8] = [
        Self::TouchWithoutCeiling,
        Self::LastWriterInsteadOfSlots,
        Self::RefillAgainstStaleLevel,
        Self::RefillCutToStaleLevel,
        Self::ParametersFromCache,
        Self::CreditsWithoutClamp,
        Self::ConflictsAreRefusals,
        Self::MarginAboveBurst,
    ];
}
