//! The UI over real sockets, on an embedded store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../http/client.rs"]
mod client;
#[path = "../http/connection.rs"]
mod connection;

mod access;
mod bounds;
mod browser;
mod changes;
mod empty;
mod failures;
mod live;
mod numbers;
mod stage;
mod views;
