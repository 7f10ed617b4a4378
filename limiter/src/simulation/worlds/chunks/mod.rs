//! Processes that take tokens in chunks, on one item that is throttled at 1,000 write units a second.

mod admissions;
mod flood;
mod tests;

pub(super) use flood::{Flood, Outcome, simulate};
