//! The server over real sockets, on an embedded store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod connection;
mod grpc;
mod http;
mod ui;
