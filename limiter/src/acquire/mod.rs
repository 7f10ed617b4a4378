//! `limiter.acquire(..)`: from a call to a lease.
//!
//! [`call`] checks a call and runs it unless memory [decides](at_once) it, [`attempt`] asks once within the time budget,
//! [`charge`] finds the buckets that it concerns, [`cascade`] asks all of them so that either all are charged or none,
//! [`wait`] waits for tokens, and [`lease`] holds what was taken until it is committed or given back. What happens at one
//! bucket is in [`crate::bucket`].

mod adjustment;
mod at_once;
mod attempt;
mod availability;
mod call;
mod cascade;
mod charge;
mod future;
mod lease;
mod outage;
mod wait;

pub use availability::Availability;
pub use call::Acquire;
pub use future::AcquireFuture;
pub use lease::{Admission, Lease};
