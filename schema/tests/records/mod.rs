//! Every record of the table: as it stands there, there and back, from the peer, and malformed.

mod examples;
mod extremes;
mod limit_kinds;
mod malformed;
mod modes;
mod peer;
mod round_trips;
mod snapshots;
