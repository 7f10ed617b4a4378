//! What several crates promise together.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod book;
mod directions;
mod fleet;
mod hostile;
mod least_privilege;
mod llm_gateway;
mod packages;
mod peer;
mod shared_bucket;
