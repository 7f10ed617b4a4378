//! The rate limit service of Envoy over real sockets, called with a client of the same protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod client;
#[path = "../http/connection.rs"]
mod connection;
mod example;
mod limits;
#[path = "../../src/envoy/messages.rs"]
mod messages;
mod refunds;
mod shadow;
mod tls;
mod wire;
