//! The aggregator: what records mean, failures, and its binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod binary;
mod changes;
mod failures;
mod peer;
mod redrive;
