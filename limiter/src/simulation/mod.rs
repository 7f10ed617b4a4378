//! A deterministic simulation of admission: several limiters over one table that loses, delays, throttles and conflicts.
//!
//! The limiters are the real ones; the table is the schema crate's interpreter of bucket writes ([`world`]), behind an
//! unreliable connection ([`port`]). Every write that is applied is checked against an exact bucket ([`oracle`]): nothing
//! is admitted that is not there, no level is ever above or below what it should be, every call is booked exactly once.
//! Apart from it the promise itself is checked ([`intervals`]): over no interval is more admitted than burst and refill.
//! The same seed gives the same run; a failing one prints how to repeat it. That the checks can fail is shown by breaking
//! the rules one by one ([`Mutation`], `scripts/broken-rules.py`).
//!
//! Production code is reached through the doors that it has: calls are made with `Acquire`, the table is a `Store`, the
//! time is a `Clock`, chance is an `Entropy`. Behind them are the real core and actor of every bucket. The one exception is
//! the copy of a process, which no production code makes.
//!
//! The words of the simulation:
//!
//! - a [`world`] has the table, its stored [`config`], the time and the weather; a [`port`] is the connection of one process;
//! - a scenario ([`faults`]) says what goes wrong, and how often; [`run`] plays it with callers ([`traffic`]);
//! - the [`oracle`] judges each write by an exact bucket ([`account`]), [`intervals`] the promise, [`refusals`] each refusal, [`modes`] whether each
//!   call followed a mode that it may have known;
//! - [`tests`] play random scenarios and break the rules; [`worlds`] ask one question each.
#![allow(clippy::panic, clippy::unwrap_used)]

mod account;
mod broken;
mod clock;
mod config;
mod expiry;
mod faults;
mod intervals;
mod kinds;
mod lost_debits;
mod modes;
mod oracle;
mod peer;
mod port;
mod refusals;
mod run;
mod sdk;
mod tests;
mod throttling;
mod top_ups;
mod traffic;
mod unwritten;
mod world;
mod worlds;

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts acquires of a check whose runs had no violation, and prints how many there were in all of them so far.
fn count_acquires(acquires: u64) {
    static ACQUIRES: AtomicU64 = AtomicU64::new(0);
    let all = ACQUIRES.fetch_add(acquires, Ordering::Relaxed) + acquires;
    eprintln!("simulation: {all} acquires so far, 0 violations");
}

/// True if `ZAE_SIMULATION=long` asks for long runs.
fn is_long() -> bool {
    std::env::var("ZAE_SIMULATION").is_ok_and(|length| length == "long")
}

/// A rule of the table's writes, broken on purpose by the simulated table. Rules of the client are broken by
/// `scripts/broken-rules.py`, which changes a copy of the source.
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
    /// Credits are added without a ceiling.
    CreditsWithoutClamp,
    /// A full limit of a shared bucket is left above its burst by the margin instead of below it.
    MarginAboveBurst,
    /// The configuration is not read consistently before it is written to a bucket.
    InconsistentReload,
    /// What is used of a quota has no upper bound.
    QuotaWithoutCap,
    /// A period begins whatever the item's last one is.
    PeriodUnseen,
    /// A top-up does not require that there is no idempotency record of it.
    TopUpWithoutRecord,
}

impl Mutation {
    /// Those that the exact bucket notices; the others cost time instead of tokens.
    pub(crate) const INEXACT: [Self; 6] = [
        Self::TouchWithoutCeiling,
        Self::LastWriterInsteadOfSlots,
        Self::RefillAgainstStaleLevel,
        Self::RefillCutToStaleLevel,
        Self::CreditsWithoutClamp,
        Self::MarginAboveBurst,
    ];

    /// Those of quotas and permits.
    pub(crate) const OF_KINDS: [Self; 3] = [
        Self::QuotaWithoutCap,
        Self::PeriodUnseen,
        Self::TopUpWithoutRecord,
    ];
}
