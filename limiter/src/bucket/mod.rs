//! Everything that this process does to buckets: one conditional write per acquire, exactly once, never too much.
//!
//! Every bucket in use has a [handle](handle::BucketHandle) with a [core](core::Core) behind a lock. The core is pure: it
//! takes events and the time, and says what to do next. While there is something to do, one task, the [`actor`], does it:
//! at most one write is in flight per bucket, and calls that arrive meanwhile go into the next one, in order of arrival.
//! The last image of the bucket only chooses the write and may refuse; the condition of the write admits. A refused write
//! returns the current image, from which the next one is made. A write without a response is sent again unchanged: the
//! client's slot on the item shows whether it happened.
//!
//! ```text
//! call ──▶ BucketHandle ──arrives──▶ Core ──Step──▶ actor ──▶ table
//!            ▲                        ▲                │
//!            └──── outcome ───────────┴── response ────┘
//! ```
//!
//! In reading order:
//!
//! 1. [`buckets`]: all buckets of a limiter, which of them are forgotten, shutdown. [`shared`]: what they share.
//!    [`in_flight`]: what a shutdown waits for.
//! 2. [`handle`]: how a call reaches a bucket and gets its outcome. [`grant`]: the tokens that it got. [`amounts`]: tokens by
//!    limit.
//! 3. [`core`]: `request` (a call in the queue), `arrival` (decided from memory or queued), `refusal` (refusals without a
//!    request), `combine` (the next write), `response` and `read` (what came back), `slots` and `unconfirmed` (exactly
//!    once), `contention` (other clients), `permits` (renewed in time), `chunks` (tokens taken ahead), `write_pace`
//!    (throttled items).
//! 4. [`actor`]: the task that sends, reads and pauses. [`backoff`] and [`retry_pace`]: how long it pauses.
//! 5. [`breaker`] and [`table_health`]: when the table is unavailable. [`outage_fraction`]: what is admitted then.
//! 6. [`origin`] and [`permits`]: how what was taken comes back. [`wait_queue`]: calls that wait for tokens.
//! 7. [`limit_statuses`], [`refusals`] (counted for the usage), [`size_warnings`] and [`stats`]: what is reported.

mod actor;
mod amounts;
mod backoff;
mod breaker;
mod buckets;
mod core;
mod grant;
mod handle;
mod in_flight;
mod limit_statuses;
mod origin;
mod outage_fraction;
mod permits;
mod refusals;
mod retry_pace;
mod shared;
mod size_warnings;
mod stats;
mod table_health;
mod wait_queue;

#[cfg(test)]
mod interleavings;
#[cfg(test)]
pub(crate) mod test_buckets;

pub use stats::{BreakerState, LimiterStats, Shutdown, Unwritten};

pub(crate) use self::core::BucketCall;
pub(crate) use self::core::request::Outcome;
pub(crate) use amounts::{Amounts, add, amount_of};
pub(crate) use backoff::wait_jitter;
pub(crate) use buckets::{Buckets, overloaded};
pub(crate) use grant::Grant;
pub(crate) use handle::{BucketHandle, Pending};
pub(crate) use limit_statuses::limit_statuses;
pub(crate) use origin::Origin;
pub(crate) use outage_fraction::{LocalCharge, LocalTokens, OutageFraction};
pub(crate) use refusals::RefusalCount;
pub(crate) use wait_queue::{Turn, Wakeup};
