//! `limiter.acquire(..)`: from a call to a lease.
//!
//! [`call`] checks a call, runs it and applies the policy for outages; it has one [`part`] for each resource. [`attempt`]
//! tries it once within the time budget; [`charge`] finds the buckets that it concerns; [`cascade`] acquires from all of them
//! or none; [`wait`] waits for tokens; [`lease`] holds what was taken until it is committed or returned, resource by
//! resource ([`resource_use`]). What happens at one bucket is in [`crate::bucket`].

mod adjustment;
mod admission;
mod attempt;
mod availability;
mod call;
mod cascade;
mod charge;
mod estimate;
mod lease;
mod outage;
mod part;
mod resource_lease;
mod resource_use;
mod together;
mod wait;

pub use adjustment::Adjust;
pub use admission::Admission;
pub use availability::Availability;
pub use call::Acquire;
pub use lease::Lease;
#[cfg(feature = "tower")]
pub(crate) use part::Drafts;
pub use part::MAX_RESOURCES;
pub use resource_lease::ResourceLease;
