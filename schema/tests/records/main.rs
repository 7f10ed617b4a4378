//! Every record of the table: as it stands there, there and back, from the peer, and malformed.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod examples;
mod extremes;
mod malformed;
mod peer;
mod round_trips;
mod snapshots;
