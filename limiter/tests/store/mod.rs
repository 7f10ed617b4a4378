//! What the store must do, on every store: in memory, in a file, over HTTP, on the local cloud, with a page boundary
//! after every item, and over a connection that fails all the time.

#[macro_use]
mod support;

mod audit;
mod availability;
mod bucket_changes;
mod bucket_states;
mod call_counts;
mod capacity;
mod config;
mod connecting;
mod connections;
mod deletion_races;
mod earlier;
mod entities;
mod entity_deletion;
mod entity_races;
mod example;
mod faults;
mod foreign;
mod infrastructure;
mod lists;
mod locked_file;
mod metering;
mod migration_problems;
mod migrations;
mod modes;
mod paused;
mod peer;
mod prices;
mod races;
mod resolution;
mod temporary_limits;
mod tree;
mod usage;
mod usage_counting;
mod versions;
