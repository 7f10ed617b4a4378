//! The server over real sockets, on an embedded store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod acquire;
mod admin;
mod auth;
mod client;
mod combining;
mod connection;
mod idempotency;
mod input;
mod leases;
mod metrics;
mod openapi;
mod shutdown;
mod unavailable;
