//! Everything that this process does to a bucket: one conditional write per acquire, exactly once, never too much.
//!
//! Every bucket in use has a [`BucketQueue`](queue::BucketQueue): a queue of requests, the last image seen of the bucket,
//! and at most one write in flight. Requests that arrive while a write is in flight are combined into the next one, in
//! order of arrival; when nothing is in flight nothing waits. [`QueueState`](state::QueueState) decides what happens
//! next and is pure; the [`worker`] carries it out.
//!
//! The image only chooses the write and may refuse; the server's condition admits. A refused write returns the current
//! image, from which the next write is made. A write without an answer is sent again unchanged: the client's slot on the
//! item shows whether it happened.
//!
//! The [`breaker`] of the limiter knows when the table is away; then nothing is sent but probes ([`table_health`]). Calls
//! that wait for tokens are in the bucket's [`wait_queue`]. Where it is allowed, a busy bucket has tokens in hand that were
//! taken [ahead](chunk) of the calls.

/// True if the simulation breaks this rule on purpose; nothing else does.
#[cfg(test)]
macro_rules! breaks {
    ($mutation:expr, $rule:ident) => {
        $mutation == Some($crate::simulation::Mutation::$rule)
    };
}
#[cfg(not(test))]
macro_rules! breaks {
    ($mutation:expr, $rule:ident) => {
        false
    };
}
pub(crate) use breaks;

mod bounded_map;
mod breaker;
mod buckets;
mod chunk;
mod chunked;
mod deltas;
mod grant;
mod idle_bytes;
mod in_flight;
mod inline_worker;
mod known_calls;
mod limit_statuses;
mod outage_share;
mod queue;
mod refusals;
mod request;
mod retry_pace;
mod shared;
mod size_warnings;
mod state;
mod stats;
mod table_health;
mod wait_queue;
mod worker;
mod write_pace;

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod test_buckets;

pub use stats::{BreakerState, LimiterStats, Shutdown, Unwritten};

pub(crate) use buckets::Buckets;
pub(crate) use deltas::{Deltas, add, amount_of};
pub(crate) use grant::Grant;
pub(crate) use known_calls::KnownCall;
pub(crate) use limit_statuses::limit_statuses;
pub(crate) use outage_share::{Asked, OutagePortion, OutageShare};
pub(crate) use queue::{Answer, AtOnce, BucketQueue, Driver};
pub(crate) use request::Outcome;
pub(crate) use shared::Shared;
pub(crate) use wait_queue::{Turn, Wakeup};
