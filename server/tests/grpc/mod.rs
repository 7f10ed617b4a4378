//! The rate limit service of Envoy over real sockets, called with a client of the same protocol.

mod access;
mod attack;
mod client;
mod example;
mod kinds;
mod limits;
#[path = "../../src/envoy/messages.rs"]
mod messages;
mod refunds;
mod shadow;
mod tls;
mod wire;
