//! Everything about buckets in one program, so that one link tests a change: mutation tests make hundreds of them.

mod common;

mod batch;
mod bucket_parameters;
mod bucket_write;
mod conditions;
mod damage;
mod decisions;
mod estimates;
mod expiry;
mod fingerprint;
mod pinned_writes;
mod slots;
mod token_bucket;
mod touches;
mod two_writers;
mod vectors;
