//! What the aggregator does when something cannot be done.

mod support;

mod alerts;
mod batches;
mod counted;
mod dead_letters;
mod redrives;
