//! Quotas and limits on calls in flight, beside rates, on one bucket of many processes.
//!
//! The oracle judges every write ([`crate::simulation::kinds`]). Apart from it the [`ledger`] knows what callers were told, as
//! they see it: what they were admitted in each period, and which of them hold a permit that has not expired by their own
//! clock.

mod fleet;
mod ledger;
mod midnight;
mod tests;
