//! What `acquire` must do, through the public API, on a store in memory behind a connection that can fail.
//!
//! Time is tokio's paused time: it passes only when a test says so or when everything waits, so nothing here depends on
//! how fast the machine is.

mod support;

mod adjustments;
mod admission;
mod breaker;
mod bucket_task;
mod cascade;
mod chunks;
mod clock;
mod config_changes;
mod config_reads;
mod costs;
mod counts;
mod credentials;
mod damaged_buckets;
mod exactly_once;
mod expiry;
mod faults;
mod foreign_trees;
mod layer;
mod layer_costs;
mod layer_permits;
mod leases;
mod limits_of_a_call;
mod local;
mod many_entities;
mod memory;
mod metrics;
mod mistakes;
mod modes;
mod money;
mod outage;
mod parents;
mod peer_items;
mod permits;
mod quotas;
mod refill;
mod refusal_counts;
mod refusals;
mod several;
mod shutdown;
mod unavailable;
mod wait;
mod wait_order;
