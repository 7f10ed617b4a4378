//! Records, names, limits and the arithmetic of buckets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod batch;
mod bucket_parameters;
mod bucket_write;
mod common;
mod conditions;
mod damage;
mod decisions;
mod estimates;
mod expiry;
mod fingerprint;
mod kind_changes;
mod kinds;
mod limits;
mod limits_page;
mod money;
mod names;
mod pinned_writes;
mod purity;
mod quota_periods;
mod records;
mod slots;
mod token_bucket;
mod touches;
mod two_writers;
mod vectors;
mod windows;
