//! What the aggregator does when something cannot be done.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

mod batches;
mod counted;
mod dead_letters;
mod redrives;
