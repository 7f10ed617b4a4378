//! What the tests of all crates share. Crates use it as a dev-dependency only.
//!
//! | To find | Look in |
//! |---|---|
//! | the local cloud and the Python peer, as processes that end with the test | [`MiniStack`], [`peer_output`] |
//! | a headless browser, where there is one | [`Chromium`] |
//! | a DynamoDB server in the test process, or any other | [`dynamodb_endpoint`], [`serve_in_thread`] |
//! | a connection to an embedded store that fails as told, or records the permissions it needs | [`connection`] |
//! | the stream simulator: shards, event source mappings, faults, and functions that run on them | [`stream`] |
//!
//! MiniStack and the peer are installed by `make setup` under `.venv/`; `make test` names their paths in
//! `ZAE_TEST_MINISTACK` and `ZAE_TEST_PEER_PYTHON`.

// Part of tests: what should not happen ends them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc
)]

mod chromium;
pub mod connection;
mod ministack;
mod peer;
mod server;
pub mod stream;
mod tools;

pub use chromium::Chromium;
pub use ministack::MiniStack;
pub use peer::{peer_output, peer_python};
pub use server::{dynamodb_endpoint, serve_dynamodb, serve_in_thread};
pub use tools::{clients_python, dev_functions, workspace};
